"""Translate the errors of an object store's client.

A write that failed either certainly did not happen (the store refused it, or was never reached) or may have happened
(the response was lost, or the server failed after it had begun). `find_failure` distinguishes the two; `explain`
returns the error for the user, with the store's own code and a hint.
"""

import re
from enum import Enum

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)

from icefield.errors import StorageError

# The client raises built-in errors for a missing key and for an invalid path.
CLIENT_ERRORS = (BaseError, FileNotFoundError, ValueError)

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(.*?)</Code>(?:\s*<Message>(.*?)</Message>)?", re.DOTALL)
_CREDENTIALS = "Check the access key, the secret and the session token, and what they may do in this bucket"
_HINTS = {
    "NoSuchBucket": "Create the bucket, or correct the location",
    "InvalidAccessKeyId": _CREDENTIALS,
    "SignatureDoesNotMatch": _CREDENTIALS,
    "AccessDenied": _CREDENTIALS,
    "ExpiredToken": "Get a new session token",
    "PermanentRedirect": "Set s3.region to the region of the bucket",
    "AuthorizationHeaderMalformed": "Set s3.region to the region of the bucket",
}
_NO_CREDENTIALS = "Give s3.access-key-id and s3.secret-access-key, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"


class Failure(Enum):
    """What is certain after an error."""

    MISSING = "the key is not there"
    TAKEN = "the condition of a write did not hold"
    OUT_OF_RANGE = "the range begins behind the end of the object"
    BUSY = "another conditional write was under way; this one did not happen"
    REFUSED = "the store said no; nothing happened"
    UNREACHABLE = "no request was sent"
    UNKNOWN = "the request may have been carried out"


def find_failure(error: Exception) -> Failure:
    """Return what is certain after an error of the client."""
    text = str(error)
    status = _status(text)
    if isinstance(error, FileNotFoundError):
        return Failure.REFUSED if "NoSuchBucket" in text else Failure.MISSING
    if isinstance(error, (AlreadyExistsError, PreconditionError)):
        # S3 responds with 409, not 412, to a conditional write that conflicts with a concurrent one, and expects a
        # retry.
        return Failure.BUSY if status == 409 else Failure.TAKEN
    if isinstance(error, (PermissionDeniedError, UnauthenticatedError, UnknownConfigurationKeyError, ValueError)):
        return Failure.REFUSED
    if status == 416:
        return Failure.OUT_OF_RANGE
    if "kind: Connect" in text:
        return Failure.UNREACHABLE
    # 408 and 429 come from servers and proxies that may have read the request.
    return Failure.REFUSED if 400 <= status < 500 and status not in (408, 429) else Failure.UNKNOWN


def explain(error: Exception, action: str, location: str) -> StorageError:
    """Return the error to show for one of the client's."""
    text = str(error)
    if _asked_for_credentials(text):
        return StorageError(f"cannot {action} {location}: there are no credentials", hint=_NO_CREDENTIALS)
    if find_failure(error) is Failure.UNREACHABLE:
        hint = "Check the endpoint, the region and the network"
        return StorageError(f"cannot {action} {location}: the store cannot be reached", hint=hint)
    if found := _CODE.search(text):
        code, message = found.group(1), (found.group(2) or "").rstrip(". ")
        return StorageError(f"cannot {action} {location}: {code}: {message}", hint=_HINTS.get(code))
    refused = isinstance(error, (PermissionDeniedError, UnauthenticatedError))
    return StorageError(f"cannot {action} {location}: {_first_line(text)}", hint=_CREDENTIALS if refused else None)


def _asked_for_credentials(text: str) -> bool:
    # Without credentials the client queries the cloud's instance metadata service.
    return "169.254.169.254" in text or "/latest/api/token" in text


def _first_line(text: str) -> str:
    return text.partition("\n")[0].rstrip(": ")


def _status(text: str) -> int:
    found = _STATUS.search(text)
    return int(found.group(1)) if found else 0
