"""Queries without a JVM: DuckDB runs them over scans of the lake's tables, all of one moment.

    SELECT count(*) FROM shop.orders VERSION AS OF :v  ->  SELECT COUNT(*) FROM icefield_…, the rows of that version

The names of a query are found as for Spark. Then sqlglot translates its text, so the query has the semantics of DuckDB.
DuckDB says which columns and filters each scan needs, and cannot reach any other file. Raises InvalidInput,
Unsupported, NoSuchTable.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark

from icefield.catalog.catalog import Kind
from icefield.errors import IcefieldError, InvalidInput, Unsupported
from icefield.expr.query.lexer import lex
from icefield.model.names import TableName
from icefield.sql.filters.arrow_expression import read_expression
from icefield.sql.filters.filters import filter_of
from icefield.sql.filters.zone import Zone
from icefield.sql.query.errors import token_called, without_generated
from icefield.sql.query.names import QueryNames
from icefield.sql.query.pins import Pins
from icefield.sql.query.read import Opening, remaining_values
from icefield.sql.query.references import Reference
from icefield.sql.session import Rows, Run, SqlSession
from icefield.sql.syntax.place import Place, pointing_at
from icefield.sql.syntax.strings import string_value
from icefield.sql.text.constants import STRINGS
from icefield.sql.text.rewrite import Rewritten
from icefield.types.arrow import arrow_schema
from icefield.view import spark_sql_of

DUCKDB = "duckdb"
# Files, extensions and variables of this process are out of reach.
_SETTINGS = {"enable_external_access": "false", "python_enable_replacements": "false"}
_ON_SPARK = "Run it on Spark, without engine='local'"
# What follows is the text for DuckDB, which the author did not write.
_EXCERPT = re.compile(r"\s*\nLINE \d+: .*", re.DOTALL)
# What DuckDB raises as a RuntimeError where Python has noticed Ctrl-C.
_INTERRUPTED = "Query interrupted"
_KIND = re.compile(r"^\w[\w ]* Error: ")
# What sqlglot raises where its own code meets a query that it did not expect.
_FAULTS = (AssertionError, AttributeError, KeyError, IndexError, TypeError, ValueError, RecursionError)
_UTC = Zone("UTC", lambda moments: [0] * len(moments))


def run_locally(run: Run, place: Place) -> Rows:
    """Run a query with DuckDB, and return all its rows."""
    return Rows(_LocalQuery(run, place).table())


def explain_locally(run: Run, place: Place) -> str:
    """Return DuckDB's plan of a query."""
    return _LocalQuery(run, place).plan()


class AnsiSpark(Spark):
    """Spark's dialect as it is by default: a CAST that is not possible is an error, not null."""

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]
        """Its parser."""

        STRICT_CAST = True


@dataclass(frozen=True)
class Translated:
    """A query for DuckDB. values: those of its parameters."""

    sql: str
    values: Mapping[str, Any] | Sequence[Any]


class _LocalQuery:
    """A query with a connection of its own, in which its relations are registered."""

    def __init__(self, run: Run, place: Place) -> None:
        self._run = run
        self._place = place
        self._duckdb = _load_duckdb()
        self._connection = self._duckdb.connect(":memory:", config=_SETTINGS)
        self._connection.execute("SET TimeZone = 'UTC'")
        self._pins = Pins(run)
        self._relations: list[ScannedRelation] = []
        self._names: dict[str, str] = {}  # as written, by the names that are for them in the text for DuckDB
        self._query = self._open(run, place, ())

    def table(self) -> pa.Table:
        """Run it."""
        with self._explained(self._place):
            result = self._connection.execute(self._query.sql, self._query.values)
            kinds = [str(column[1]) for column in result.description]
            rows = _with_integers(result.to_arrow_table(), kinds)
        # A column without a name is called as its expression, which may be a query.
        return rows.rename_columns([without_generated(name, self._names) for name in rows.column_names])

    def plan(self) -> str:
        """Return how it would be run."""
        with self._explained(self._place):
            rows = self._connection.execute(f"EXPLAIN {self._query.sql}", self._query.values).fetchall()
        return without_generated("\n".join(str(row[-1]) for row in rows))

    def _open(self, run: Run, place: Place, inside: tuple[TableName, ...]) -> Translated:
        """Register what a query reads, and return it for DuckDB. inside: the views that it is part of."""
        opening = Opening(run, self._pins)
        return self._register(run, opening, opening.names(place), inside)

    def _register(self, run: Run, opening: Opening, names: QueryNames, inside: tuple[TableName, ...]) -> Translated:
        if names.left:
            raise run.missing(names.left[0])
        for given in names.given:
            raise given.mention.place.error("cannot read a DataFrame of Spark without Spark", kind=Unsupported)
        for each in names.references:
            if each.relation.kind is Kind.VIEW:
                with pointing_at(each.mention.place):
                    self._define_view(each, inside)
            else:
                self._scan(each)
        for temporary in names.temporary:
            below = self._register(run, opening, temporary.query, inside)
            self._define(temporary.name, below, temporary.mention.place)
        self._names |= {each.name: ".".join(each.parts) for each in names.references}
        self._names |= {each.name: ".".join(each.parts) for each in names.temporary}
        return translate(run, opening.rewritten(names))

    def _scan(self, reference: Reference) -> None:
        """Register the rows of a table or metadata table.

        DuckDB passes filters on to Arrow, which takes NaN for less than nothing and -0.0 for another value than 0.0 in
        lists. So columns with floats are read through expressions that change nothing, on which it filters itself.
        """
        relation = ScannedRelation(reference)
        self._relations.append(relation)
        floats = [_unfiltered(field) for field in relation.schema if _has_floats(field.type)]
        if not floats:
            self._connection.register(reference.name, relation)
            return
        rows = f"{reference.name}x"
        self._connection.register(rows, relation)
        self._connection.execute(
            f"CREATE VIEW {reference.name} AS SELECT * REPLACE ({', '.join(floats)}) FROM {rows}"  # noqa: S608 - quoted
        )

    def _define_view(self, reference: Reference, inside: tuple[TableName, ...]) -> None:
        """Define a view of the lake as a view of the connection; its names of one part are in its own namespace."""
        name = reference.relation.name
        if name in inside:
            raise InvalidInput(f"the view {name} reads itself")
        view = self._run.lake.view(str(name))
        version = view.metadata.current_version
        text = spark_sql_of(name, version)
        session = SqlSession(self._run.lake, version.default_namespace, self._run.session.transaction)
        query = self._open(replace(self._run, session=session), Place(text, 0, len(text)), (*inside, name))
        self._define(reference.name, query, reference.mention.place, [field.name for field in view.schema.fields])

    def _define(self, name: str, query: Translated, place: Place, columns: Sequence[str] = ()) -> None:
        listed = ", ".join(exp.to_identifier(each, quoted=True).sql(DUCKDB) for each in columns)
        with self._explained(place):
            self._connection.execute(f"CREATE VIEW {name}{f' ({listed})' if listed else ''} AS {query.sql}")

    @contextmanager
    def _explained(self, place: Place) -> Iterator[None]:
        """Raise errors of DuckDB as errors that point at a part of a text, and those of a scan as they are."""
        try:
            yield
        except self._duckdb.Error as error:
            of_scan = next((each.error for each in self._relations if each.error is not None), None)
            raise of_scan or error_of(str(error), place) from error
        except RuntimeError as error:
            if str(error) != _INTERRUPTED:
                raise
            self._connection.interrupt()  # or its threads go on, and closing it waits for them
            raise KeyboardInterrupt from error


class ScannedRelation(pyarrow.dataset.Dataset):  # type: ignore[misc]
    """A relation that DuckDB reads as often as it wants, each time with the columns and the filter that it needs.

    error: what went wrong in a scan, which DuckDB would tell of in its own words.
    """

    def __init__(self, reference: Reference) -> None:
        self._reference = reference
        self._columns = reference.columns
        self._schema = reference.read(None, self._columns).schema
        self.error: IcefieldError | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return arrow_schema(self._schema)

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002 - Arrow's
        **_: Any,
    ) -> pyarrow.dataset.Scanner:
        """Plan a scan; the filter leaves out files, and then rows."""
        names = self._schema.column_names
        wanted = names if columns is None else list(columns)
        said = "" if filter is None else str(filter)
        read = [name for name in names if name in wanted or name in said]
        try:
            condition = None if filter is None else read_expression(filter, self.schema, self._schema)
            where = None if condition is None else filter_of(condition, self._schema, _UTC)
            reader = self._reference.read(where, read).to_arrow()
        except IcefieldError as error:
            self.error = error
            raise
        batches = pa.RecordBatchReader.from_batches(reader.schema, self._guarded(reader))
        return pyarrow.dataset.Scanner.from_batches(batches, columns=wanted, filter=filter)

    def _guarded(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except IcefieldError as error:
            self.error = error
            raise


def translate(run: Run, rewritten: Rewritten) -> Translated:
    """Translate a query to DuckDB's dialect."""
    place = rewritten.origin
    try:
        tree = _as_query(sqlglot.parse_one(_plain_text(rewritten.text), read=AnsiSpark), run)
        sql = tree.sql(DUCKDB, unsupported_level=sqlglot.ErrorLevel.RAISE)
    except sqlglot.errors.UnsupportedError as error:
        raise place.error(f"DuckDB cannot run it: {error}", hint=_ON_SPARK, kind=Unsupported) from error
    except (sqlglot.ParseError, sqlglot.TokenError) as error:
        found = error.errors[0] if isinstance(error, sqlglot.ParseError) and error.errors else {}
        at = token_called([str(found.get("highlight", ""))], place)
        raise at.error("cannot parse the query", hint=_ON_SPARK, kind=InvalidInput) from error
    except _FAULTS as error:
        raise place.error("cannot translate the query", hint=_ON_SPARK, kind=Unsupported) from error
    markers = [marker.name for marker in tree.find_all(exp.Placeholder) if marker.name not in ("", "?")]
    if not markers:
        return Translated(sql, remaining_values(run, rewritten))
    for name in markers:
        if name not in run.parameters.named:
            known, at = ", ".join(run.parameters.named) or "none", token_called([name], place)
            marker = Place(at.source, at.start - (at.source[at.start - 1 : at.start] == ":"), at.end)
            raise marker.error(f"there is no value for the parameter :{name} (given: {known})", kind=InvalidInput)
    return Translated(sql, {name: run.parameters.named[name] for name in markers})


def error_of(said: str, place: Place) -> IcefieldError:
    """Return what DuckDB says about a query as an error that points at the name that it is about."""
    message = without_generated(_KIND.sub("", _EXCERPT.sub("", said)))
    first, *hints = [line.strip() for line in message.splitlines() if line.strip()]
    names = re.findall(r'"([^"]+)"|name (\w+)', first)
    at = token_called([name for pair in names for name in pair if name], place)
    return at.error(f"DuckDB: {first}", hint=" ".join(hints) or None, kind=InvalidInput)


def _plain_text(text: str) -> str:
    """Return a text whose strings are written in the one way that every parser reads alike; TABLE t as a query."""
    pieces, at = [], 0
    for index, token in enumerate(lex(text)):
        written = _string(string_value(token)) if token.kind in STRINGS else token.text
        written = "SELECT * FROM" if index == 0 and token.word == "table" else written
        pieces += [text[at : token.start], written]
        at = token.end
    return "".join([*pieces, text[at:]])


def _as_query(tree: Any, run: Run) -> Any:
    """Return a query that DuckDB has words for: without hints, and with the lake's current namespace."""
    for each in tree.find_all(exp.Select):
        each.set("hint", None)
    _refuse_outer(tree)
    for call in list(tree.find_all(exp.CurrentSchema)):
        call.replace(exp.Literal.string(".".join(run.session.namespace)))
    for like in list(tree.find_all(exp.Like, exp.ILike)):
        like.replace(_with_escape(like))
    return exp.select("*").from_(tree) if isinstance(tree, exp.Values) else tree


def _refuse_outer(tree: Any) -> None:
    """Refuse what keeps rows whose array is empty or null: its translation would lose them."""
    for each in tree.find_all(exp.Lateral, exp.ExplodeOuter, exp.PosexplodeOuter):
        if not isinstance(each, exp.Lateral) or (each.args.get("view") and each.args.get("outer")):
            raise sqlglot.errors.UnsupportedError("OUTER, for the rows of empty arrays, has no translation")


def _with_escape(like: Any) -> Any:
    """Return LIKE with the escape character that Spark has by default."""
    pattern = like.expression
    literals = list(pattern.find_all(exp.Literal))
    is_plain = all(isinstance(each, exp.Literal | exp.Tuple | exp.Paren | exp.Any | exp.All) for each in pattern.walk())
    if isinstance(like.parent, exp.Escape) or (is_plain and all("\\" not in each.name for each in literals)):
        return like
    if isinstance(pattern, exp.Any | exp.All):
        raise sqlglot.errors.UnsupportedError("LIKE with several patterns and an escape character has no translation")
    return exp.Escape(this=like.copy(), expression=exp.Literal.string("\\"))


def _has_floats(kind: pa.DataType) -> bool:
    inner = (kind.field(at).type for at in range(kind.num_fields))
    return pa.types.is_floating(kind) or any(map(_has_floats, inner))


def _unfiltered(field: pa.Field) -> str:
    """Return an expression that has the value of a column, and that DuckDB does not pass on to Arrow in a filter."""
    name = exp.to_identifier(field.name, quoted=True).sql(DUCKDB)
    if not pa.types.is_floating(field.type):
        return f"([{name}])[1] AS {name}"
    return f"{name} * 1::{'FLOAT' if pa.types.is_float32(field.type) else 'DOUBLE'} AS {name}"


def _string(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _with_integers(table: pa.Table, kinds: Sequence[str]) -> pa.Table:
    """Return sums of integers, which DuckDB has with 128 bits, as 64-bit integers, where they fit."""
    for at, kind in enumerate(kinds):
        if kind == "HUGEINT":
            try:
                column = table.column(at).cast(pa.int64())
            except pa.ArrowInvalid:
                continue
            table = table.set_column(at, table.schema.field(at).with_type(pa.int64()), column)
    return table


def _load_duckdb() -> Any:
    try:
        return import_module(DUCKDB)
    except ImportError as error:
        raise Unsupported(
            "queries without Spark need DuckDB, which is not installed",
            hint="Run pip install 'icefield[duckdb]', or run the query on Spark",
        ) from error
