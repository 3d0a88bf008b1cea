"""Who holds what: the leases of a table, and how much each keeps from being deleted."""

from dataclasses import asdict, dataclass

import pyarrow.compute as pc

from icefield.dml.head import TableHead
from icefield.leases.folder import gc_folders
from icefield.leases.sample import SeenLease, held, sample_leases
from icefield.marks.files import TableFiles, concat_files, fold
from icefield.marks.mark import list_marks, read_unless_done
from icefield.upkeep.reachable import find_pinned


@dataclass(frozen=True)
class HeldLease:
    """A lease that is held.

    Attributes:
        table: The name of the table.
        lease: Its id; a writer has it in the names of its files.
        kind: `reader` or `writer`; `unreadable` if its record is damaged, and it holds everything.
        holder: The host and process.
        renewals: How often it was renewed.
        renewed_ms: When it was renewed last, by the store's clock.
        ttl_ms: How long it protects after that.
        snapshot_ids: The snapshots that it reads.
        files_held: How many marked files it keeps from being deleted.
        bytes_held: Their size.
    """

    table: str
    lease: str
    kind: str
    holder: str
    renewals: int
    renewed_ms: int
    ttl_ms: int
    snapshot_ids: tuple[int, ...] = ()
    files_held: int = 0
    bytes_held: int = 0

    def as_dict(self) -> dict[str, object]:
        """Return plain values; snapshot ids are strings, because JSON readers round large integers."""
        own = asdict(self) | {"snapshot_ids": [str(each) for each in self.snapshot_ids]}
        return {name.replace("_", "-"): value for name, value in own.items()}


def list_leases(head: TableHead) -> list[HeldLease]:
    """Return the leases of a table, and what they hold of the files that are marked."""
    store, metadata = head.backend.store, head.load().metadata
    folders = gc_folders(metadata, store)
    read = (read_unless_done(store, mark, metadata.table_uuid) for mark in list_marks(store, folders))
    marked = concat_files(files for files in read if files is not None)
    return [_describe(head, seen, marked) for seen in held(sample_leases(store, folders))]


def _describe(head: TableHead, seen: SeenLease, marked: TableFiles) -> HeldLease:
    table = str(head.name)
    if seen.record is None:
        everything = marked.num_rows, marked.total_bytes
        return HeldLease(table, seen.lease, "unreadable", "", seen.version - 1, seen.modified_ms, 0, (), *everything)
    record = seen.record
    pinned = find_pinned(head.backend.reading, [seen]) if marked.num_rows else None
    files = None if pinned is None else marked.filter(pc.is_in(fold(marked.location), value_set=fold(pinned.location)))
    return HeldLease(
        table,
        seen.lease,
        record.kind.value,
        record.holder,
        seen.version - 1,
        seen.modified_ms,
        record.ttl_ms,
        tuple(pin.snapshot_id for pin in record.pins),
        0 if files is None else files.num_rows,
        0 if files is None else files.total_bytes,
    )
