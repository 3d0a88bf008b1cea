"""The one retry loop, and the one way to settle a swap whose reply was lost; for tables and views alike.

A caller says how to load a base, how to make one attempt on it, and how to judge from the current metadata whether a
swap took place. Raises CommitConflict (still losing after all retries) and CommitStateUnknown.
"""

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

RESOLVE_LOOKS = 5
RESOLVE_WAIT_SECONDS = 0.2


class Outcome(Enum):
    """What a look at the catalog tells of a swap whose reply was lost."""

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
    """Load and attempt until an attempt does not lose the race, or until the base's properties say to give up.

    turn: what to hold from the load to the end of an attempt, so that writers come one after the other.
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
        _back_off(ambient, tries, base.properties)


def _check_patience(
    name: TableName, properties: Mapping[str, str], tries: int, waited_ms: float, conflict: CommitConflict
) -> None:
    if tries > COMMIT_RETRIES.read(properties) or waited_ms > COMMIT_RETRY_TOTAL_MS.read(properties):
        raise CommitConflict(
            f"gave up committing to {name} after {tries} tries in {waited_ms:.0f} ms: "
            "other writers came first each time",
            hint=f"Run it again, or raise {COMMIT_RETRIES.key} on the table",
        ) from conflict


@dataclass(frozen=True)
class UnknownOutcome:
    """A change whose answer was lost; trace: what shows if it landed."""

    name: TableName
    trace: str
    cause: IcefieldError


def resolve_outcome(
    ambient: Ambient, outcome: UnknownOutcome, look: Callable[[], Outcome], again: Callable[[], bool]
) -> None:
    """Return once it is known that a change landed. Raises CommitConflict if it did not, CommitStateUnknown if unclear.

    look: what became of it. again: send it once more, while nothing has moved; says whether it landed.
    """
    for number in range(RESOLVE_LOOKS):
        match look():
            case Outcome.LANDED:
                return
            case Outcome.LOST:
                raise CommitConflict(f"{outcome.name} moved on without this commit") from outcome.cause
            case Outcome.UNMOVED if again():
                return
        ambient.sleep(RESOLVE_WAIT_SECONDS * 2**number)
    raise CommitStateUnknown(
        f"the commit to {outcome.name} may or may not have landed: the catalog does not tell",
        hint=f"It landed if {outcome.trace}; no file was removed",
    ) from outcome.cause


@dataclass(frozen=True)
class ResolvedSwap:
    """A swap that does not return before it is known what became of it.

    judge: tells, from the location of metadata that is neither the expected nor the new, whether ours came before.
    """

    catalog: Catalog
    ambient: Ambient
    judge: Callable[[str], Outcome]

    def make(self, *changes: PointerSwap) -> None:
        """Move pointers, all at once. Raises CommitConflict if others came first, CommitStateUnknown if unclear."""
        try:
            self.catalog.swap(changes)
        except CommitStateUnknown as unknown:
            self._resolve_outcome(changes, unknown)

    def _resolve_outcome(self, changes: Sequence[PointerSwap], unknown: CommitStateUnknown) -> None:
        """Find out whether a swap whose reply was lost took place; the first pointer tells of all.

        The new location was never used before, so wherever it shows up in the history the swap landed. While the
        pointer still stands at `expected`, swapping again is safe: whichever of the two requests arrives first makes
        the other fail. A swap that expects nothing has no such guard: a free name may be one that was taken by this
        very swap and dropped or renamed since, so it is never sent again.
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
                return Outcome.UNKNOWN  # dropped or renamed since; nobody can tell whether ours came before
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
    # Full jitter: racing writers spread over the whole interval instead of meeting again.
    shortest = COMMIT_RETRY_MIN_WAIT_MS.read(properties)
    longest = COMMIT_RETRY_MAX_WAIT_MS.read(properties)
    bound_ms = min(longest, shortest * 2 ** min(tries - 1, 16))
    ambient.sleep(ambient.uniform(0, bound_ms) / 1000)
