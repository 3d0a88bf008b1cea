"""Commit to a table: load, propose, write the new metadata, swap; in the one loop that `retry` holds.

Invariants:
- The swap is the only step that others can see. Everything before it writes new files that nobody refers to.
- A lost race removes the files of that attempt alone, and proposes again on the new base.
- If the reply to a swap is lost, nothing is removed until a look at the catalog tells what happened.

Raises ConcurrentChange (a concurrent commit contradicts this one), CommitConflict (still losing after all retries),
CommitStateUnknown (it may have landed: look before doing it again), NoSuchTable.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from icefield.ambient import Ambient
from icefield.catalog.catalog import Catalog, PointerSwap
from icefield.codec.metadata_json import compress_metadata, encode_metadata
from icefield.commit.action import Action, Workshop
from icefield.commit.load import load_table_metadata
from icefield.commit.retry import Outcome, SettledSwap, retry
from icefield.errors import IcefieldError, NoSuchTable
from icefield.model.apply import apply, check
from icefield.model.metadata import TableMetadata
from icefield.model.names import TableName
from icefield.model.snapshot import MetadataLogEntry
from icefield.properties import (
    METADATA_CODEC,
    METADATA_DELETE_AFTER_COMMIT,
    PREVIOUS_VERSIONS_MAX,
)
from icefield.storage.store import Store


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
            return retry(
                self.ambient,
                self.table,
                lambda: self._load(expected_uuid),
                lambda location, base: self._attempt(actions, location, base),
            )
        except IcefieldError as error:
            if error.cleanable:
                self._remove([location for action in actions for location in action.reusable_files()])
            raise

    def _load(self, expected_uuid: UUID) -> tuple[str, TableMetadata]:
        location = self.catalog.pointer(self.table)
        base = load_table_metadata(self.store, location)
        if not base.is_table(expected_uuid):
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
            location = write_metadata(metadata, base_location, workshop)
            written.append(location)
            self._swap(base_location, location)
        except IcefieldError as error:
            if error.cleanable:
                self._remove(written)
            raise
        self._remove(dropped)
        return Committed(metadata, location)

    def _swap(self, expected: str, new: str) -> None:
        def judge(current: str) -> Outcome:
            log = [entry.metadata_file for entry in load_table_metadata(self.store, current).metadata_log]
            if new in log:
                return Outcome.LANDED
            # Only a log that reaches back to `expected` proves that something else came after it.
            return Outcome.LOST if expected in log else Outcome.UNKNOWN

        SettledSwap(self.catalog, self.ambient, judge).make(PointerSwap(self.table, expected, new))

    def _remove(self, locations: Sequence[str]) -> None:
        remove_quietly(self.store, locations)


def remove_quietly(store: Store, locations: Sequence[str]) -> None:
    """Remove files that nobody refers to; one that cannot be removed is left to the collector."""
    for location in locations:
        try:
            store.delete(location)
        except IcefieldError:
            continue


def write_metadata(metadata: TableMetadata, previous_location: str | None, workshop: Workshop) -> str:
    """Write metadata to a new file, compressed if the table wants it, and return its location."""
    data, extension = encode_metadata(metadata), ".metadata.json"
    if METADATA_CODEC.read(metadata.properties) == "gzip":
        # (spec: Naming for GZIP compressed Metadata JSON files)
        data, extension = compress_metadata(data), f".gz{extension}"
    name = next_metadata_name(previous_location, workshop.ambient) + extension
    location = workshop.metadata_location(metadata, name)
    workshop.store.put_new(location, data)
    return location


def next_metadata_name(previous_location: str | None, ambient: Ambient) -> str:
    """Name a metadata file `NNNNN-<uuid>`, one number up, whatever extension the previous one has."""
    version = 0
    if previous_location is not None:
        number = previous_location.rsplit("/", 1)[-1].partition("-")[0].lstrip("v").partition(".")[0]
        version = int(number) + 1 if number.isdecimal() else 0
    return f"{version:05d}-{ambient.random_uuid()}"


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
