"""The retry loop, and the resolution of unknown commit outcomes; for tables and views.

A caller provides functions to load a base, to make one attempt on it, and to determine from the current metadata
whether a swap succeeded. Raises CommitConflict (all retries conflicted) and CommitStateUnknown.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeVar

from icefield.ambient import Ambient
from icefield.catalog.catalog import Catalog, PointerSwap
from icefield.errors import CommitConflict, CommitStateUnknown, IcefieldError
from icefield.model.names import TableName
from icefield.properties.table import (
    COMMIT_RETRIES,
    COMMIT_RETRY_MAX_WAIT_MS,
    COMMIT_RETRY_MIN_WAIT_MS,
    COMMIT_RETRY_TOTAL_MS,
)

LOG = logging.getLogger("icefield.commit")
RESOLVE_LOOKS = 5
RESOLVE_WAIT_SECONDS = 0.2


class Outcome(Enum):
    """The outcome of a swap whose response was lost."""

    LANDED = "landed"
    LOST = "lost"
    UNMOVED = "unmoved"
    UNKNOWN = "unknown"


class HasProperties(Protocol):
    """A base whose properties say how often and how long to retry."""

    @property
    def properties(self) -> Mapping[str, str]: ...


Base = TypeVar("Base", bound=HasProperties)
Result = TypeVar("Result")


def retry(
    ambient: Ambient,
    name: TableName,
    load: Callable[[], tuple[str, Base]],
    attempt: Callable[[str, Base], Result],
    slot: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Result:
    """Load and attempt until an attempt does not conflict, or until the retries of the base's properties are used up.

    slot: held from the load to the end of an attempt, so that writers commit one after another.
    """
    started = ambient.monotonic()
    tries = 0
    while True:
        with slot():
            location, base = load()
            try:
                return attempt(location, base)
            except CommitConflict as conflict:
                tries += 1
                waited_ms = (ambient.monotonic() - started) * 1000
                _check_patience(name, base.properties, tries, waited_ms, conflict)
                LOG.info("attempt %d to commit to %s conflicted, trying again: %s", tries, name, conflict)
        _back_off(ambient, tries, base.properties)


def _check_patience(
    name: TableName, properties: Mapping[str, str], tries: int, waited_ms: float, conflict: CommitConflict
) -> None:
    if tries > COMMIT_RETRIES.read(properties) or waited_ms > COMMIT_RETRY_TOTAL_MS.read(properties):
        raise CommitConflict(
            f"gave up committing to {name} after {tries} tries in {waited_ms:.0f} ms: "
            "other writers committed first each time",
            hint=f"Run it again, or raise {COMMIT_RETRIES.key} on the table",
        ) from conflict


@dataclass(frozen=True)
class UnknownOutcome:
    """A change whose response was lost; trace: how to see that it was committed."""

    name: TableName
    trace: str
    cause: IcefieldError


def resolve_outcome(
    ambient: Ambient, outcome: UnknownOutcome, look: Callable[[], Outcome], again: Callable[[], bool]
) -> None:
    """Return once a change is known to be committed. Raises CommitConflict if it was not, else CommitStateUnknown.

    look: returns the outcome. again: sends it once more, if nothing has moved; returns whether it was committed.
    """
    for number in range(RESOLVE_LOOKS):
        match look():
            case Outcome.LANDED:
                return
            case Outcome.LOST:
                raise CommitConflict(f"{outcome.name} was changed by another commit") from outcome.cause
            case Outcome.UNMOVED if again():
                return
        LOG.warning("the outcome of a commit to %s is not known yet: %s", outcome.name, outcome.cause)
        ambient.sleep(RESOLVE_WAIT_SECONDS * 2**number)
    raise CommitStateUnknown(
        f"the commit to {outcome.name} may or may not have succeeded: its outcome cannot be determined",
        hint=f"It succeeded if {outcome.trace}; no file was removed",
    ) from outcome.cause


@dataclass(frozen=True)
class ResolvedSwap:
    """A swap that returns only once its outcome is known.

    judge: determines, from the location of metadata that is neither expected nor new, whether ours came before.
    """

    catalog: Catalog
    ambient: Ambient
    judge: Callable[[str], Outcome]

    def make(self, *changes: PointerSwap) -> None:
        """Swap pointers atomically. Raises CommitConflict, or CommitStateUnknown if the outcome is unknown."""
        try:
            self.catalog.swap(changes)
        except CommitStateUnknown as unknown:
            self._resolve_outcome(changes, unknown)

    def _resolve_outcome(self, changes: Sequence[PointerSwap], unknown: CommitStateUnknown) -> None:
        """Determine the outcome of a swap whose response was lost; the first pointer decides for all.

        The new location is unique, so the swap succeeded if the location is anywhere in the history. While the pointer
        is still at `expected`, repeating the swap is safe: whichever request arrives first makes the other fail. A swap
        that expects no pointer has no such guard: the name may be free because this swap took it and it was dropped or
        renamed since, so it is never repeated.
        """
        change = changes[0]
        trace = f"{change.new} is in the {change.kind.value}'s history"
        outcome = UnknownOutcome(change.table, trace, unknown)
        resolve_outcome(self.ambient, outcome, lambda: self._look(change), lambda: self._swap_again(changes))

    def _look(self, change: PointerSwap) -> Outcome:
        try:
            entry = self.catalog.find(change.table)
            current = entry.pointer if entry is not None and entry.kind is change.kind else None
            if current is None:
                return Outcome.UNKNOWN  # dropped or renamed since; whether ours came before is unknown
            if current == change.expected:
                return Outcome.UNMOVED
            return Outcome.LANDED if current == change.new else self.judge(current)
        except IcefieldError:
            return Outcome.UNKNOWN

    def _swap_again(self, changes: Sequence[PointerSwap]) -> bool:
        try:
            self.catalog.swap(changes)
        except IcefieldError:
            return False
        return True


def _back_off(ambient: Ambient, tries: int, properties: Mapping[str, str]) -> None:
    # Full jitter: competing writers spread over the whole interval instead of colliding again.
    shortest = COMMIT_RETRY_MIN_WAIT_MS.read(properties)
    longest = COMMIT_RETRY_MAX_WAIT_MS.read(properties)
    bound_ms = min(longest, shortest * 2 ** min(tries - 1, 16))
    ambient.sleep(ambient.uniform(0, bound_ms) / 1000)
