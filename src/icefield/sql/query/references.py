"""What the names in a query refer to: tables of the lake, views, temporary views, DataFrames, or relations of Spark.

    orders                  a temporary view, else the table of the current namespace
    shop.orders, lake.shop.orders, shop.orders.files, shop.orders.branch_b        relations of the lake
    parquet.`/a/b`, spark_catalog.db.t, and what else the lake does not have      left to Spark

Raises NoSuchTable, NoSuchSnapshot, Unsupported, InvalidInput; all point at the name.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from icefield.arguments import whole_number
from icefield.catalog.catalog import Kind
from icefield.engine.rows import ChangelogRequest, ChangeStep, load_spark_engine
from icefield.errors import InvalidInput, NeedsSpark, NoSuchSnapshot, Unsupported
from icefield.expr.bind.bound import Bound
from icefield.expr.query.lexer import lex
from icefield.model.metadata import TableMetadata
from icefield.model.names import TableName
from icefield.model.snapshot import RefKind
from icefield.plan.versions import AsOf, ResolvedVersion, parse_moment, resolve_version
from icefield.sql.query.options import SnapshotRange, read_options
from icefield.sql.session import CHANGES, Relation, Run
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import pointing_at
from icefield.sql.text.constants import constant_value, time_value
from icefield.sql.text.shape import Mention, Travel
from icefield.table.changes import AppendScan
from icefield.table.inspection import TableInspection
from icefield.table.scan import TableScan
from icefield.table.table import Table


@dataclass(frozen=True)
class Reference:
    """A mention of a table, view or metadata table of the lake, and the rows of it that are read.

    index: its place among the mentions. name: what stands for it in the text for Spark. as_of: the version that the
    query names. where, columns: what is enough to read; all rows and the columns of the table if None. range: the
    snapshots whose appends or changes are read, instead of the rows of a version.
    """

    index: int
    mention: Mention
    parts: tuple[str, ...]
    name: str
    relation: Relation
    as_of: AsOf | None = None
    table: Table | None = None
    where: Bound | None = None
    columns: Sequence[str] | None = None
    range: SnapshotRange | None = None

    @property
    def is_table(self) -> bool:
        """Whether rows of a version of a table are read, not of a view, of metadata or of a range of snapshots."""
        return self.relation.kind is Kind.TABLE and self.relation.inspects is None and self.range is None

    @property
    def _as_of(self) -> AsOf | None:
        return self.as_of if self.as_of is not None else self.relation.ref

    @property
    def version(self) -> ResolvedVersion:
        """The version of the table that is read."""
        assert self.table is not None
        return resolve_version(self.table.commit_head.load().metadata, self._as_of)

    @property
    def cache_key(self) -> str:
        """What the rows of a table depend on: the table, its version, and what is read of it."""
        version, relation = self.version, self.relation
        snapshot = None if version.snapshot is None else version.snapshot.snapshot_id
        return f"{relation.name}@{snapshot}@{version.schema.schema_id}@{relation.inspects or ''}@{self.range or ''}"

    def frame(self) -> Any:
        """Open it as a DataFrame."""
        assert self.table is not None
        with pointing_at(self.mention.place):
            if self.relation.inspects == CHANGES:
                return open_changes(self.table, self.range or SnapshotRange(end=self._as_of))
            return self.read(self.where, self.columns).to_spark()

    def read(
        self, where: Bound | None = None, columns: Sequence[str] | None = None
    ) -> TableScan | TableInspection | AppendScan:
        """Plan a read of the version, of a range of snapshots, or of metadata, which takes no filter."""
        assert self.table is not None
        if self.relation.inspects == CHANGES:
            raise NeedsSpark("what snapshots changed")
        if self.range is not None:
            return self.table.scan_appends(self.range.start, self.range.end, where=where, select=columns)
        if self.relation.inspects is None:
            return self.scan(where, columns)
        return self.table.inspect(self.relation.inspects, select=columns, as_of=self._as_of)

    def scan(self, where: Bound | None = None, columns: Sequence[str] | None = None) -> TableScan:
        """Plan a read of the version."""
        assert self.table is not None
        return self.table.scan(where, columns, self._as_of)


def open_changes(table: Table, span: SnapshotRange, request: ChangelogRequest | None = None) -> Any:
    """Open what each snapshot of a range changed as a DataFrame: rows with how, when and by which snapshot."""
    session = table.commit_head.sessions.session

    def frame_of(scan: TableScan | None) -> Any:
        return None if scan is None else scan.to_spark(session)

    steps = [
        ChangeStep(each.snapshot.snapshot_id, frame_of(each.before), frame_of(each.after))
        for each in table.scan_changes(span.start, span.end)
    ]
    # Without any change there are the columns, and no row.
    steps = steps or [ChangeStep(0, None, table.scan("FALSE").to_spark(session))]
    return load_spark_engine().changelog(steps, request or ChangelogRequest())


def name_of(run: Run, mention: Mention) -> Name:
    """Return the name of a mention: as written, or the value of IDENTIFIER(...)."""
    if mention.argument is None:
        return Name(mention.parts, mention.name_place)
    cursor = Cursor(mention.argument.source, mention.argument.start, mention.argument.end, run.parameters)
    value = constant_value(run, cursor)
    cursor.expect_end()
    if not isinstance(value, str):
        raise mention.argument.error(f"IDENTIFIER takes a text, not {value!r}", kind=InvalidInput)
    tokens = list(lex(value))
    is_name = bool(tokens) and all(t.is_name if at % 2 == 0 else t.text == "." for at, t in enumerate(tokens))
    if not is_name or len(tokens) % 2 == 0:
        raise mention.argument.error(f"{value!r} is not the name of a table", kind=InvalidInput)
    return Name(tuple(token.name for token in tokens[::2]), mention.name_place)


def find_relation_of(run: Run, name: Name) -> Relation | None:
    """Return what a name refers to in the lake; None for what is left to Spark."""
    found = run.find(name)
    return None if found is not None and run.is_hidden(name) else found


def with_versions(run: Run, reference: Reference) -> Reference:
    """Return a reference with the version or the range that its clause or its options name."""
    mention, relation = reference.mention, reference.relation
    as_of = _travelled(run, relation, mention.travel)
    if mention.options is None:
        return replace(reference, as_of=as_of)
    options = read_options(run, mention.options)
    if relation.kind is Kind.VIEW or (options.range is not None and relation.inspects not in (None, CHANGES)):
        raise mention.options.error("a view and a metadata table take no options", kind=Unsupported)
    if relation.ref is not None or as_of is not None:
        raise mention.options.error("a version is named already", kind=InvalidInput)
    return replace(reference, as_of=options.as_of, range=options.range)


def _travelled(run: Run, relation: Relation, travel: Travel | None) -> AsOf | None:
    """Return the version that a clause names: a snapshot id, a time, or a ref."""
    if travel is None:
        return None
    if relation.kind is Kind.VIEW:
        raise travel.place.error("a view has no versions to read", kind=Unsupported)
    if relation.ref is not None:
        raise travel.place.error("a branch or tag is a version already", kind=Unsupported)
    cursor = Cursor(travel.value.source, travel.value.start, travel.value.end, run.parameters)
    if travel.is_time:
        return time_value(run, cursor)
    value = constant_value(run, cursor)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise travel.value.error(
            f"a version is a snapshot id or the name of a branch or tag, not {value!r}",
            hint="Use TIMESTAMP AS OF for a time" if isinstance(value, datetime) else None,
            kind=InvalidInput,
        )
    return value


def pin(reference: Reference, table: Table) -> Reference:
    """Return a reference with its table; raise an error if the version that it names does not exist."""
    metadata = table.commit_head.load().metadata
    return replace(_at_version(reference, metadata), table=table)


def _at_version(reference: Reference, metadata: TableMetadata) -> Reference:
    relation, travel = reference.relation, reference.mention.travel
    if relation.ref is not None:
        ref = metadata.refs.get(relation.ref)
        wanted = RefKind.TAG if relation.is_tag else RefKind.BRANCH
        if ref is None or ref.kind is not wanted:
            kind = "tag" if relation.is_tag else "branch"
            known = ", ".join(name for name, each in metadata.refs.items() if each.kind is wanted) or "none"
            raise reference.mention.place.error(
                f"{relation.name} has no {kind} {relation.ref!r} (there is: {known})", kind=NoSuchSnapshot
            )
    if reference.as_of is None:
        return reference
    with pointing_at(reference.mention.place if travel is None else travel.value):
        as_of = reference.as_of
        if isinstance(as_of, str):
            as_of = _version_of_text(as_of, relation.name, metadata)
        elif isinstance(as_of, int) and metadata.snapshots.find(as_of) is None and str(as_of) in metadata.refs:
            as_of = str(as_of)
        resolve_version(metadata, as_of)
        return replace(reference, as_of=as_of)


def _version_of_text(text: str, table: TableName, metadata: TableMetadata) -> int | str:
    """Return the snapshot id, else the branch or tag, that a text names."""
    number = whole_number(text)
    if number is not None and metadata.snapshots.find(number) is not None:
        return number
    if text in metadata.refs:
        return text
    known = ", ".join(metadata.refs) or "none"
    raise NoSuchSnapshot(
        f"{table} has no snapshot, branch or tag {text!r} (branches and tags: {known})", hint=_hint_of_time(text)
    )


def _hint_of_time(text: str) -> str | None:
    try:
        parse_moment(text, "it")
    except InvalidInput:
        return None
    return "Use TIMESTAMP AS OF for a time"
