"""Clients of object stores, created from properties on first use of a bucket.

Properties are Iceberg's (`s3.endpoint`, `s3.region`, `s3.access-key-id`, `s3.secret-access-key`, `s3.session-token`,
`s3.path-style-access`, `client.region`); any other key of the client can be given as `s3.<key>`, `gs.<key>` or
`az.<key>`. Other settings come from the environment, as in the cloud's own tools (AWS_*, GOOGLE_*, AZURE_*).

Each bucket has two clients. The one for reading retries by itself. The one for writing never does: if the response to a
successful conditional write is lost, a retry would find its own object and take it for another writer's.

Importing this module raises Unsupported if the package `obstore` is not installed.
Raises InvalidInput for invalid properties, StorageError in a forked process.
"""

import os
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from icefield.errors import InvalidInput, LocationRefused, StorageError, Unsupported
from icefield.secrets import protect, reveal, secrets_of, secrets_of_environment, without_secrets
from icefield.storage.location import parse_location
from icefield.storage.process_lock import ProcessLock

try:
    import obstore
    from obstore.exceptions import BaseError
    from obstore.store import AzureStore, GCSStore, S3Store
except ImportError as error:
    raise Unsupported(
        "object stores need the package obstore", hint="Install it: pip install 'icefield[object-store]'"
    ) from error

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

__all__ = ["PREFIX_OF_SCHEME", "Client", "Clients", "obstore"]

Client = S3Store | GCSStore | AzureStore

# Other writers use three schemes for S3.
PREFIX_OF_SCHEME = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "az": "az"}

_ALIASES = {"client.region": "s3.region"}
_PATH_STYLE = "path_style_access"
_S3_KEYS = ("access_key_id", "secret_access_key")
_TIMEOUT = timedelta(seconds=30)
_CONNECT_TIMEOUT = timedelta(seconds=5)
_READING: "RetryConfig" = {"max_retries": 6, "retry_timeout": timedelta(seconds=60)}
_WRITING: "RetryConfig" = {"max_retries": 0}


class Clients:
    """The clients of all buckets in use, for the threads of one process."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        _check_properties(properties)
        self.properties = protect({_ALIASES.get(key, key): value for key, value in properties.items()})
        self._lock = ProcessLock()
        self._made: dict[tuple[str, str, bool], Client] = {}

    def secrets(self) -> list[str]:
        """Return what no message may show."""
        return [*secrets_of(self.properties), *secrets_of_environment(os.environ)]

    def reading(self, location: str) -> Client:
        """Return the client that retries; for reads, deletes and the parts of an upload."""
        return self._client(location, writes=False)

    def writing(self, location: str) -> Client:
        """Return the client that never retries."""
        return self._client(location, writes=True)

    def _client(self, location: str, *, writes: bool) -> Client:
        _refuse_fork()
        parsed = parse_location(location)
        prefix = PREFIX_OF_SCHEME.get(parsed.scheme)
        if prefix is None:
            raise LocationRefused(f"{location} is not in an object store: its scheme is {parsed.scheme}")
        key = (prefix, parsed.authority, writes)
        with self._lock:
            if key not in self._made:
                retries = _WRITING if writes else _READING
                with without_secrets(self.secrets):
                    self._made[key] = _make(prefix, parsed.authority, self.properties, retries)
            return self._made[key]


@cache
def _process_of_clients() -> int:
    return os.getpid()


def _refuse_fork() -> None:
    # All clients share threads that do not survive a fork: any call in the child would wait for them forever.
    if _process_of_clients() != os.getpid():
        raise StorageError(
            "this process was forked while object stores were in use, so it cannot use them",
            hint="Start processes with the spawn or forkserver method",
        )


def _make(prefix: str, bucket: str, properties: Mapping[str, str], retries: "RetryConfig") -> Client:
    own = f"{prefix}."
    config: dict[str, Any] = {
        key.removeprefix(own).replace("-", "_"): reveal(value)
        for key, value in properties.items()
        if key.startswith(own)
    }
    if (path_style := config.pop(_PATH_STYLE, None)) is not None:
        config["virtual_hosted_style_request"] = "false" if path_style == "true" else "true"
    plain = config.get("endpoint", "").startswith("http://")
    options: ClientConfig = {"allow_http": plain, "timeout": _TIMEOUT, "connect_timeout": _CONNECT_TIMEOUT}
    make: Any = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}[prefix]
    more = {} if prefix != "s3" else _only_given_keys(config)
    try:
        client: Client = make(bucket, config=config, client_options=options, retry_config=retries, **more)
    except (BaseError, ValueError, TypeError) as error:
        why = str(error).partition("\n")[0]
        raise InvalidInput(f"the settings of {prefix}://{bucket} are invalid: {why}") from error
    return client


def _only_given_keys(config: Mapping[str, str]) -> dict[str, Any]:
    """Keep the environment's session token from being sent with keys that it does not belong to."""
    if not set(_S3_KEYS) <= config.keys() or any("token" in key for key in config):
        return {}
    given = {**{key: config[key] for key in _S3_KEYS}, "expires_at": None}
    return {"credential_provider": lambda: given}


def _check_properties(properties: Mapping[str, str]) -> None:
    for key, value in properties.items():
        if _ALIASES.get(key, key) == key and not key.startswith(
            tuple(f"{prefix}." for prefix in PREFIX_OF_SCHEME.values())
        ):
            raise InvalidInput(f"unknown object store property {key!r}", hint="Known are s3.*, gs.* and az.*")
        if not isinstance(value, str):
            raise InvalidInput(f"the property {key} of an object store must be a string, not {type(value).__name__}")
        if key.endswith(("endpoint", "endpoint-url")):
            _check_endpoint(key, value)
        if key == "s3.path-style-access" and value not in ("true", "false"):
            raise InvalidInput(f"the property {key} must be true or false")


def _check_endpoint(key: str, value: str) -> None:
    """Reject an invalid URL without quoting it: it may contain a password."""
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput(f"the property {key} is not a valid URL", hint="Write it as https://host[:port]")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InvalidInput(
            f"the property {key} must not contain a user, a password or a query",
            hint="Write it as https://host[:port], and pass credentials as separate properties",
        )
