"""Error responses of a REST catalog as Icefield's errors. (rest-catalog-open-api.yaml: ErrorModel)

The error type in the response takes precedence over the status, because one status has several meanings. A server error
(5xx) leaves the outcome of a change unknown, whatever its type, and so does the type for an unknown outcome under any
status: gateways and servers have been wrong about both.
"""

from enum import Enum

import msgspec

from icefield.catalog.rest.http import Answer
from icefield.errors import (
    AlreadyExists,
    CatalogError,
    CommitConflict,
    CommitStateUnknown,
    IcefieldError,
    InvalidInput,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    NotFound,
    Unsupported,
)

MAX_WORDS = 1000


class Verb(Enum):
    """The type of a request, which decides what 409 means, and what a lost response means."""

    READ = "read"
    CHANGE = "change"
    COMMIT = "commit"


_BY_TYPE: dict[str, type[IcefieldError]] = {
    "NoSuchTableException": NoSuchTable,
    "NoSuchIcebergTableException": NoSuchTable,
    "NoSuchNamespaceException": NoSuchNamespace,
    "NoSuchViewException": NotFound,
    "AlreadyExistsException": AlreadyExists,
    "NamespaceNotEmptyException": NamespaceNotEmpty,
    "CommitFailedException": CommitConflict,
    "UnsupportedOperationException": Unsupported,
    "UnprocessableEntityException": InvalidInput,
}
_UNKNOWN_OUTCOME = "CommitStateUnknownException"
_BY_STATUS: dict[int, type[IcefieldError]] = {405: Unsupported, 406: Unsupported, 422: InvalidInput, 501: Unsupported}
_HINTS = {
    401: "Check the token or the credential",
    403: "Ask the administrator of the catalog for permission",
    419: "The token has expired; give a new one, or a credential that gets new ones",
}


def error_of(answer: Answer, doing: str, verb: Verb, missing: type[IcefieldError] = NotFound) -> IcefieldError:
    """Return the error of a response. missing: the error for a 404 without a type."""
    said = _decode(answer)
    kind = _kind(answer.status, said.type, verb, missing)
    words = f": {said.message[:MAX_WORDS]}" if said.message else ""
    return kind(f"cannot {doing}: the catalog responded with {answer.status}{words}", hint=_HINTS.get(answer.status))


def _kind(status: int, named: str, verb: Verb, missing: type[IcefieldError]) -> type[IcefieldError]:
    if verb is not Verb.READ and (named == _UNKNOWN_OUTCOME or (status >= 500 and status != 501)):
        return CommitStateUnknown
    if 400 <= status < 500 and named in _BY_TYPE:
        return _BY_TYPE[named]
    if status == 404:
        return missing
    if status == 409:
        return CommitConflict if verb is Verb.COMMIT else AlreadyExists
    return _BY_STATUS.get(status, CatalogError)


class _Error(msgspec.Struct):
    message: str | None = None
    type: str = ""


class _Envelope(msgspec.Struct):
    error: _Error


def _decode(answer: Answer) -> _Error:
    try:
        return msgspec.json.decode(answer.body, type=_Envelope).error
    except ValueError:
        return _Error()
