"""The one loop that commits: load, propose, write the new metadata, swap, and settle what is unclear.

Invariants:
- The swap is the only step that others can see. Everything before it writes new files that nobody refers to.
- A lost race removes the files of that attempt alone, and proposes again on the new base.
- If the reply to a swap is lost, nothing is removed until a look at the catalog tells what happened.

Raises ConcurrentChange (a concurrent commit contradicts this one), CommitConflict (still losing after all retries),
CommitStateUnknown (it may have landed: look before doing it again), NoSuchTable.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from uuid import UUID

from icefield.ambient import Ambient
from icefield.catalog.catalog import Catalog, PointerSwap
from icefield.codec.metadata_json import encode_metadata
from icefield.commit.action import Action, Workshop
from icefield.commit.load import load_table_metadata
from icefield.errors import (
    CommitConflict,
    CommitStateUnknown,
    IcefieldError,
    NoSuchTable,
)
from icefield.model.metadata import TableMetadata
from icefield.model.names import TableName
from icefield.model.snapshot import MetadataLogEntry
from icefield.model.updates import apply, check
from icefield.properties import (
    COMMIT_RETRIES,
    COMMIT_RETRY_MAX_WAIT_MS,
    COMMIT_RETRY_MIN_WAIT_MS,
    COMMIT_RETRY_TOTAL_MS,
    METADATA_DELETE_AFTER_COMMIT,
    PREVIOUS_VERSIONS_MAX,
)
from icefield.storage.store import Store

SETTLE_LOOKS = 5
SETTLE_WAIT_SECONDS = 0.2


class Outcome(Enum):
    """What a look at the catalog tells of a swap whose reply was lost."""

    LANDED = "landed"
    LOST = "lost"
    UNMOVED = "unmoved"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Committed:
    """The table as a commit left it."""

    metadata: TableMetadata
    location: str


@dataclass(frozen=True)
class Committer:
    """Commits actions to one table."""

    catalog: Catalog
    store: Store
    ambient: Ambient
    table: TableName

    def commit(self, actions: Sequence[Action], expected_uuid: UUID) -> Committed:
        """Make all actions in one swap, trying again when others come first."""
        try:
            return self._retry(actions, expected_uuid)
        except IcefieldError as error:
            if error.cleanable:
                self._remove([location for action in actions for location in action.reusable_files()])
            raise

    def _retry(self, actions: Sequence[Action], expected_uuid: UUID) -> Committed:
        started = self.ambient.monotonic()
        attempt = 0
        while True:
            base_location, base = self._load(expected_uuid)
            try:
                return self._attempt(actions, base_location, base)
            except CommitConflict as conflict:
                attempt += 1
                waited_ms = (self.ambient.monotonic() - started) * 1000
                if attempt > COMMIT_RETRIES.read(base.properties) or waited_ms > COMMIT_RETRY_TOTAL_MS.read(
                    base.properties
                ):
                    raise CommitConflict(
                        f"gave up committing to {self.table} after {attempt} tries in {waited_ms:.0f} ms: "
                        "other writers came first each time",
                        hint="Run it again, or raise commit.retry.num-retries on the table",
                    ) from conflict
            self._back_off(attempt, base)

    def _load(self, expected_uuid: UUID) -> tuple[str, TableMetadata]:
        location = self.catalog.pointer(self.table)
        base = load_table_metadata(self.store, location)
        if base.table_uuid != expected_uuid:
            raise NoSuchTable(f"table {self.table} was dropped and made anew since it was opened", hint="Open it again")
        return location, base

    def _attempt(self, actions: Sequence[Action], base_location: str, base: TableMetadata) -> Committed:
        workshop = Workshop(self.store, self.ambient)
        written: list[str] = []
        try:
            metadata = base
            for action in actions:
                change = action.propose(metadata, workshop)
                written.extend(change.files)
                check(metadata, change.requirements)
                metadata = apply(metadata, change.updates, self.ambient.now_ms())
            metadata, dropped = _with_log_entry(metadata, base, base_location)
            location = workshop.metadata_location(metadata, next_metadata_name(base_location, self.ambient))
            self.store.put_new(location, encode_metadata(metadata))
            written.append(location)
            self._swap(base_location, location)
        except IcefieldError as error:
            if error.cleanable:
                self._remove(written)
            raise
        self._remove(dropped)
        return Committed(metadata, location)

    def _swap(self, expected: str, new: str) -> None:
        try:
            self.catalog.swap([PointerSwap(self.table, expected, new)])
        except CommitStateUnknown as unknown:
            self._settle(expected, new, unknown)

    def _settle(self, expected: str, new: str, unknown: CommitStateUnknown) -> None:
        """Find out whether a swap whose reply was lost took place.

        The new location was never used before, so wherever it shows up in the table's history the swap landed. While
        the pointer still stands at `expected`, swapping again is safe: whichever of the two requests arrives first
        makes the other fail.
        """
        for look in range(SETTLE_LOOKS):
            match self._look(expected, new):
                case Outcome.LANDED:
                    return
                case Outcome.LOST:
                    raise CommitConflict(f"{self.table} moved on without this commit") from unknown
                case Outcome.UNMOVED if self._swap_again(expected, new):
                    return
            self.ambient.sleep(SETTLE_WAIT_SECONDS * 2**look)
        raise CommitStateUnknown(
            f"the commit to {self.table} may or may not have landed: the catalog does not tell",
            hint=f"It landed if {new} is in the table's metadata log; no file was removed",
        ) from unknown

    def _look(self, expected: str, new: str) -> Outcome:
        try:
            current = self.catalog.pointer(self.table)
            if current == expected:
                return Outcome.UNMOVED
            log = [e.metadata_file for e in load_table_metadata(self.store, current).metadata_log]
        except IcefieldError:
            return Outcome.UNKNOWN
        history = [*log, current]
        if new in history:
            return Outcome.LANDED
        # Only a log that reaches back to `expected` proves that something else came after it.
        return Outcome.LOST if expected in history else Outcome.UNKNOWN

    def _swap_again(self, expected: str, new: str) -> bool:
        try:
            self.catalog.swap([PointerSwap(self.table, expected, new)])
        except IcefieldError:
            return False
        return True

    def _back_off(self, attempt: int, base: TableMetadata) -> None:
        # Full jitter: racing writers spread over the whole interval instead of meeting again.
        shortest = COMMIT_RETRY_MIN_WAIT_MS.read(base.properties)
        longest = COMMIT_RETRY_MAX_WAIT_MS.read(base.properties)
        bound_ms = min(longest, shortest * 2 ** min(attempt - 1, 16))
        self.ambient.sleep(self.ambient.uniform(0, bound_ms) / 1000)

    def _remove(self, locations: Sequence[str]) -> None:
        remove_quietly(self.store, locations)


def remove_quietly(store: Store, locations: Sequence[str]) -> None:
    """Remove files that nobody refers to; one that cannot be removed is left to the collector."""
    for location in locations:
        try:
            store.delete(location)
        except IcefieldError:
            continue


def next_metadata_name(previous_location: str | None, ambient: Ambient) -> str:
    """Name a metadata file `NNNNN-<uuid>.metadata.json`, one number up."""
    version = 0
    if previous_location is not None:
        number = previous_location.rsplit("/", 1)[-1].partition("-")[0].lstrip("v").partition(".")[0]
        version = int(number) + 1 if number.isdecimal() else 0
    return f"{version:05d}-{ambient.random_uuid()}.metadata.json"


def _with_log_entry(
    metadata: TableMetadata, base: TableMetadata, base_location: str
) -> tuple[TableMetadata, list[str]]:
    """Log the file that this commit replaces, and name the files that fall out of the log."""
    log = (*base.metadata_log, MetadataLogEntry(base.last_updated_ms, base_location))
    kept = log[-PREVIOUS_VERSIONS_MAX.read(metadata.properties) :]
    gone = [entry.metadata_file for entry in log[: len(log) - len(kept)]]
    if not METADATA_DELETE_AFTER_COMMIT.read(metadata.properties):
        gone = []
    return replace(metadata, metadata_log=kept), gone
