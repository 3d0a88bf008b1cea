"""The object store of a REST catalog, with either the user's credentials or the server's, never a mix."""

from collections.abc import Container, Mapping

from icefield.catalog.rest.http import origin_of
from icefield.catalog.rest.session import TRUSTED
from icefield.errors import InvalidInput
from icefield.secrets import secrets_of

S3_ENDPOINT, S3_SESSION_TOKEN = "s3.endpoint", "s3.session-token"
S3_KEYS = ("s3.access-key-id", "s3.secret-access-key")
# The properties that a REST server may set for its object store; others may be unknown to the client.
SERVERS_PLACE = (S3_ENDPOINT, "s3.region", "s3.path-style-access", "client.region")
SERVERS_CREDENTIALS = (*S3_KEYS, S3_SESSION_TOKEN)


def store_properties(agreed: Mapping[str, str], own: Mapping[str, str], trusted: Container[str]) -> dict[str, str]:
    """Return the properties of the object store.

    agreed: the merged configuration of server and client. own: the user's properties of object stores. trusted: origins
    that may get the user's credentials.
    Raises InvalidInput if the server names a store that would get the user's credentials.
    """
    said = {key: agreed[key] for key in SERVERS_PLACE if key in agreed}
    users = secrets_of({key: value for key, value in own.items() if key.startswith("s3.")})
    if not users and all(key in agreed for key in S3_KEYS):
        credentials = {key: agreed[key] for key in SERVERS_CREDENTIALS if key in agreed}
        return {**said, **credentials, **own}
    endpoint = said.get(S3_ENDPOINT)
    if endpoint is not None and S3_ENDPOINT not in own and origin_of(endpoint) not in trusted:
        raise InvalidInput(
            f"the catalog redirects to the object store {origin_of(endpoint)}, which would receive your credentials",
            hint=f"Set {S3_ENDPOINT} yourself, or add it to {TRUSTED}",
        )
    return {**said, **own}
