"""Dropped tables: a record of each, from which it can be restored or its files removed.

    <warehouse>/icefield-dropped/<table uuid>/<drop>.json     which table, where its metadata is, whether to purge it
    <warehouse>/icefield-dropped/<drop>.restore-<id>.claim    a restore in progress
    <warehouse>/icefield-dropped/<drop>.purge-<id>.claim      a purge in progress
    <warehouse>/icefield-dropped/<drop>-<id>-<ms>.parquet     the audit of a purge, complete before the first delete,
                                                              and how long it is kept

The record is written before the table leaves the catalog. If the catalog still has the table, or has it again, the
record means nothing. Everything goes by the table's uuid.

A restore and a purge exclude each other: each creates its claim and then looks for those of the other kind, so one of
the two sees the other and gives up. A restore whose outcome is unknown keeps its claim, which a purge honours for a
day; a purge looks once more, after its claim, whether the catalog has the table. If a restored table is dropped again,
only the newest record counts: the one with the highest number, because two drops may have the same time in the store.
Of two drops at once with the same number it is that of the later version, because the other one cannot have landed.
Raises NotFound, InvalidInput, CatalogError, and CorruptFile for a record that cannot be read.
"""

import logging
import re
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

import msgspec
import pyarrow.compute as pc

from icefield.backend import Backend
from icefield.catalog.catalog import Entry, Kind, PointerSwap, check_pointer
from icefield.commit.load import load_table_metadata
from icefield.commit.operations.tables import IN_FLIGHT_MS, TableVersion, metadata_number
from icefield.commit.relocate import Explain, Progress
from icefield.commit.validate.ownership import claim_of, guard_of
from icefield.commit.validate.references import remove_quietly
from icefield.errors import (
    AlreadyExists,
    CorruptFile,
    IcefieldError,
    InvalidInput,
    LocationRefused,
    MissingFile,
    NotFound,
    StorageError,
)
from icefield.leases.folder import gc_folders, metadata_folder, seen_time_ms, store_time_ms
from icefield.marks.clear import delete_in_order
from icefield.marks.files import TableFiles
from icefield.marks.mark import encode_files
from icefield.model.metadata import TableMetadata
from icefield.model.names import TableName, parse_table_name
from icefield.properties.upkeep import GC_AUDIT_RETENTION_MS, GC_UNDROP_MS
from icefield.storage.location import join_location
from icefield.storage.store import StoredFile, remove_empty_directories
from icefield.upkeep.checks import check_enabled, check_identity
from icefield.upkeep.orphans import distinct_roots, list_files
from icefield.upkeep.owned import Ownership
from icefield.upkeep.result import SweepResult, silent
from icefield.upkeep.sweep import check_leases, count_kinds

DROPPED_FOLDER = "icefield-dropped"
_RESTORE, _PURGE = "restore", "purge"
_RESTORE_MS = 24 * 3600 * 1000  # how long a restore may take
_CLAIM = re.compile(r"([0-9a-f]{32})\.(restore|purge)-[0-9a-f]{32}\.claim")
_PURGE_AUDIT = re.compile(r"([0-9a-f]{32})-[0-9a-f]{32}(?:-(\d+))?\.parquet")


class _Record(msgspec.Struct, frozen=True, rename="kebab"):
    table: str
    table_uuid: uuid.UUID
    location: str
    metadata_location: str
    purge: bool
    undrop_ms: int
    number: int = 0  # one more than that of the table's earlier records


@dataclass(frozen=True)
class DroppedTable:
    """A table that was dropped and can be restored.

    Attributes:
        table: The name that it had.
        table_uuid: Its uuid.
        location: Where its files are.
        metadata_location: Its last metadata file.
        purge: Whether its files are removed when they cannot be restored any more.
        dropped_ms: When it was dropped, by the store's clock.
        until_ms: Until when it can be restored, by the store's clock; None without a purge: as long as the files exist.
        drop: The id of the drop.
    """

    table: str
    table_uuid: uuid.UUID
    location: str
    metadata_location: str
    purge: bool
    dropped_ms: int
    until_ms: int | None
    drop: str

    def as_dict(self) -> dict[str, object]:
        """Return plain values."""
        return {name.replace("_", "-"): str(v) if name == "table_uuid" else v for name, v in asdict(self).items()}


@dataclass(frozen=True)
class _Drop:
    """A record as it is stored; of two drops of a table, the later one has the greater order."""

    table: DroppedTable
    location: str
    order: tuple[int, int, int]


@dataclass(frozen=True)
class DroppedTables:
    """The dropped tables of a lake."""

    backend: Backend
    warehouse: str

    def drop(self, name: TableName, version: TableVersion | None, *, purge: bool) -> None:
        """Remove a table from the catalog; version: what it is, None if its metadata cannot be read."""
        if version is None or self.backend.catalog.metadata_server is not None:
            if purge:
                raise InvalidInput(
                    f"cannot remove the files of {name}: its metadata cannot be read, or a server manages it",
                    hint="Drop it without a purge",
                )
            self.backend.catalog.swap([PointerSwap(name, self.backend.catalog.pointer(name), None)])
            return
        metadata = version.metadata
        if purge:
            check_enabled(metadata.properties)
            check_identity(self.backend, name, version)
        number = self._next_number(metadata.table_uuid)
        # If this version is still current now, drops of later versions see a number as high, or a higher one.
        drop = PointerSwap(name, version.location, None)
        check_pointer(drop, Entry(Kind.TABLE, self.backend.catalog.pointer(name)))
        record = _Record(
            str(name),
            metadata.table_uuid,
            metadata.location,
            version.location,
            purge,
            GC_UNDROP_MS.read(metadata.properties),
            number,
        )
        place = self._place(f"{metadata.table_uuid.hex}/{self.backend.ambient.random_uuid().hex}.json")
        try:
            self.backend.store.put_new(place, msgspec.json.encode(record))
        except (StorageError, LocationRefused) as error:
            if purge:
                raise
            # Its files stay, so that it can be registered again without a record.
            logging.getLogger("icefield.upkeep").warning(
                "undrop will not find %s, because its drop cannot be recorded (%s); register %s to restore it",
                name,
                error,
                version.location,
            )
        try:
            self.backend.catalog.swap([drop])
        except IcefieldError as error:
            if error.cleanable:
                remove_quietly(self.backend.store, [place])
            raise

    def tables(self) -> list[DroppedTable]:
        """Return the tables that can be restored, the newest drop first."""
        live = {entry.pointer for entry in self.backend.catalog.entries().values()}
        return [found for found in self._records() if found.metadata_location not in live and not self._is_gone(found)]

    def claim(self, wanted: str) -> tuple[DroppedTable, str]:
        """Claim the newest drop of a table, by name or uuid, for a restore; return it and the claim."""
        matches = [found for found in self.tables() if wanted in (found.table, str(found.table_uuid))]
        if not matches:
            raise NotFound(f"no dropped table {wanted!r}", hint="List them with lake.dropped()")
        claim = self._claim(matches[0], _RESTORE, 0)
        if claim is None:
            raise InvalidInput(f"cannot restore {wanted}: its files are being removed", hint="Restore a copy")
        return matches[0], claim

    def finish(self, dropped: DroppedTable) -> None:
        """Forget a drop, and earlier ones of the same table."""
        same = [drop for drop in self._drops() if drop.table.table_uuid == dropped.table_uuid]
        last = next((drop.order for drop in same if drop.table.drop == dropped.drop), None)
        for found in same:
            if last is not None and found.order <= last:
                self.backend.store.delete(found.location)
                for _, file in self._claims(found.table):
                    self.backend.store.delete(file.location)

    def release(self, claim: str) -> None:
        """Give up a claim."""
        self.backend.store.delete(claim)

    def purge(self, explain: Explain, *, dry_run: bool = False, progress: Progress = silent) -> list[SweepResult]:
        """Remove the files of tables that were dropped with a purge and cannot be restored any more; and old audits.

        A table whose files cannot be deleted does not stop the purge of the other tables; its result says why.

        explain: returns the error to report instead of one that was raised.
        """
        known = self._records()
        audits = {} if dry_run else self._finished_audits()
        if not known and not audits:
            return []
        time_ms = seen_time_ms if dry_run else store_time_ms
        now_ms = time_ms(self.backend.store, self._folder, self.backend.ambient)
        due = [
            found
            for found in known
            if (found.until_ms is not None and now_ms >= found.until_ms) or self._is_gone(found)
        ]
        results: list[SweepResult | None] = []
        for found in due:
            try:
                results.append(self._purge(found, now_ms, dry_run=dry_run, progress=progress))
            except IcefieldError as error:
                results.append(SweepResult(found.table, dry_run, unfinished=str(explain(error))))
        for audit, kept_ms in audits.items():
            if now_ms - audit.modified_ms >= kept_ms:
                self.backend.store.delete(audit.location)
        return [result for result in results if result is not None]

    def _purge(self, dropped: DroppedTable, now_ms: int, *, dry_run: bool, progress: Progress) -> SweepResult | None:
        store = self.backend.store
        version = self._load(dropped)
        if version is None or self._is_live(dropped, version.metadata):
            # The swap of a drop may still be on its way: without its record, nobody would restore or purge the table.
            is_over = version is None or now_ms - dropped.dropped_ms >= IN_FLIGHT_MS
            if is_over and not dry_run:
                self.finish(dropped)
            return None
        folders = gc_folders(version.metadata, store)
        name = parse_table_name(dropped.table)
        leases = check_leases(self.backend, name, version, folders, now_ms, dry_run=dry_run)
        if leases.held:
            return SweepResult(dropped.table, dry_run, leases=len(leases.held), leases_lost=len(leases.dead))
        files = self._files(version)
        done = SweepResult(
            dropped.table, dry_run, files.num_rows, files.total_bytes, count_kinds(files), leases_lost=len(leases.dead)
        )
        if dry_run:
            return done
        claim = self._claim(dropped, _PURGE, now_ms)
        if claim is None:
            return SweepResult(dropped.table)
        if self._is_live(dropped, version.metadata):  # restored since
            self.finish(dropped)
            return None
        # A record is written before the table leaves the catalog, so a drop that came in between is listed now.
        if not any(found.drop == dropped.drop for found in self._records()):
            self.release(claim)
            return SweepResult(dropped.table)
        kept_ms = GC_AUDIT_RETENTION_MS.read(version.metadata.properties)
        audit = self._place(f"{dropped.drop}-{self.backend.ambient.random_uuid().hex}-{kept_ms}.parquet")
        store.put_new(audit, encode_files(files, dropped.table_uuid, "dropped"))
        # The last metadata file goes last: from it an interrupted purge goes on.
        delete_in_order(store, files.filter(pc.not_equal(files.location, version.location)), progress)
        for file in [*store.list(join_location(metadata_folder(version.metadata), "gc"))]:
            store.delete(file.location)
        store.delete(version.location)
        for root in distinct_roots(version):  # the values of partitions are in the names of directories
            remove_empty_directories(store, root)
        self.finish(dropped)
        return done

    def _finished_audits(self) -> dict[StoredFile, int]:
        """Return the audits of purges that are finished, and for how long each is kept."""
        if self.backend.catalog.metadata_server is not None:
            return {}
        files = {file.location.rpartition("/")[2]: file for file in self.backend.store.list(self._folder)}
        audits = [(name, file) for text, file in files.items() if (name := _PURGE_AUDIT.fullmatch(text))]
        default = GC_AUDIT_RETENTION_MS.read({})
        return {file: int(name[2] or default) for name, file in audits if f"{name[1]}.json" not in files}

    def _is_gone(self, dropped: DroppedTable) -> bool:
        """Return whether the files were purged. A drop that came too late may have been recorded after that."""
        try:
            self.backend.store.size(dropped.metadata_location)
        except MissingFile:
            return True
        except (StorageError, LocationRefused):
            return False
        return False

    def _files(self, version: TableVersion) -> TableFiles:
        listing = list_files(self.backend.store, version)
        kinds = Ownership(version.metadata).kinds(listing.files.location)
        described = replace(listing, files=listing.files.replaced({"kind": kinds}))
        return described.described(self.backend.store, pc.is_valid(kinds))[0]

    def _load(self, dropped: DroppedTable) -> TableVersion | None:
        try:
            location = dropped.metadata_location
            return TableVersion(load_table_metadata(self.backend.reading, location), location)
        except MissingFile:
            return None

    def _is_live(self, dropped: DroppedTable, metadata: TableMetadata) -> bool:
        """Return whether the catalog has the table, under any name; refuse if another one is in its directories."""
        nobody = TableName(parse_table_name(dropped.table).namespace, dropped.drop)
        claim = claim_of(metadata.table_uuid, metadata.location, metadata.properties)
        try:
            guard_of(self.backend.store, nobody, claim)(self.backend.catalog.entries())
        except AlreadyExists:
            return True
        return False

    def _claim(self, dropped: DroppedTable, kind: str, now_ms: int) -> str | None:
        """Claim a drop; return None if there is a claim of the other kind, which may have come at the same time."""
        store = self.backend.store
        claim = self._place(f"{dropped.drop}.{kind}-{self.backend.ambient.random_uuid().hex}.claim")
        store.put_new(claim, b"")
        for other, file in self._claims(dropped):
            is_over = other == _RESTORE and now_ms - file.modified_ms > _RESTORE_MS
            if other != kind and not is_over:
                store.delete(claim)
                return None
        return claim

    def _claims(self, dropped: DroppedTable) -> list[tuple[str, StoredFile]]:
        """Return the claims of a drop, and of which kind they are."""
        listed = ((_CLAIM.fullmatch(f.location.rpartition("/")[2]), f) for f in self.backend.store.list(self._folder))
        return [(name.group(2), file) for name, file in listed if name is not None and name.group(1) == dropped.drop]

    def _records(self) -> list[DroppedTable]:
        """Return the newest drop of every table, the newest first."""
        newest: dict[uuid.UUID, _Drop] = {}
        for found in self._drops():
            known = newest.setdefault(found.table.table_uuid, found)
            if found.order > known.order:
                newest[found.table.table_uuid] = found
        return sorted((found.table for found in newest.values()), key=lambda table: -table.dropped_ms)

    def _drops(self, table: uuid.UUID | None = None) -> Iterator[_Drop]:
        """Yield the records of all drops, or of those of one table, in no order."""
        if self.backend.catalog.metadata_server is not None:
            return  # a server has its own way to restore tables, if any
        for file in self.backend.store.list(self._folder if table is None else self._place(table.hex)):
            name = file.location.rpartition("/")[2]
            if not name.endswith(".json"):
                continue
            try:
                record = msgspec.json.decode(self.backend.store.read(file.location), type=_Record)
            except MissingFile:
                continue  # finished since it was listed
            except (ValueError, RecursionError) as error:
                raise CorruptFile(
                    file.location, f"it is not the record of a drop: {error}", hint="Move it out of its directory"
                ) from error
            dropped = DroppedTable(
                record.table,
                record.table_uuid,
                record.location,
                record.metadata_location,
                record.purge,
                file.modified_ms,
                file.modified_ms + record.undrop_ms if record.purge else None,
                name.removesuffix(".json"),
            )
            version = metadata_number(record.metadata_location) or 0
            yield _Drop(dropped, file.location, (record.number, version, file.modified_ms))

    def _next_number(self, table: uuid.UUID) -> int:
        try:
            return max((drop.order[0] for drop in self._drops(table)), default=0) + 1
        except (StorageError, LocationRefused):
            return 1  # a store that cannot be listed; whether it can be written to is seen next

    @property
    def _folder(self) -> str:
        return join_location(self.warehouse, DROPPED_FOLDER)

    def _place(self, name: str) -> str:
        return join_location(self._folder, name)
