"""Authorization: a bearer token, or an OAuth2 token for client credentials. (RFC 6749, section 4.4)

A token is renewed shortly before it expires, and when a server rejects it, so that long runs outlive their first token.
No repr and no error shows a secret.

Raises CatalogError, InvalidInput.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from icefield.ambient import Ambient
from icefield.catalog.rest.http import Answer, HttpClient, Request
from icefield.errors import CatalogError, CommitStateUnknown, InvalidInput
from icefield.secrets import Secret, redact, reveal
from icefield.storage.process_lock import ProcessLock

EARLY_SECONDS = 60  # how long before its expiry a token is renewed, or a quarter of its lifetime if that is less


class Authorization(Protocol):
    """How requests are authorized."""

    def headers(self) -> Mapping[str, str]:
        """Return the headers for a request."""
        ...

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Return whether there are other headers to try after these were rejected."""
        ...

    def secrets(self) -> Iterable[str]:
        """Return the secrets that no message may show."""
        ...


@dataclass(frozen=True)
class Anonymous:
    """No authorization."""

    def headers(self) -> Mapping[str, str]:
        return {}

    def renew(self, refused: Mapping[str, str]) -> bool:
        return False

    def secrets(self) -> Iterable[str]:
        return ()


@dataclass(frozen=True)
class BearerToken:
    """A fixed token."""

    token: str = field(repr=False)

    def headers(self) -> Mapping[str, str]:
        return _bearer(self.token)

    def renew(self, refused: Mapping[str, str]) -> bool:
        return False

    def secrets(self) -> Iterable[str]:
        return (self.token,)


@dataclass(frozen=True)
class ClientCredentials:
    """A client's credentials, and where it gets its tokens.

    extra: further fields of the request, such as `audience` and `resource`.
    """

    server_uri: str
    credential: str = field(repr=False)
    scope: str = "catalog"
    extra: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.credential.strip(":") or self.credential != self.credential.strip():
            raise InvalidInput("the credential of a REST catalog must be client-id:secret, or only the secret")

    @property
    def form(self) -> dict[str, str]:
        """The fields of the request."""
        # As in Iceberg's clients: the client id is the part up to the first colon.
        client, colon, secret = reveal(self.credential).partition(":")
        known = {"client_id": client, "client_secret": secret} if colon else {"client_secret": client}
        return {"grant_type": "client_credentials", **known, "scope": self.scope, **self.extra}

    def secrets(self) -> Iterable[str]:
        """Return what no message may show."""
        return (self.credential, self.form["client_secret"])


class OAuthTokens:
    """Tokens for a client's credentials, requested when they are needed."""

    def __init__(self, credentials: ClientCredentials, http: HttpClient, ambient: Ambient) -> None:
        self._credentials = credentials
        self._http = http
        self._ambient = ambient
        self._lock = ProcessLock()
        self._token: str | None = None
        self._good_until: float | None = None

    def headers(self) -> Mapping[str, str]:
        with self._lock:
            is_late = self._good_until is not None and self._ambient.monotonic() >= self._good_until
            if self._token is None or is_late:
                self._fetch()
            assert self._token is not None
            return _bearer(self._token)

    def renew(self, refused: Mapping[str, str]) -> bool:
        with self._lock:
            # Another thread may have renewed the token already, when its request was rejected.
            if self._token is None or _bearer(self._token) == dict(refused):
                self._fetch()
        return True

    def secrets(self) -> Iterable[str]:
        token = self._token
        return (*self._credentials.secrets(), *(() if token is None else (token,)))

    def _fetch(self) -> None:
        self._token = None
        uri = self._credentials.server_uri
        try:
            answer = self._http.send(Request("POST", uri, form=self._credentials.form))
        except CommitStateUnknown as lost:
            raise CatalogError(f"no response from the token endpoint {uri}") from lost
        if not answer.is_success:
            raise CatalogError(
                f"{uri} rejected the credential: {redact(_reason(answer), self.secrets())}",
                hint="Check credential, scope and oauth2-server-uri",
            )
        try:
            token = msgspec.json.decode(answer.body, type=_Token)
        except ValueError as error:
            raise CatalogError(f"malformed token response from {uri}") from error
        if not is_header_value(token.access_token):
            raise CatalogError(f"{uri} returned a token with characters that are not valid in a header")
        self._token = Secret(token.access_token)
        self._good_until = None
        if token.expires_in is not None:
            early = min(EARLY_SECONDS, token.expires_in / 4)
            self._good_until = self._ambient.monotonic() + token.expires_in - early


class _Token(msgspec.Struct):
    access_token: str
    expires_in: float | None = None


class _Refusal(msgspec.Struct):
    error: str = ""
    error_description: str = ""


def is_header_value(text: str) -> bool:
    """Return whether a text can be sent in a header. (RFC 9110, section 5.5)"""
    return text.isascii() and text.isprintable() and text == text.strip() and text != ""


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {reveal(token)}"}


def _reason(answer: Answer) -> str:
    """Return the server's error message (RFC 6749, section 5.2), or the status alone."""
    try:
        said = msgspec.json.decode(answer.body, type=_Refusal)
    except ValueError:
        said = _Refusal()
    words = " ".join(word for word in (said.error, said.error_description) if word)
    return f"{answer.status} {words}".strip()
