"""Procedures that move branches, and those that tell of snapshots.

They work on the branch that the name of the table says, `shop.orders.branch_audit`, by default on main.
"""

from collections.abc import Iterator

import pyarrow as pa

from icefield.errors import InvalidInput, NoSuchSnapshot
from icefield.model.snapshot import Snapshot
from icefield.plan.versions import to_millis
from icefield.sql.procedures.procedure import TABLE, Arguments, Kind, Procedure, ProcedureRows, optional, required
from icefield.sql.syntax.place import pointing_at
from icefield.table.table import Table

_MOVED = pa.schema({"previous_snapshot_id": pa.int64(), "current_snapshot_id": pa.int64()})
_FORWARDED = pa.schema({"branch_updated": pa.string(), "previous_ref": pa.int64(), "updated_ref": pa.int64()})
_PICKED = pa.schema({"source_snapshot_id": pa.int64(), "current_snapshot_id": pa.int64()})
_ANCESTORS = pa.schema({"snapshot_id": pa.int64(), "timestamp": pa.int64()})
# In the summary of a snapshot that was staged by write-audit-publish.
_WAP_ID = "wap.id"


def _rollback_to_snapshot(arguments: Arguments) -> ProcedureRows:
    table = arguments.table()
    before = _head(table)
    with pointing_at(arguments.place("snapshot_id")):
        after = table.rollback(arguments["snapshot_id"])
    return [[before, _id(after)]]


def _rollback_to_timestamp(arguments: Arguments) -> ProcedureRows:
    table, moment = arguments.table(), arguments["timestamp"]
    metadata = table.metadata
    limit, head = to_millis(moment), _head(table)
    ancestors = metadata.ancestors(None if head is None else metadata.snapshot_by_id(head))
    found = next((snapshot for snapshot in ancestors if snapshot.timestamp_ms < limit), None)
    if found is None:
        raise arguments.error(
            "timestamp", f"no snapshot of {table.name} is older than {moment.isoformat(sep=' ')}", kind=NoSuchSnapshot
        )
    table.rollback(found.snapshot_id)
    return [[head, found.snapshot_id]]


def _set_current_snapshot(arguments: Arguments) -> ProcedureRows:
    given = arguments.given("snapshot_id", "ref")
    if len(given) != 1:
        place = arguments.place("ref") if given else arguments.call
        raise place.error("give either snapshot_id or ref", kind=InvalidInput)
    table = arguments.table()
    before = _head(table)
    [(name, target)] = given.items()
    with pointing_at(arguments.place(name)):
        if name == "ref":
            found = table.metadata.ref_head(target)
            if found is None:
                raise NoSuchSnapshot(f"{target!r} has no snapshots")
            target = found.snapshot_id
        after = table.set_current_snapshot(target)
    return [[before, _id(after)]]


def _fast_forward(arguments: Arguments) -> ProcedureRows:
    table, branch, to = arguments.table(), arguments["branch"], arguments["to"]
    refs = table.refs()
    before = refs[branch].snapshot_id if branch in refs else None
    with pointing_at(arguments.place("to")):
        source = table.metadata.ref_head(to)
        if before is None:
            table.create_branch(branch, at=to)
            return [[branch, None, _id(source)]]
    with pointing_at(arguments.place("branch")):
        after = table.at(branch).publish(to, fast_forward_only=True)
    return [[branch, before, _id(after)]]


def _cherrypick_snapshot(arguments: Arguments) -> ProcedureRows:
    return [_picked(arguments, arguments["snapshot_id"], "snapshot_id")]


def _publish_changes(arguments: Arguments) -> ProcedureRows:
    wap_id = arguments["wap_id"]
    staged = [each for each in arguments.table().snapshots() if each.summary.get(_WAP_ID) == wap_id]
    if len(staged) != 1:
        found = "no snapshot" if not staged else f"{len(staged)} snapshots"
        raise arguments.error("wap_id", f"{found} of the table has the id {wap_id!r}", kind=NoSuchSnapshot)
    return [_picked(arguments, staged[0].snapshot_id, "wap_id")]


def _picked(arguments: Arguments, snapshot_id: int, argument: str) -> list[int | None]:
    table = arguments.table()
    with pointing_at(arguments.place(argument)):
        made = table.cherry_pick(snapshot_id)
    return [snapshot_id, _head(table) if made is None else made.snapshot_id]


def _ancestors_of(arguments: Arguments) -> Iterator[list[object]]:
    table, wanted = arguments.table(), arguments["snapshot_id"]
    metadata, start = table.metadata, table.current_snapshot
    if wanted is not None:
        with pointing_at(arguments.place("snapshot_id")):
            start = metadata.snapshot_by_id(wanted)
    for snapshot in metadata.ancestors(start):
        yield [snapshot.snapshot_id, snapshot.timestamp_ms]


def _head(table: Table) -> int | None:
    return table.scan().snapshot_id


def _id(snapshot: Snapshot | None) -> int | None:
    return None if snapshot is None else snapshot.snapshot_id


_SNAPSHOT = required("snapshot_id", Kind.LONG)
PROCEDURES = (
    Procedure("rollback_to_snapshot", (TABLE, _SNAPSHOT), _MOVED, _rollback_to_snapshot, has_dry_run=False),
    Procedure(
        "rollback_to_timestamp",
        (TABLE, required("timestamp", Kind.TIMESTAMP)),
        _MOVED,
        _rollback_to_timestamp,
        has_dry_run=False,
    ),
    Procedure(
        "set_current_snapshot",
        (TABLE, optional("snapshot_id", Kind.LONG), optional("ref")),
        _MOVED,
        _set_current_snapshot,
        has_dry_run=False,
    ),
    Procedure("cherrypick_snapshot", (TABLE, _SNAPSHOT), _PICKED, _cherrypick_snapshot, has_dry_run=False),
    Procedure("publish_changes", (TABLE, required("wap_id")), _PICKED, _publish_changes, has_dry_run=False),
    Procedure(
        "fast_forward", (TABLE, required("branch"), required("to")), _FORWARDED, _fast_forward, has_dry_run=False
    ),
    Procedure("ancestors_of", (TABLE, optional("snapshot_id", Kind.LONG)), _ANCESTORS, _ancestors_of),
)
