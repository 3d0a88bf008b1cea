"""Load tables and commit proposals: the interface between the commit loop and a catalog.

`TableOperations` load tables and commit proposals atomically. `PointerTableOperations` writes metadata.json and moves
pointers with `swap`; a REST server writes metadata itself and has its own operations.

Raises CommitConflict (another writer committed first), CommitStateUnknown (outcome unknown), NoSuchTable,
AlreadyExists.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from icefield.arguments import whole_number
from icefield.codec.json.metadata_owner import ENTRY_KEY, CatalogEntry, decode_entry, encode_entry
from icefield.deferred import deferred_imports
from icefield.errors import MissingFile
from icefield.properties.table import METADATA_CODEC, PREVIOUS_VERSIONS_MAX

with deferred_imports(__name__):
    from icefield.backend import Backend
    from icefield.catalog.catalog import Catalog, Guard, PointerSwap
    from icefield.codec.json.keys import deflate_json
    from icefield.codec.json.metadata import encode_metadata
    from icefield.codec.json.snapshots import carry_snapshots
    from icefield.commit.action import ProposedChange, WriteContext
    from icefield.commit.attempt import Attempt
    from icefield.commit.load import load_table_metadata
    from icefield.commit.retry import Outcome, ResolvedSwap
    from icefield.commit.validate.ownership import Claim, claim_of, guard_of, roots_of
    from icefield.leases.record import uuid_of_write
    from icefield.model.metadata import TableMetadata
    from icefield.model.names import TableName
    from icefield.model.snapshot import MetadataLogEntry
    from icefield.model.updates import Update

# A smaller file is one request however it is stored, and people can read it.
COMPRESSED_FROM_BYTES = 16 * 1024

IN_FLIGHT_MS = 3600 * 1000  # how long a commit may take from its metadata file to its swap
Pointers = TypeVar("Pointers")
Loaded = TypeVar("Loaded")


@dataclass(frozen=True)
class TableVersion:
    """The table after a commit."""

    metadata: TableMetadata
    location: str


@dataclass(frozen=True)
class Proposal:
    """The changes of one table, and its base with all of them applied."""

    table: TableName
    base: TableVersion
    changes: Sequence[ProposedChange]
    metadata: TableMetadata

    @property
    def updates(self) -> list[Update]:
        """The updates of all changes, in order; empty if there is nothing to do."""
        return [update for change in self.changes for update in change.updates]


class TableOperations(Protocol):
    """Loads tables and commits proposals."""

    places_tables: bool  # whether the catalog chooses the location of a new table

    def load(self, table: TableName, known: TableVersion | None = None) -> TableVersion:
        """Return the newest version, or `known` itself if it still is the newest."""
        ...

    def load_all(
        self, tables: Iterable[TableName], known: Mapping[TableName, TableVersion]
    ) -> dict[TableName, TableVersion]:
        """Return the versions of several tables as of one moment, in the same way; missing tables are left out."""
        ...

    def commit(
        self, proposals: Sequence[Proposal], unmoved: Mapping[TableName, str], attempt: Attempt
    ) -> Sequence[TableVersion]:
        """Commit all proposals atomically, if the tables of `unmoved` have not changed; return the new versions.

        attempt: records the files that are written, and that the catalog was called.
        """
        ...

    def stage(self, table: TableName, location: str | None, metadata: TableMetadata) -> TableMetadata:
        """Return the first metadata of a table that `create` creates; None: at a location that the catalog chooses."""
        ...

    def create(self, proposal: Proposal, attempt: Attempt) -> TableVersion:
        """Commit the first version of a table: its base was staged, and the changes of the proposal are applied."""
        ...


@dataclass(frozen=True)
class PointerTableOperations:
    """Commits by writing metadata files and swapping pointers."""

    backend: Backend
    places_tables = False

    def load(self, table: TableName, known: TableVersion | None = None) -> TableVersion:
        return self._look_again(lambda: self.backend.catalog.pointer(table), lambda found: self._load_at(found, known))

    def load_all(
        self, tables: Iterable[TableName], known: Mapping[TableName, TableVersion]
    ) -> dict[TableName, TableVersion]:
        wanted = list(tables)

        def load(found: dict[TableName, str]) -> dict[TableName, TableVersion]:
            return {table: self._load_at(location, known.get(table)) for table, location in found.items()}

        return self._look_again(lambda: self.backend.catalog.pointers(wanted), load)

    def commit(
        self, proposals: Sequence[Proposal], unmoved: Mapping[TableName, str], attempt: Attempt
    ) -> Sequence[TableVersion]:
        moves: list[PointerSwap] = []
        made: list[TableVersion] = []
        for proposal in proposals:
            guard = self._guard(proposal)
            metadata = _with_log_entry(proposal.metadata, proposal.base)
            entry = _entry_of(self.backend.catalog, proposal.table, proposal.base.metadata)
            made.append(self._write(metadata, entry, proposal.base.location, attempt))
            moves.append(
                PointerSwap(
                    proposal.table,
                    proposal.base.location,
                    made[-1].location,
                    guard=guard,
                    write_ids=attempt.write_ids,
                )
            )
        # Swaps that change a pointer come first: their outcome applies to the rest.
        still = [PointerSwap(table, pointer, pointer) for table, pointer in unmoved.items()]
        attempt.send(proposal.base.metadata for proposal in proposals)
        self._swap([*moves, *still])
        attempt.is_landed = True
        return made

    def stage(self, table: TableName, location: str | None, metadata: TableMetadata) -> TableMetadata:
        return metadata

    def create(self, proposal: Proposal, attempt: Attempt) -> TableVersion:
        table, metadata = proposal.table, proposal.metadata
        claim = claim_of(metadata.table_uuid, metadata.location, metadata.properties)
        guard = guard_of(self.backend.store, table, claim)
        guard(self.backend.catalog.entries())
        made = self._write(metadata, _entry_of(self.backend.catalog, table, None), None, attempt)
        attempt.is_sent = True
        self._swap([PointerSwap(table, None, made.location, guard=guard)])
        return made

    def register(
        self, table: TableName, found: TableVersion, attempt: Attempt, *, is_restored: bool = False
    ) -> TableVersion:
        """Register an existing table under a new name. is_restored: this catalog has dropped it.

        Metadata that was written for this same entry, before it was dropped, is written again, to start a new history:
        only metadata files of its own history are removed when they leave the log. So is that of a table that is
        restored, under whatever name: a pointer never goes back, or a swap of the time before could still land.
        """
        claim = claim_of(found.metadata.table_uuid, found.metadata.location, found.metadata.properties)
        guard = guard_of(self.backend.store, table, claim)
        new = _entry_of(self.backend.catalog, table, None)
        before = decode_entry(found.metadata.unknown.get(ENTRY_KEY))
        if is_restored or (before is not None and before.entry == new.entry):
            metadata = _with_log_entry(found.metadata, found)
            metadata = replace(metadata, last_updated_ms=max(self.backend.ambient.now_ms(), metadata.last_updated_ms))
            found = self._write(metadata, new, found.location, attempt)
        attempt.is_sent = True
        self.backend.catalog.swap([PointerSwap(table, None, found.location, guard=guard)])
        return found

    def _guard(self, proposal: Proposal) -> Guard | None:
        """Return the guard for a table whose directories change; it is also checked immediately."""
        base, new = proposal.base.metadata, proposal.metadata
        roots = roots_of(new.location, new.properties)
        if roots == roots_of(base.location, base.properties):
            return None
        for root in roots:
            self.backend.store.check(root)
        guard = guard_of(self.backend.store, proposal.table, Claim(new.table_uuid, roots))
        guard(self.backend.catalog.entries())
        return guard

    def _look_again(self, look: Callable[[], Pointers], load: Callable[[Pointers], Loaded]) -> Loaded:
        """Load the metadata of pointers; a pointer may move concurrently, and its old file may be removed."""
        found = look()
        while True:
            try:
                return load(found)
            except MissingFile:
                newer = look()
                if newer == found:
                    raise
                found = newer

    def _load_at(self, location: str, known: TableVersion | None) -> TableVersion:
        if known is not None and known.location == location:
            return known
        return TableVersion(load_table_metadata(self.backend.reading, location), location)

    def _write(
        self, metadata: TableMetadata, entry: CatalogEntry, previous_location: str | None, attempt: Attempt
    ) -> TableVersion:
        context = WriteContext.of(self.backend, attempt.store, attempt.write_id)
        name = next_metadata_name(previous_location, context)
        # A history without a beginning starts here.
        entry = CatalogEntry(entry.entry, entry.since or name)
        metadata = replace(
            metadata,
            # Encoded once, a snapshot costs later commits of this process almost nothing.
            snapshots=carry_snapshots(metadata.snapshots, metadata.location),
            unknown={**metadata.unknown, ENTRY_KEY: encode_entry(entry)},
        )
        location = write_metadata(metadata, name, context)
        return TableVersion(metadata, location)

    def _swap(self, changes: Sequence[PointerSwap]) -> None:
        # The swap is atomic, so the outcome of the first table applies to all.
        first = changes[0]

        def judge(current: str) -> Outcome:
            log = [entry.metadata_file for entry in load_table_metadata(self.backend.reading, current).metadata_log]
            if first.new in log:
                return Outcome.LANDED
            # Only a log that reaches back to `expected` proves that another commit followed it. Another table under
            # a free name proves nothing: ours may have been created first, and renamed since.
            return Outcome.LOST if first.expected in log else Outcome.UNKNOWN

        ResolvedSwap(self.backend.catalog, self.backend.ambient, judge).make(*changes)


def write_metadata(metadata: TableMetadata, name: str, context: WriteContext) -> str:
    """Write metadata to a new file, compressed if it is large or the table says so, and return its location."""
    data, extension = encode_metadata(metadata), ".metadata.json"
    codec = METADATA_CODEC.read(metadata.properties)
    if codec == "gzip" or (codec is None and len(data) >= COMPRESSED_FROM_BYTES):
        # (spec: Naming for GZIP compressed Metadata JSON files)
        data, extension = deflate_json(data), f".gz{extension}"
    location = context.metadata_location(metadata, name + extension)
    context.store.put_new(location, data)
    return location


def next_metadata_name(previous_location: str | None, context: WriteContext) -> str:
    """Name a metadata file `NNNNN-<uuid>` with the next number, whatever the extension of the previous one.

    After any other form of name PyIceberg starts again with number 0, as if the files so far were of a later version.
    """
    known = None if previous_location is None else metadata_number(previous_location)
    drawn = context.ambient.random_uuid()
    unique = drawn if context.write_id is None else uuid_of_write(context.write_id, drawn)
    return f"{0 if known is None else known + 1:05d}-{unique}"


def metadata_number(location: str) -> int | None:
    """Return the number in the name of a metadata file, `NNNNN-<uuid>.metadata.json` or `vN.metadata.json`."""
    return whole_number(location.rsplit("/", 1)[-1].partition("-")[0].lstrip("v").partition(".")[0])


def _with_log_entry(metadata: TableMetadata, base: TableVersion) -> TableMetadata:
    """Log the file that this commit replaces; what drops out of the log is found later (`retired_metadata`)."""
    log = (*base.metadata.metadata_log, MetadataLogEntry(base.metadata.last_updated_ms, base.location))
    return replace(metadata, metadata_log=log[-PREVIOUS_VERSIONS_MAX.read(metadata.properties) :])


def _entry_of(catalog: Catalog, table: TableName, base: TableMetadata | None) -> CatalogEntry:
    """Return the entry that the next metadata file is written for; a new history has no `since` yet."""
    digest = hashlib.sha256("\n".join((catalog.identity, catalog.name, str(table))).encode()).hexdigest()[:16]
    before = decode_entry(base.unknown.get(ENTRY_KEY)) if base is not None else None
    return before if before is not None and before.entry == digest else CatalogEntry(digest, "")
