"""Procedures that rewrite files: data files, manifests, position deletes. No row changes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from icefield.arguments import whole_number
from icefield.compaction.result import CompactionResult
from icefield.errors import InvalidFilter, Unsupported
from icefield.expr.parse.ast import Predicate
from icefield.model.snapshot import Snapshot
from icefield.sql.filters.local_times import with_local_times
from icefield.sql.procedures.procedure import TABLE, Arguments, Kind, Procedure, ProcedureRows, optional
from icefield.sql.rows.target import Target
from icefield.sql.syntax.cursor import Cursor
from icefield.sql.syntax.place import Place, point_at, pointing_at
from icefield.table.table import Table

DATA_FILES = pa.schema(
    {
        "rewritten_data_files_count": pa.int32(),
        "added_data_files_count": pa.int32(),
        "rewritten_bytes_count": pa.int64(),
        "failed_data_files_count": pa.int32(),
        "removed_delete_files_count": pa.int32(),
    }
)
_MANIFESTS = pa.schema({"rewritten_manifests_count": pa.int32(), "added_manifests_count": pa.int32()})
_DELETES = pa.schema(
    {
        "rewritten_delete_files_count": pa.int32(),
        "added_delete_files_count": pa.int32(),
        "rewritten_bytes_count": pa.int64(),
        "added_bytes_count": pa.int64(),
    }
)
_STRATEGIES = {"binpack": "bin-pack", "bin-pack": "bin-pack", "sort": "sort"}
_ZORDER = re.compile(r"\s*zorder\s*\((.*)\)\s*", re.IGNORECASE | re.DOTALL)
# Options of Iceberg that say how its jobs are cut and committed, or what ours does in any case.
_WITHOUT_MEANING = frozenset(
    {
        "max-concurrent-file-group-rewrites",
        "partial-progress.enabled",
        "partial-progress.max-commits",
        "partial-progress.max-failed-commits",
        "use-starting-sequence-number",
        "rewrite-job-order",
        "max-file-group-size-bytes",
        "max-file-group-input-files",
        "compression-factor",
        "shuffle-partitions-per-file",
        "var-length-contribution",
        "max-output-size",
        "delete-file-threshold",
    }
)
_RENAMED = {"delete-ratio-threshold": "delete-ratio"}
_DANGLING = "remove-dangling-deletes"


def _rewrite_data_files(arguments: Arguments) -> ProcedureRows:
    table = arguments.table()
    if arguments["branch"] is not None:
        with pointing_at(arguments.place("branch")):
            table = table.at(arguments["branch"])
    options, removes_dangling = _options(arguments)
    strategy, cluster_by, order_by = _order(arguments)
    about = next((name for name in ("sort_order", "options") if arguments[name] is not None), "table")
    with pointing_at(arguments.place(about)), _pointing_at_filter(arguments):
        done = table.compact(
            filter_of(arguments, table),
            strategy=strategy,
            cluster_by=cluster_by,
            order_by=order_by,
            options=options,
            dry_run=arguments.run.is_dry_run,
            engine=arguments.engine,
        )
    row = counts_of_compaction(done)
    if removes_dangling and not done.is_dry_run:
        row[-1] += table.rewrite_deletes(engine=arguments.engine).count("removed-delete-files")
    return [row]


@contextmanager
def _pointing_at_filter(arguments: Arguments) -> Iterator[None]:
    try:
        yield
    except InvalidFilter as error:
        raise point_at(error, arguments.place("where")) from None


def counts_of_compaction(done: CompactionResult) -> list[Any]:
    """Return what was rewritten, or would be, in the columns of `DATA_FILES`."""
    if done.is_dry_run:
        return [done.plan.files_to_rewrite, None, done.plan.bytes_to_rewrite, 0, None]
    failed = max(0, done.plan.files_to_rewrite - done.files_removed) if done.groups_left_out else 0
    deletes = sum(_count(snapshot, "removed-delete-files") for snapshot in done.snapshots)
    # As in Iceberg, the bytes are those of the files that were replaced.
    return [done.files_removed, done.files_added, done.bytes_removed, failed, deletes]


def filter_of(arguments: Arguments, table: Table) -> Predicate | str | None:
    """Return the argument `where`, which is written as in a statement, as a filter."""
    text = arguments["where"]
    if text is None:
        return None
    wording = Target(arguments.name()).wording(arguments.run, table)
    return with_local_times(wording.text(Cursor(text), Place(text, 0, len(text))), table.schema, wording.zone)


def _order(arguments: Arguments) -> tuple[str, Sequence[str], Sequence[str]]:
    """Return the strategy, the columns to cluster by and the terms of a sort order."""
    asked, text = arguments["strategy"], arguments["sort_order"]
    strategy = None if asked is None else _STRATEGIES.get(asked.lower())
    if asked is not None and strategy is None:
        raise arguments.error("strategy", f"unknown strategy {asked!r}", hint="Choose binpack or sort")
    if text is None:
        return strategy or "bin-pack", (), ()
    if strategy == "bin-pack":
        raise arguments.error("sort_order", "binpack takes no sort order", hint="Use strategy => 'sort'")
    found = _ZORDER.fullmatch(text)
    if found is not None:
        columns = [column.strip() for column in found[1].split(",")]
        # One column has no neighbours to be near to: it is sorted.
        return ("cluster", columns, ()) if len(columns) > 1 else ("sort", (), columns)
    return "sort", (), split_terms(text)


def split_terms(text: str) -> list[str]:
    """Split the terms of a sort order at commas outside of parentheses and backticks."""
    return [term.strip() for term in re.split(r",(?![^(`]*[)`])", text)]


def _options(arguments: Arguments) -> tuple[dict[str, str], bool]:
    """Return our options for Iceberg's, and whether deletes without a data file are removed."""
    given: Mapping[str, str] = arguments["options"] or {}
    for name in ("output-spec-id", "max-files-to-rewrite"):
        if name in given:
            raise arguments.error("options", f"the option {name} is not supported", kind=Unsupported)
    kept = {_RENAMED.get(name, name): value for name, value in given.items() if name not in _WITHOUT_MEANING}
    dangling = kept.pop(_DANGLING, "false").lower()
    if dangling not in ("true", "false"):
        raise arguments.error("options", f"the option {_DANGLING} must be true or false, not {dangling!r}")
    return kept, dangling == "true"


def _rewrite_manifests(arguments: Arguments) -> ProcedureRows:
    if arguments["sort_by"] is not None:
        raise arguments.error(
            "sort_by", "manifests are clustered by all partition fields, in their order", kind=Unsupported
        )
    table = arguments.table()
    spec_id = arguments["spec_id"]
    if spec_id is not None and spec_id != table.spec.spec_id:
        raise arguments.error(
            "spec_id", "manifests of all partition specs are rewritten together", hint="Leave it out", kind=Unsupported
        )
    made = table.rewrite_manifests(dry_run=arguments.run.is_dry_run)
    return [[_count(made, "manifests-replaced"), _count(made, "manifests-created")]]


def _rewrite_deletes(arguments: Arguments) -> ProcedureRows:
    table = arguments.table()
    known = {"rewrite-all", "min-input-files", "min-file-size-bytes", "max-file-size-bytes", "target-file-size-bytes"}
    for name in arguments["options"] or {}:
        if name not in known | _WITHOUT_MEANING:
            raise arguments.error("options", f"unknown option {name!r}", hint=f"Known: {', '.join(sorted(known))}")
    before = _delete_bytes(table)
    with pointing_at(arguments.place("where")):
        done = table.rewrite_deletes(
            filter_of(arguments, table), dry_run=arguments.run.is_dry_run, engine=arguments.engine
        )
    if arguments.run.is_dry_run:
        return [[done.plan.files_to_rewrite + done.plan.files_dangling, None, done.plan.bytes_to_rewrite, None]]
    after = _delete_bytes(table)
    gone, new = (
        sum(one[key] for key in one.keys() - other.keys()) for one, other in ((before, after), (after, before))
    )
    return [[done.count("removed-delete-files"), done.count("added-delete-files"), gone, new]]


def _delete_bytes(table: Table) -> dict[tuple[str, int | None], int]:
    """Return the size of each delete file; of a deletion vector, which shares a file with others, its own."""
    columns = ["file_path", "content_offset", "content_size_in_bytes", "file_size_in_bytes"]
    rows = table.inspect("delete_files", where="content = 1", select=columns).to_arrow().read_all().to_pylist()
    return {
        (row["file_path"], row["content_offset"]): row["content_size_in_bytes"] or row["file_size_in_bytes"]
        for row in rows
    }


def _count(snapshot: Snapshot | None, key: str) -> int:
    return 0 if snapshot is None else whole_number(snapshot.summary.get(key)) or 0


_OPTIONS = optional("options", Kind.MAP)
PROCEDURES = (
    Procedure(
        "rewrite_data_files",
        (TABLE, optional("strategy"), optional("sort_order"), _OPTIONS, optional("where"), optional("branch")),
        DATA_FILES,
        _rewrite_data_files,
    ),
    Procedure(
        "rewrite_manifests",
        (
            TABLE,
            optional("use_caching", Kind.BOOLEAN),
            optional("spec_id", Kind.INT),
            optional("sort_by", Kind.STRINGS),
        ),
        _MANIFESTS,
        _rewrite_manifests,
    ),
    Procedure("rewrite_position_delete_files", (TABLE, _OPTIONS, optional("where")), _DELETES, _rewrite_deletes),
)
