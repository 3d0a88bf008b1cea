"""Procedures that remove what is not needed any more, and those that check and measure tables.

Files are deleted in two steps: expiry and the search for orphan files mark files, a sweep deletes them when the grace
period is over. The counts of Iceberg's procedures are those of files that were marked.
"""

import datetime
from collections.abc import Iterator

import pyarrow as pa

from icefield.errors import InvalidInput, Unsupported
from icefield.sql.procedures.procedure import TABLE, Arguments, Kind, Procedure, ProcedureRows, optional, required
from icefield.sql.procedures.rewrites import filter_of
from icefield.sql.syntax.place import pointing_at
from icefield.table.table import Table
from icefield.upkeep.result import SweepResult

_EXPIRED = pa.schema(
    {
        "deleted_data_files_count": pa.int64(),
        "deleted_position_delete_files_count": pa.int64(),
        "deleted_equality_delete_files_count": pa.int64(),
        "deleted_manifest_files_count": pa.int64(),
        "deleted_manifest_lists_count": pa.int64(),
        "deleted_statistics_files_count": pa.int64(),
    }
)
_ORPHANS = pa.schema({"orphan_file_location": pa.string()})
_SWEPT = pa.schema(
    {"table": pa.string(), "deleted_files_count": pa.int64(), "deleted_bytes": pa.int64(), "waiting_files": pa.int64()}
)
_PURGED = _SWEPT.append(pa.field("unfinished", pa.string()))
_STEPS = pa.schema(
    {
        "table": pa.string(),
        "step": pa.string(),
        "debt": pa.float64(),
        "outcome": pa.string(),
        "reason": pa.string(),
        "bytes_read": pa.int64(),
        "bytes_written": pa.int64(),
        "bytes_marked": pa.int64(),
        "bytes_freed": pa.int64(),
    }
)
_FINDINGS = pa.schema(
    {
        "table": pa.string(),
        "check": pa.string(),
        "message": pa.string(),
        "location": pa.string(),
        "snapshot_id": pa.int64(),
        "harmless": pa.bool_(),
    }
)
_REPORT = pa.schema(
    {
        "table": pa.string(),
        "part": pa.string(),
        "files": pa.int64(),
        "bytes": pa.int64(),
        "error": pa.string(),
    }
)
_FORGOTTEN = pa.schema(
    {
        "is_finished": pa.bool_(),
        "deleted_rows": pa.int64(),
        "files": pa.int64(),
        "bytes": pa.int64(),
        "removed_snapshots": pa.int64(),
        "waiting_files": pa.int64(),
        "unfinished": pa.string(),
    }
)
_LEASES = pa.schema(
    {
        "lease": pa.string(),
        "kind": pa.string(),
        "holder": pa.string(),
        "renewals": pa.int64(),
        "renewed_at": pa.timestamp("us", "UTC"),
        "snapshot_ids": pa.list_(pa.int64()),
        "files_held": pa.int64(),
        "bytes_held": pa.int64(),
    }
)
MOST_LOCATIONS = 100_000
_EQUALITY = "total-equality-deletes"
_PARTS = ("live", "history", "expirable", "waiting", "young", "orphans", "foreign")


def _is_dry(arguments: Arguments) -> bool:
    return bool(arguments["dry_run"]) or arguments.run.is_dry_run


def _expire_snapshots(arguments: Arguments) -> ProcedureRows:
    table, ids = arguments.table(), arguments["snapshot_ids"]
    if arguments["clean_expired_metadata"]:
        raise arguments.error("clean_expired_metadata", "schemas and specs are kept", kind=Unsupported)
    if arguments["retain_last"] is not None and arguments["retain_last"] < 1:
        raise arguments.error("retain_last", "at least one snapshot is retained", kind=InvalidInput)
    before = _equality_files(table)
    with pointing_at(arguments.place("snapshot_ids" if ids is not None else "older_than")):
        done = table.expire_snapshots(
            arguments["older_than"],
            keep_last=arguments["retain_last"],
            snapshot_ids=ids,
            dry_run=_is_dry(arguments),
        )
    kinds = done.kinds
    equality = len(before - _equality_files(table)) if before and not done.is_dry_run else 0
    counts = [kinds.get(kind, 0) for kind in ("manifests", "manifest lists", "statistics")]
    return [[kinds.get("data", 0), kinds.get("deletes", 0) - equality, equality, *counts]]


def _equality_files(table: Table) -> set[str]:
    """Return the equality delete files of all snapshots; manifests are read only if there may be some."""
    if all(snapshot.summary.get(_EQUALITY, "0") == "0" for snapshot in table.metadata.snapshots):
        return set()
    files = table.inspect("all_delete_files", where="content = 2", select=["file_path"])
    return set(files.to_arrow().read_all()["file_path"].to_pylist())


def _remove_orphan_files(arguments: Arguments) -> ProcedureRows:
    for name in ("location", "file_list_view", "equal_schemes", "equal_authorities", "prefix_mismatch_mode"):
        if arguments[name] is not None:
            raise arguments.error(
                name, f"{name} is not supported: the directories of the table are listed, by the lake's own rules"
            )
    table, limit = arguments.table(), arguments["older_than"]
    older_than = None
    if limit is not None:
        now = datetime.datetime.fromtimestamp(arguments.run.lake.ambient.now_ms() / 1000, datetime.UTC)
        older_than = now - limit
        if older_than < datetime.timedelta(0):
            raise arguments.error("older_than", f"{limit.isoformat(sep=' ')} is in the future")
    with pointing_at(arguments.place("older_than")):
        found = table.remove_orphans(older_than=older_than, dry_run=_is_dry(arguments), most_locations=MOST_LOCATIONS)
    return [[location] for location in found.locations]


def _sweep(arguments: Arguments) -> ProcedureRows:
    return [_swept(arguments.table().sweep(dry_run=_is_dry(arguments)))]


def _swept(done: SweepResult) -> list[object]:
    return [done.table, done.files_deleted, done.bytes_deleted, sum(held.files for held in done.waiting)]


def _purge_dropped(arguments: Arguments) -> ProcedureRows:
    purged = arguments.run.lake.purge_dropped(dry_run=_is_dry(arguments))
    return [[*_swept(done), done.unfinished] for done in purged]


def _upkeep(arguments: Arguments) -> Iterator[list[object]]:
    names = None if arguments["table"] is None else [arguments.table_name()]
    done = arguments.run.lake.upkeep(
        names,
        minutes=arguments["minutes"],
        max_bytes=arguments["max_bytes"],
        dry_run=_is_dry(arguments),
        engine=arguments.engine,
    )
    for table in done.tables:
        if table.error is not None or table.skipped is not None:
            state = "failed" if table.error is not None else "skipped"
            yield [table.table, None, None, state, table.error or table.skipped, 0, 0, 0, 0]
        for step in table.steps:
            sizes = [step.bytes_read, step.bytes_written, step.bytes_marked, step.bytes_freed]
            yield [table.table, str(step.step), round(step.debt, 2), str(step.outcome), step.reason, *sizes]


def _fsck(arguments: Arguments) -> Iterator[list[object]]:
    names = None if arguments["table"] is None else [arguments.table_name()]
    repair = bool(arguments["repair"])
    # A check without repairs changes nothing.
    dry_run = repair and _is_dry(arguments)
    done = arguments.run.lake.fsck(names, deep=bool(arguments["deep"]), repair=repair, dry_run=dry_run)
    found = [(None, finding) for finding in done.findings]
    for name, each in [*((table.table, finding) for table in done.tables for finding in table.findings), *found]:
        yield [name, each.check.value, each.message, each.location, each.snapshot_id, each.is_harmless]


def _report(arguments: Arguments) -> Iterator[list[object]]:
    names = None if arguments["table"] is None else [arguments.table_name()]
    done = arguments.run.lake.report(names)
    for table in done.tables:
        if table.error is not None:
            yield [table.table, None, None, None, table.error]
            continue
        for part in _PARTS:
            share = getattr(table, part)
            yield [table.table, part, share.files, share.bytes, None]


def _forget(arguments: Arguments) -> ProcedureRows:
    table = arguments.table()
    with pointing_at(arguments.place("where")):
        done = table.forget(
            filter_of(arguments, table),
            search=arguments["search"] or (),
            drop_tags=bool(arguments["drop_tags"]),
            dry_run=_is_dry(arguments),
            engine=arguments.engine,
        )
    waiting = 0 if done.swept is None else sum(held.files for held in done.swept.waiting)
    deleted = sum(done.rows_deleted.values())
    return [
        [done.is_finished, deleted, done.files, done.bytes, len(done.snapshot_ids), waiting, done.unfinished],
    ]


def _leases(arguments: Arguments) -> Iterator[list[object]]:
    for held in arguments.table().leases():
        renewed = datetime.datetime.fromtimestamp(held.renewed_ms / 1000, datetime.UTC)
        yield [
            *(held.lease, held.kind, held.holder, held.renewals, renewed),
            *(list(held.snapshot_ids), held.files_held, held.bytes_held),
        ]


_DRY_RUN = optional("dry_run", Kind.BOOLEAN)
_DELETES = optional("max_concurrent_deletes", Kind.INT)
_STREAM = optional("stream_results", Kind.BOOLEAN)
_OLDER_THAN = optional("older_than", Kind.TIMESTAMP)
PROCEDURES = (
    Procedure(
        "expire_snapshots",
        (
            *(TABLE, _OLDER_THAN, optional("retain_last", Kind.INT), _DELETES, _STREAM),
            *(optional("snapshot_ids", Kind.LONGS), optional("clean_expired_metadata", Kind.BOOLEAN), _DRY_RUN),
        ),
        _EXPIRED,
        _expire_snapshots,
    ),
    Procedure(
        "remove_orphan_files",
        (
            *(TABLE, _OLDER_THAN, optional("location"), _DRY_RUN, _DELETES, optional("file_list_view")),
            *(optional("equal_schemes", Kind.MAP), optional("equal_authorities", Kind.MAP)),
            *(optional("prefix_mismatch_mode"), optional("prefix_listing", Kind.BOOLEAN), _STREAM),
        ),
        _ORPHANS,
        _remove_orphan_files,
        is_transactional=False,
    ),
    Procedure("sweep", (TABLE, _DRY_RUN), _SWEPT, _sweep, is_transactional=False),
    Procedure("purge_dropped", (_DRY_RUN,), _PURGED, _purge_dropped, is_transactional=False),
    Procedure(
        "upkeep",
        (optional("table"), optional("minutes", Kind.DOUBLE), optional("max_bytes", Kind.LONG), _DRY_RUN),
        _STEPS,
        _upkeep,
        is_transactional=False,
    ),
    Procedure(
        "fsck",
        (optional("table"), optional("deep", Kind.BOOLEAN), optional("repair", Kind.BOOLEAN), _DRY_RUN),
        _FINDINGS,
        _fsck,
        is_transactional=False,
    ),
    Procedure("report", (optional("table"),), _REPORT, _report, is_transactional=False),
    Procedure(
        "forget",
        (
            *(TABLE, required("where"), optional("search", Kind.STRINGS), optional("drop_tags", Kind.BOOLEAN)),
            _DRY_RUN,
        ),
        _FORGOTTEN,
        _forget,
        is_transactional=False,
    ),
    Procedure("leases", (TABLE,), _LEASES, _leases, is_transactional=False),
)
