"""The settings of a REST catalog, with the names that Iceberg uses.

    token                    a bearer token
    credential               client-id:secret, to be exchanged for OAuth2 tokens
    oauth2-server-uri        the token endpoint
    scope                    what the token is for, as the token endpoint takes it
    audience                 who the token is for, as the token endpoint takes it
    resource                 which resource the token is for, as the token endpoint takes it
    header.<name>            a header of every request
    prefix                   the prefix of every path; usually given by the server
    view-endpoints-supported   `true`: the server has views, though it does not list its endpoints
    rest-page-size           how many names to request at a time
    rest-timeout-seconds     how long a request may take, from connecting to the last byte of the response (60)
    rest-max-answer-bytes    how large the metadata of a table or a view may be (256 MiB)
    rest-trusted-origins     servers, such as https://other.example, that the catalog may redirect credentials to
    rest-metrics-reporting-enabled   `false`: do not report commits to the server

Raises InvalidInput, whose message never contains a value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from icefield.ambient import Ambient
from icefield.catalog.rest.auth import (
    Anonymous,
    Authorization,
    BearerToken,
    ClientCredentials,
    OAuthTokens,
    is_header_value,
)
from icefield.catalog.rest.http import HttpClient, check_url, origin_of
from icefield.catalog.rest.session import MAX_ANSWER, TRUSTED
from icefield.errors import InvalidInput
from icefield.secrets import protect, reveal

TOKEN, CREDENTIAL, OAUTH_SERVER, SCOPE = "token", "credential", "oauth2-server-uri", "scope"
OAUTH_EXTRA = ("audience", "resource")
HEADER = "header."
PAGE_SIZE, TIMEOUT, REPORTS = "rest-page-size", "rest-timeout-seconds", "rest-metrics-reporting-enabled"
REST_PROPERTIES = (
    TOKEN,
    CREDENTIAL,
    OAUTH_SERVER,
    SCOPE,
    *OAUTH_EXTRA,
    "prefix",
    "view-endpoints-supported",
    PAGE_SIZE,
    TIMEOUT,
    MAX_ANSWER,
    TRUSTED,
    REPORTS,
)
DEFAULT_TIMEOUT_SECONDS = 60.0
DEFAULT_MAX_ANSWER_BYTES = 256 << 20


@dataclass(frozen=True)
class RestSettings:
    """Settings of a REST catalog.

    warehouse: the name or location that identifies the catalog on the server. properties: see above; others are for the
    store.
    """

    warehouse: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "properties", protect(self.properties))
        if TOKEN in self.properties and CREDENTIAL in self.properties:
            raise InvalidInput("a REST catalog takes a token or a credential, not both")
        if OAUTH_SERVER in self.properties and CREDENTIAL not in self.properties:
            raise InvalidInput(f"{OAUTH_SERVER} requires a credential", hint="Give credential = client-id:secret")
        if not is_header_value(reveal(self.properties.get(TOKEN, "none"))):
            raise InvalidInput(
                "the token of a REST catalog contains a line break, a blank or another invalid character",
                hint="Check the end of the file or variable that it comes from",
            )
        _ = (self.timeout_seconds, self.page_size, self.headers, self.max_answer_bytes, self.trusted_origins)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every request."""
        found = {k.removeprefix(HEADER): reveal(v) for k, v in self.properties.items() if k.startswith(HEADER)}
        for name, value in found.items():
            if not name or not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
                raise InvalidInput(f"{HEADER}{name} is not a valid header name")
            if not is_header_value(value):
                raise InvalidInput(f"{HEADER}{name} has a value that is not valid in a header")
        return found

    @property
    def timeout_seconds(self) -> float:
        """How long to wait for a response."""
        return self._number(TIMEOUT) or DEFAULT_TIMEOUT_SECONDS

    @property
    def max_answer_bytes(self) -> int:
        """How large the metadata of a table or a view may be."""
        return int(self._number(MAX_ANSWER) or DEFAULT_MAX_ANSWER_BYTES)

    @property
    def trusted_origins(self) -> frozenset[str]:
        """Servers that credentials may be sent to besides the catalog's own."""
        named = self.properties.get(TRUSTED, "").replace(",", " ").split()
        return frozenset(origin_of(check_url(each)) for each in named)

    @property
    def page_size(self) -> int | None:
        """How many names to request at a time."""
        found = self._number(PAGE_SIZE)
        return None if found is None else int(found)

    @property
    def said(self) -> dict[str, str]:
        """The client's properties in the merged configuration."""
        return {**self.properties, **({} if self.warehouse is None else {"warehouse": self.warehouse})}

    def authorization(self, url: str, http: HttpClient, ambient: Ambient) -> Authorization:
        """Return the authorization of requests."""
        given = self.properties
        if TOKEN in given:
            return BearerToken(given[TOKEN])
        if CREDENTIAL not in given:
            return Anonymous()
        # The token endpoint of the catalog is deprecated; clients fall back to it. (rest-catalog-open-api: getToken)
        server = check_url(given.get(OAUTH_SERVER, f"{url}/v1/oauth/tokens"))
        extra = {key: given[key] for key in OAUTH_EXTRA if key in given}
        credentials = ClientCredentials(server, given[CREDENTIAL], given.get(SCOPE, "catalog"), extra)
        return OAuthTokens(credentials, http, ambient)

    def _number(self, key: str) -> float | None:
        if key not in self.properties:
            return None
        try:
            found = float(self.properties[key])
        except ValueError:
            raise InvalidInput(f"{key} must be a number") from None  # the error itself quotes the value
        if not 0 < found < float("inf"):
            raise InvalidInput(f"{key} must be more than 0")
        return found
