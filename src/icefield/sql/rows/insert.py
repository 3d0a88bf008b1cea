"""INSERT INTO and INSERT OVERWRITE.

    INSERT [WITH SCHEMA EVOLUTION] INTO [TABLE] name [PARTITION (...)] [(columns) | BY NAME] query
    INSERT [WITH SCHEMA EVOLUTION] INTO [TABLE] name [(columns) | BY NAME] REPLACE WHERE condition query
    INSERT [WITH SCHEMA EVOLUTION] INTO [TABLE] name [alias] [(columns) | BY NAME] REPLACE USING (columns) query
    INSERT [WITH SCHEMA EVOLUTION] INTO [TABLE] name [alias] [BY NAME] REPLACE ON condition query | (query) [alias]
    INSERT OVERWRITE [PARTITIONS] [TABLE] name [PARTITION (...)] [(columns) | BY NAME] query

Rows that are literals are written without Spark.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from icefield.dml.verbs import OVERWRITE
from icefield.engine.choose import LOCAL
from icefield.engine.rows import load_spark_engine
from icefield.errors import InvalidInput, NeedsSpark, Unsupported
from icefield.expr.parse.ast import Predicate
from icefield.sql.filters.local_times import with_local_times
from icefield.sql.query.read import open_query
from icefield.sql.rows.expressions import Wording, pointing_into
from icefield.sql.rows.insert_columns import InsertColumns, check_required, parse_insert_columns, wrong_width
from icefield.sql.rows.partition import (
    PartitionValue,
    parse_partition,
    partition_columns,
    partition_filter,
    partition_literals,
)
from icefield.sql.rows.replace import NewRows, ReplaceOn, Replaces, is_dynamic, parse_replace_on
from icefield.sql.rows.spark import refusing_functions
from icefield.sql.rows.target import Target, at_one_moment
from icefield.sql.rows.values import (
    LiteralColumns,
    ValueRows,
    check_width,
    find_items,
    parse_values,
    with_defaults,
)
from icefield.sql.session import Rows, Run
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place, pointing_at
from icefield.sql.text.constants import session_zone
from icefield.sql.text.mentions import find_mentions
from icefield.sql.text.shape import BEGIN_QUERIES
from icefield.table.table import Table


@dataclass(frozen=True)
class Insert:
    """An INSERT. where: the condition of REPLACE WHERE. equal: the columns of REPLACE USING. on: REPLACE ON.

    own: the part of the query that is this INSERT's alone, if it begins with a part of the statement before it.
    """

    cursor: Cursor
    name: Name
    replaces: Replaces
    partition: tuple[PartitionValue, ...]
    columns: InsertColumns
    query: Place
    where: Place | None = None
    equal: tuple[Name, ...] = ()
    merges_schema: bool = False
    on: ReplaceOn | None = None
    own: Place | None = None

    def run(self, run: Run) -> Rows:
        """Write the rows, and return what was done."""
        with self._moment(run) as inside:
            return self.write(self.open(inside))

    def open(self, run: Run) -> NewRows:
        """Open the new rows, at the versions of this moment."""
        table = run.table(self.name, "insert into")
        return self._rows(run, table)

    def write(self, new: NewRows) -> Rows:
        """Write new rows, and return what was done."""
        with self._pointing(new.table):
            return self._write(new)

    def explain(self, run: Run, mode: str) -> str:
        """Return what would be replaced, and the files in which it is."""
        table = run.table(self.name, "insert into")
        removed = {
            Replaces.NONE: "no row is replaced",
            Replaces.PARTITIONS: "the partitions that get rows are replaced",
            Replaces.EQUAL: f"rows with equal {', '.join(map(str, self.equal))} are replaced",
            Replaces.JOINED: f"rows are replaced where {'' if self.on is None else self.on.condition.text}",
        }.get(self._kind(run))
        if removed is not None:
            return f"insert into {table.name}: {removed}"
        return f"insert into {table.name}, replacing\n{table.explain_change(self._filter(run, table))}"

    def _moment(self, run: Run) -> AbstractContextManager[Run]:
        """Return the moment of the statement: appended rows need none, because nothing of the table is replaced."""
        reads = self.replaces in (Replaces.EQUAL, Replaces.JOINED) or find_mentions(self.query).mentions
        if self.replaces is Replaces.NONE or not reads:
            return nullcontext(run)
        assert OVERWRITE.isolation is not None
        return at_one_moment(run, self.name, OVERWRITE.isolation)

    def _write(self, new: NewRows) -> Rows:
        match self._kind(new.run):
            case Replaces.NONE:
                return new.append()
            case Replaces.PARTITIONS:
                return new.overwrite_partitions()
            case Replaces.EQUAL:
                fields = InsertColumns(self.equal).expected(new.table.schema, ())
                return new.replace_equal([f.name for f in fields])
            case Replaces.JOINED:
                return self._replace_on(new)
            case _:
                return new.overwrite(self._filter(new.run, new.table))

    def _replace_on(self, new: NewRows) -> Rows:
        assert self.on is not None
        labels = self.on.labels(new.run, self.name)
        with pointing_into(self.on.condition), refusing_functions([self.on.condition]):
            text = Wording(labels, zone=session_zone(new.run)).text(self.cursor, self.on.condition)
            return new.replace_joined(text, labels[0].name, labels[1].name)

    def _kind(self, run: Run) -> Replaces:
        is_static = bool(self.partition) and all(each.value is not None for each in self.partition)
        if self.replaces is not Replaces.ALL or not is_dynamic(run):
            return self.replaces
        return self._dynamic(run, is_static=is_static)

    def _dynamic(self, run: Run, *, is_static: bool) -> Replaces:
        """Return what mode `dynamic` replaces: a partition that PARTITION names wholly is replaced in either mode."""
        fields = run.table(self.name).spec.fields
        return Replaces.ALL if is_static and len(self.partition) == len(fields) else Replaces.PARTITIONS

    def _filter(self, run: Run, table: Table) -> Predicate | str | None:
        if self.where is None:
            return partition_filter(run, table, self.cursor, self.partition) if self.partition else None
        wording = Target(self.name).wording(run, table)
        with pointing_into(self.where):
            return with_local_times(wording.text(self.cursor, self.where), table.schema, wording.zone)

    def _rows(self, run: Run, table: Table) -> NewRows:
        schema = table.schema
        partition = [each for each in self.partition if each.value is not None]
        partition_columns(table, self.partition)
        fixed = partition_columns(table, partition)
        expected = self.columns.expected(schema, fixed)
        new = partial(NewRows, run, table, merges_schema=self.merges_schema)
        if self.columns.by_name is None:
            check_required([f.name for f in (*expected, *fixed)], schema, self._columns_place)
            values = parse_values(self.cursor, self.query)
            if values is not None and self.on is None:
                names = [f.name for f in expected]
                check_width(values, len(names), wrong_width("{found}", names))
                try:
                    return new(self._literals(run, table, values))
                except NeedsSpark:
                    if run.engine == LOCAL:
                        raise
        if run.engine == LOCAL:
            raise self.query.error("a query", kind=NeedsSpark)
        by_position = self.columns.by_name is None
        frame = open_query(run, with_defaults(self.cursor, self.query, expected if by_position else ()))
        with self._pointing(table):
            if self.replaces in (Replaces.EQUAL, Replaces.JOINED):  # what goes and what comes are the same rows
                frame = load_spark_engine().computed_once(frame, "insert")
            columns = self.columns.placed(frame.columns, schema, fixed, merges_schema=self.merges_schema)
            check_required([*columns, *(f.name for f in fixed)], schema, self._columns_place)
            literals = partition_literals(run, self.cursor, partition, fixed)
            constants = {f.name: str(text) for f, text in zip(fixed, literals, strict=True)}
            rows = load_spark_engine().rows_to_insert(frame, columns, schema, constants, by_position=by_position)
            return new(rows, query=frame)

    def _literals(self, run: Run, table: Table, values: ValueRows) -> Any:
        partition = [each for each in self.partition if each.value is not None]
        fixed = partition_columns(table, partition)
        columns = LiteralColumns(run, self.cursor)
        rows = columns.table(values, self.columns.expected(table.schema, fixed))
        literals = partition_literals(run, self.cursor, partition, fixed)
        for field, each, text in zip(fixed, partition, literals, strict=True):
            assert each.value is not None
            with pointing_at(each.value):
                rows = rows.append_column(field.name, columns.constant(str(text), field, rows.num_rows))
        return rows

    def _pointing(self, table: Table) -> AbstractContextManager[None]:
        """Let errors about the value of a column point at the item of the query that it comes from."""
        items = [] if self.columns.by_name else find_items(self.cursor, self.own or self.query)
        fixed = partition_columns(table, [each for each in self.partition if each.value is not None])
        names = [f.name.lower() for f in self.columns.expected(table.schema, fixed)]
        places = (self.own or self.query, *(() if self.where is None else (self.where,)))
        return pointing_into(*places, values=dict(zip(names, items, strict=False)))

    @property
    def _columns_place(self) -> Place:
        if self.columns.names:
            first, last = self.columns.names[0].place, self.columns.names[-1].place
            return Place(first.source, first.start, last.end)
        return self.columns.by_name or self.own or self.query


def parse_insert(cursor: Cursor) -> Insert:
    """Parse INSERT."""
    cursor.expect("insert")
    merges_schema = cursor.accept("with", "schema", "evolution")
    replaces = Replaces.NONE
    if cursor.expect_any("into", "overwrite") == "overwrite":
        if cursor.is_at("directory") or cursor.is_at("local", "directory"):
            raise cursor.error("INSERT OVERWRITE writes to tables, not to directories", kind=Unsupported)
        replaces = Replaces.PARTITIONS if _accept_partitions(cursor) else Replaces.ALL
    if cursor.is_at("table") and _begins_name(cursor, 1):
        cursor.expect("table")
    name = cursor.name("the table to insert into")
    alias = _parse_alias(cursor)
    partition = parse_partition(cursor) if cursor.is_at("partition") else ()
    if cursor.is_at("if", "not", "exists"):
        raise cursor.error("INSERT with IF NOT EXISTS is not supported", kind=Unsupported)
    columns = parse_insert_columns(cursor)
    if replaces is Replaces.NONE and cursor.accept("replace"):
        insert = Insert(cursor, name, replaces, partition, columns, name.place, merges_schema=merges_schema)
        return _parse_replace(cursor, insert, alias)
    _refuse_alias(alias)
    return Insert(cursor, name, replaces, partition, columns, cursor.rest(), merges_schema=merges_schema)


def _parse_replace(cursor: Cursor, insert: Insert, alias: Name | None) -> Insert:
    """Parse what follows REPLACE."""
    match cursor.expect_any("where", "using", "on"):
        case "where":
            _refuse_alias(alias)
            found = replace(insert, replaces=Replaces.MATCHING, where=_condition(cursor))
        case "using":
            found = replace(insert, replaces=Replaces.EQUAL, equal=cursor.names("a column"))
        case _:
            on, query = parse_replace_on(cursor, alias, insert.columns)
            return replace(insert, replaces=Replaces.JOINED, on=on, query=query)
    columns = insert.columns if insert.columns != InsertColumns() else parse_insert_columns(cursor)
    return replace(found, columns=columns, query=cursor.rest())


def _refuse_alias(alias: Name | None) -> None:
    if alias is not None:
        raise alias.place.error(
            "the table of INSERT has an alias only before REPLACE ON and REPLACE USING", kind=InvalidInput
        )


def _accept_partitions(cursor: Cursor) -> bool:
    """Read our word PARTITIONS, unless it is the name of the table."""
    is_word = cursor.is_at("partitions") and (cursor.peek(1) == "table" or _begins_name(cursor, 1))
    return is_word and cursor.accept("partitions")


def _begins_name(cursor: Cursor, ahead: int) -> bool:
    """Return whether a name follows, and not the query."""
    token = cursor.token(ahead)
    return token is not None and token.is_name and token.word not in (*BEGIN_QUERIES, "partition", "by", "replace")


def _parse_alias(cursor: Cursor) -> Name | None:
    """Read an alias of the table, if one follows."""
    has_word = cursor.accept("as")
    if not has_word and not (_begins_name(cursor, 0) and cursor.peek() not in ("if", "with")):
        return None
    place = cursor.place
    return Name((cursor.identifier("an alias"),), place)


def _condition(cursor: Cursor) -> Place:
    """Read a condition up to the query; FROM may be a part of `IS DISTINCT FROM`."""
    place = cursor.until(*BEGIN_QUERIES, what="a condition")
    while cursor.is_at("from") and place.text.lower().endswith("distinct"):
        cursor.take()
        cursor.until(*BEGIN_QUERIES, what="a condition")
        place = cursor.since(place.start)
    return place
