"""Commit to one table or several: load, propose, write the new metadata, swap; in the one loop that `retry` holds.

Invariants:
- The swap is the only step that others can see. Everything before it writes new files that nobody refers to.
- A lost race removes the files of that attempt alone, and proposes again on the new base.
- If the reply to a swap is lost, nothing is removed until a look at the catalog tells what happened.

Raises ConcurrentChange (a concurrent commit contradicts this one), CommitConflict (still losing after all retries),
CommitStateUnknown (it may have landed: look before doing it again), NoSuchTable.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from uuid import UUID

from icefield.ambient import Ambient
from icefield.catalog.catalog import Catalog, PointerSwap
from icefield.catalog.lane import NO_LANES, Lanes
from icefield.codec.metadata_json import compress_metadata, encode_metadata
from icefield.commit.action import Action, Workshop
from icefield.commit.load import load_table_metadata
from icefield.commit.retry import Outcome, SettledSwap, retry
from icefield.errors import ConcurrentChange, IcefieldError, NoSuchTable
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
class Part:
    """What a commit does to one table."""

    table: TableName
    actions: Sequence[Action]
    expected_uuid: UUID


@dataclass(frozen=True)
class Committer:
    """Commits actions to one table, or to several at once."""

    catalog: Catalog
    store: Store
    ambient: Ambient
    lanes: Lanes = NO_LANES

    def commit(self, parts: Sequence[Part], unmoved: Mapping[TableName, str] | None = None) -> list[Committed]:
        """Make all actions in one swap, trying again when others come first.

        unmoved: pointers of tables that were only read, and must still stand where they did.
        """
        still = [PointerSwap(table, pointer, pointer) for table, pointer in (unmoved or {}).items()]
        try:
            return retry(
                self.ambient,
                parts[0].table,
                lambda: self._load(parts, still),
                lambda _, bases: self._attempt(parts, bases, still),
                lambda: self._turn(parts),
            )
        except IcefieldError as error:
            if error.cleanable:
                self._remove([f for part in parts for action in part.actions for f in action.reusable_files()])
            raise

    @contextmanager
    def _turn(self, parts: Sequence[Part]) -> Iterator[None]:
        with ExitStack() as turns:
            # In one order, so that no two transactions wait for each other.
            for table in sorted({part.table for part in parts}, key=str):
                turns.enter_context(self.lanes.turn(table))
            yield

    def _load(self, parts: Sequence[Part], still: Sequence[PointerSwap]) -> tuple[str, "_Bases"]:
        for read in still:
            if self.catalog.pointer(read.table) != read.expected:
                raise ConcurrentChange(
                    f"cannot commit: {read.table}, which the transaction read, was changed meanwhile",
                    hint="Nothing was changed; run the transaction again",
                )
        bases = _Bases([self._load_base(part) for part in parts])
        return bases.tables[0].location, bases

    def _load_base(self, part: Part) -> Committed:
        location = self.catalog.pointer(part.table)
        base = load_table_metadata(self.store, location)
        if not base.is_table(part.expected_uuid):
            raise NoSuchTable(f"table {part.table} was dropped and made anew since it was opened", hint="Open it again")
        return Committed(base, location)

    def _attempt(self, parts: Sequence[Part], bases: "_Bases", still: Sequence[PointerSwap]) -> list[Committed]:
        workshop = Workshop(self.store, self.ambient)
        written: list[str] = []
        made: list[Committed] = []
        dropped: list[str] = []
        try:
            for part, base in zip(parts, bases.tables, strict=True):
                proposed = propose_all(part.actions, base.metadata, workshop, written)
                if proposed is base.metadata:
                    made.append(base)
                    continue
                metadata, old = _with_log_entry(proposed, base.metadata, base.location)
                location = write_metadata(metadata, base.location, workshop)
                written.append(location)
                made.append(Committed(metadata, location))
                dropped.extend(old)
            moves = [
                PointerSwap(part.table, base.location, new.location)
                for part, base, new in zip(parts, bases.tables, made, strict=True)
            ]
            if made != list(bases.tables):
                moves.sort(key=lambda move: move.new == move.expected)  # what moves comes first: it tells of the rest
                self._swap([*moves, *still])
        except IcefieldError as error:
            if error.cleanable:
                self._remove(written)
            raise
        self._remove(dropped)
        return made

    def _swap(self, changes: Sequence[PointerSwap]) -> None:
        # All of them landed or none did, so that what became of the first tells of all.
        first = changes[0]

        def judge(current: str) -> Outcome:
            log = [entry.metadata_file for entry in load_table_metadata(self.store, current).metadata_log]
            if first.new in log:
                return Outcome.LANDED
            # Only a log that reaches back to `expected` proves that something else came after it.
            return Outcome.LOST if first.expected in log else Outcome.UNKNOWN

        SettledSwap(self.catalog, self.ambient, judge).make(*changes)

    def _remove(self, locations: Sequence[str]) -> None:
        remove_quietly(self.store, locations)


def propose_all(
    actions: Sequence[Action], base: TableMetadata, workshop: Workshop, written: list[str]
) -> TableMetadata:
    """Propose actions, each on the table as the previous one left it; `written` learns of the files for this base."""
    for action in actions:
        change = action.propose(base, workshop)
        written.extend(change.files)
        check(base, change.requirements)
        if change.updates:
            base = apply(base, change.updates, workshop.ambient.now_ms())
    return base


@dataclass(frozen=True)
class _Bases:
    """The tables as an attempt finds them; the first one's properties say how often to try."""

    tables: Sequence[Committed]

    @property
    def properties(self) -> Mapping[str, str]:
        return self.tables[0].metadata.properties


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
