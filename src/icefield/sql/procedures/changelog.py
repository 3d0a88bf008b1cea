"""create_changelog_view: a temporary view of Spark with what each snapshot of a table changed."""

import datetime
from collections.abc import Mapping

import pyarrow as pa

from icefield.arguments import whole_number
from icefield.engine.choose import LOCAL
from icefield.engine.rows import ChangelogRequest
from icefield.errors import InvalidInput, NeedsSpark
from icefield.plan.versions import AsOf
from icefield.sql.procedures.procedure import TABLE, Arguments, Kind, Procedure, ProcedureRows, optional
from icefield.sql.query.options import SnapshotRange
from icefield.sql.query.references import open_changes
from icefield.sql.syntax.place import pointing_at
from icefield.table.table import Table

_OPTIONS = ("start-snapshot-id", "end-snapshot-id", "start-timestamp", "end-timestamp")


def _create_changelog_view(arguments: Arguments) -> ProcedureRows:
    if arguments.engine == LOCAL:
        raise arguments.call.error("a changelog view", hint="Leave out the engine", kind=NeedsSpark)
    table, options = arguments.table(), arguments["options"] or {}
    for name in options:
        if name not in _OPTIONS:
            raise arguments.error("options", f"unknown option {name!r}", hint=f"Known: {', '.join(_OPTIONS)}")
    request = _request(arguments, table)
    with pointing_at(arguments.place("options")):
        span = SnapshotRange(_version(arguments, options, "start"), _version(arguments, options, "end"))
        changes = open_changes(table, span, request)
    name = arguments["changelog_view"] or f"{table.name.rpartition('.')[2]}_changes"
    with pointing_at(arguments.place("changelog_view")):
        changes.createOrReplaceTempView(name)
    return [[name]]


def _request(arguments: Arguments, table: Table) -> ChangelogRequest:
    columns, updates = arguments["identifier_columns"], arguments["compute_updates"]
    is_net = bool(arguments["net_changes"])
    computes = columns is not None if updates is None else updates
    if is_net and computes:
        raise arguments.error("net_changes", "net changes have no images of updates", hint="Leave one out")
    if not computes:
        return ChangelogRequest(is_net=is_net)
    schema = table.schema
    names = [schema.name_of(i) for i in schema.identifier_field_ids] if columns is None else columns
    if not names:
        raise arguments.error(
            "compute_updates",
            "updates are found by identifier columns, and the table has no identifier fields",
            hint="Give identifier_columns",
        )
    with pointing_at(arguments.place("identifier_columns")):
        found = [schema.find_field(name).name for name in names]
    return ChangelogRequest(tuple(found))


def _version(arguments: Arguments, options: Mapping[str, str], end: str) -> AsOf | None:
    by_id, by_time = options.get(f"{end}-snapshot-id"), options.get(f"{end}-timestamp")
    if by_id is not None and by_time is not None:
        raise arguments.error("options", f"give either {end}-snapshot-id or {end}-timestamp")
    text = by_id if by_id is not None else by_time
    number = whole_number(text)
    if text is not None and number is None:
        raise arguments.error("options", f"{text!r} is not a number", kind=InvalidInput)
    if number is None or by_id is not None:
        return number
    return datetime.datetime.fromtimestamp(number / 1000, datetime.UTC)


PROCEDURES = (
    Procedure(
        "create_changelog_view",
        (
            *(TABLE, optional("changelog_view"), optional("options", Kind.MAP)),
            *(optional("compute_updates", Kind.BOOLEAN), optional("identifier_columns", Kind.STRINGS)),
            optional("net_changes", Kind.BOOLEAN),
        ),
        pa.schema({"changelog_view": pa.string()}),
        _create_changelog_view,
        is_transactional=False,
        has_dry_run=False,
    ),
)
