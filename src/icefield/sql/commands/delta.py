"""Delta's words for what the tables of a lake can do: OPTIMIZE, VACUUM, RESTORE.

OPTIMIZE shop.orders WHERE day > DATE '2026-01-01' ZORDER BY (customer, amount)      rewrite_data_files
VACUUM shop.orders RETAIN 168 HOURS DRY RUN                                          expire_snapshots, orphan files
RESTORE TABLE shop.orders TO TIMESTAMP AS OF '2026-01-01'                            set_current_snapshot
"""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from icefield.errors import InvalidInput, NoSuchSnapshot
from icefield.plan.versions import resolve_version
from icefield.sql.procedures.rewrites import DATA_FILES, counts_of_compaction
from icefield.sql.rows.expressions import pointing_into
from icefield.sql.rows.target import Target
from icefield.sql.session import Rows, Run
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place, pointing_at
from icefield.sql.text.constants import constant_value, time_value

_VACUUMED = pa.schema(
    {
        "path": pa.string(),
        "expired_snapshots_count": pa.int64(),
        "marked_files_count": pa.int64(),
        "marked_bytes": pa.int64(),
        "deleted_files_count": pa.int64(),
        "deleted_bytes": pa.int64(),
    }
)
_RESTORED = pa.schema({"previous_snapshot_id": pa.int64(), "current_snapshot_id": pa.int64()})


@dataclass(frozen=True)
class Optimize:
    """OPTIMIZE: rewrite small files, possibly clustered."""

    cursor: Cursor
    name: Name
    where: Place | None
    columns: Sequence[Name]

    def run(self, run: Run) -> Rows:
        """Return what was rewritten, as rewrite_data_files does."""
        table = run.table(self.name, "optimize")
        text = None
        if self.where is not None:
            text = Target(self.name).wording(run, table).text(self.cursor, self.where)
        names = [str(column) for column in self.columns]
        places = [*([] if self.where is None else [self.where]), *(column.place for column in self.columns)]
        with pointing_into(*places):
            done = table.compact(
                text,
                cluster_by=names if len(names) > 1 else (),
                order_by=names if len(names) == 1 else (),
                dry_run=run.is_dry_run,
                engine=run.engine,
            )
        return Rows.of(DATA_FILES, [counts_of_compaction(done)])


@dataclass(frozen=True)
class Vacuum:
    """VACUUM: expire snapshots, and remove files that nothing refers to.

    A retention is the age of snapshots. Files that nothing refers to are kept as long as the table's property says.
    """

    name: Name
    hours: float | None
    is_dry_run: bool

    def run(self, run: Run) -> Rows:
        """Return what was marked for deletion, and what was deleted of what had been marked before."""
        table = run.table(self.name, "vacuum")
        if run.session.transaction is not None:
            raise self.name.place.error("files are not deleted in a transaction", kind=InvalidInput)
        dry_run = self.is_dry_run or run.is_dry_run
        limit = None
        if self.hours is not None:
            age_ms = int(self.hours * 3_600_000)
            limit = datetime.datetime.fromtimestamp((run.lake.ambient.now_ms() - age_ms) / 1000, datetime.UTC)
        with pointing_at(self.name.place):
            expired = table.expire_snapshots(limit, dry_run=dry_run)
            orphans = table.remove_orphans(dry_run=dry_run)
        swept = [each for each in (expired.swept, orphans.swept) if each is not None]
        row = [
            table.location,
            len(expired.snapshot_ids),
            expired.files_marked + orphans.files_marked,
            expired.bytes_marked + orphans.bytes_marked,
            sum(each.files_deleted for each in swept),
            sum(each.bytes_deleted for each in swept),
        ]
        return Rows.of(_VACUUMED, [row])


@dataclass(frozen=True)
class Restore:
    """RESTORE: the rows of an earlier version become the current ones. The columns stay those of the table."""

    cursor: Cursor
    name: Name
    version: Place
    is_time: bool

    def run(self, run: Run) -> Rows:
        """Move the branch to the snapshot of the version."""
        table = run.table(self.name, "restore")
        inside = Cursor(self.version.source, self.version.start, self.version.end, run.parameters)
        as_of = time_value(run, inside) if self.is_time else constant_value(run, inside)
        inside.expect_end()
        if isinstance(as_of, bool) or not isinstance(as_of, int | str | datetime.datetime):
            raise self.version.error(f"{self.version.text} is not a version", kind=InvalidInput)
        before = table.scan().snapshot_id
        with pointing_at(self.version):
            found = resolve_version(table.metadata, as_of).snapshot
            if found is None:
                raise NoSuchSnapshot(f"{table.name} has no snapshots")
            if not run.is_dry_run:
                table.set_current_snapshot(found.snapshot_id)
        return Rows.of(_RESTORED, [[before, found.snapshot_id]])


def parse_optimize(cursor: Cursor) -> Optimize:
    """Parse OPTIMIZE table [WHERE condition] [ZORDER BY (columns)]."""
    cursor.expect("optimize")
    name = cursor.name("the name of a table")
    where = cursor.until("zorder", what="a condition") if cursor.accept("where") else None
    columns: list[Name] = []
    if cursor.accept("zorder", "by"):
        is_listed = cursor.accept("(")
        columns.append(cursor.name("a column"))
        while cursor.accept(","):
            columns.append(cursor.name("a column"))
        if is_listed:
            cursor.expect(")")
    cursor.expect_end()
    return Optimize(cursor, name, where, columns)


def parse_vacuum(cursor: Cursor) -> Vacuum:
    """Parse VACUUM [TABLE] table [RETAIN n HOURS] [DRY RUN]."""
    cursor.expect("vacuum")
    if cursor.token(1) is not None and cursor.peek(1) != ".":
        cursor.accept("table")
    name = cursor.name("the name of a table")
    hours = None
    if cursor.accept("retain"):
        hours = parse_count(cursor)
        cursor.expect_any("hours", "hour")
    is_dry_run = cursor.accept("dry", "run")
    cursor.expect_end()
    return Vacuum(name, hours, is_dry_run)


def parse_count(cursor: Cursor) -> float:
    """Parse a number that is not negative, or a marker of one."""
    place = cursor.place
    value = cursor.parameter() if cursor.is_at_parameter else cursor.number()
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or value < 0:
        raise place.error(f"expected a number of at least 0, not {value!r}", kind=InvalidInput)
    return float(value)


def parse_restore(cursor: Cursor) -> Restore:
    """Parse RESTORE [TABLE] table [TO] VERSION | TIMESTAMP AS OF value."""
    cursor.expect("restore")
    after = cursor.token(1)
    if after is not None and after.is_name and after.word not in ("to", "version", "timestamp"):
        cursor.accept("table")
    name = cursor.name("the name of a table")
    cursor.accept("to")
    kind = cursor.expect_any("version", "timestamp")
    cursor.expect("as", "of")
    return Restore(cursor, name, cursor.rest("a version"), kind == "timestamp")
