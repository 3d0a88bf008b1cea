"""One check of the doctor: what it looked at, what it found, and how to mend it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from icefield.errors import IcefieldError


class Status(StrEnum):
    """How a check ended. A warning is something that works, but not well, or not everywhere."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True)
class Check:
    """What one check found. mend: what to do about it."""

    name: str
    status: Status
    found: str
    mend: str | None = None

    def as_dict(self) -> dict[str, str | None]:
        """Return the check as plain values."""
        return {"check": self.name, "status": self.status.value, "found": self.found, "mend": self.mend}


def ok(name: str, found: str, mend: str | None = None) -> Check:
    """Return a check that found nothing wrong."""
    return Check(name, Status.OK, found, mend)


def attempt(name: str, run: Callable[[], Check], mend: str) -> Check:
    """Run a check; an error is its finding. mend: what to do where the error has no hint."""
    try:
        return run()
    except IcefieldError as error:
        return Check(name, Status.FAILED, error.message, error.hint or mend)
    except Exception as error:  # a doctor that crashes helps nobody
        said = str(error).strip().splitlines()
        return Check(name, Status.FAILED, f"{type(error).__name__}: {said[0] if said else ''}".rstrip(": "), mend)
