"""Conditions of a query by its text, for sessions that do not show their plans.

    SELECT * FROM shop.orders o LEFT JOIN shop.items i ON o.id = i.order_id AND i.sku = 'a' WHERE o.day > '2026-01-01'
      ->  orders: day > '2026-01-01'        items: sku = 'a'

The text is parsed by sqlglot, in a form that it cannot misread: without comments and hints, with generated names for
tables, with functions by names that it does not know, and without strings that have escapes. Each SELECT is taken for
itself: its WHERE, and the ON of joins as far as their kind allows. A name is a column only if it can be no other one.
What is not certain says nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import ErrorLevel, ParseError, TokenError, exp
from sqlglot.dialects.spark import Spark

from icefield.engine.queries.probe import Keys
from icefield.errors import InvalidFilter
from icefield.expr.bind.bind import find_reference
from icefield.expr.bind.bound import Reference
from icefield.expr.parse import ast
from icefield.expr.query.lexer import Lexeme, LexemeKind, lex
from icefield.sql.filters.expression import Column, Expression
from icefield.sql.filters.text_expressions import CALL, KNOWN_CALLS, UNKNOWN_CALL, Moment, has_only, read_expression
from icefield.sql.syntax.place import Place
from icefield.types.datatypes import StructType
from icefield.types.schema import Schema

_TABLE = "icefield_table_"
_STRANGE = frozenset({LexemeKind.RAW, LexemeKind.DOLLAR, LexemeKind.OTHER, LexemeKind.UNCLOSED})
# By side and kind of a join: whether its condition filters the relations before it, and the new one.
_FILTERED = {
    ("", ""): (True, True),
    ("", "INNER"): (True, True),
    ("", "CROSS"): (True, True),
    ("", "SEMI"): (True, True),
    ("", "ANTI"): (False, True),
    ("LEFT", ""): (False, True),
    ("LEFT", "OUTER"): (False, True),
    ("LEFT", "SEMI"): (True, True),
    ("LEFT", "ANTI"): (False, True),
    ("RIGHT", ""): (True, False),
    ("RIGHT", "OUTER"): (True, False),
    ("FULL", ""): (False, False),
    ("FULL", "OUTER"): (False, False),
}
_CLAUSES = (
    *("with_", "expressions", "from_", "joins", "laterals", "where", "group", "having", "qualify", "windows"),
    *("distinct", "order", "sort", "cluster", "distribute", "limit", "offset"),
)
_HIDES_RIGHT = frozenset({"SEMI", "ANTI"})


@dataclass(frozen=True)
class TextTable:
    """A table in a text. place: of its name and version. name: in lower case, with its namespace."""

    index: int
    place: Place
    name: tuple[str, ...]
    schema: Schema


@dataclass(frozen=True)
class Condition:
    """A condition on a table. is_optional: the rows of the table may be missing in the result, as nulls."""

    table: int
    expression: Expression
    is_optional: bool


@dataclass
class TextConditions:
    """What was found. tables: those that are read as the text says, once each."""

    tables: list[int] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    keys: list[Keys] = field(default_factory=list)


def read_text(place: Place, tables: Sequence[TextTable], values: Mapping[str, str], moment: Moment) -> TextConditions:
    """Find the conditions of a query. values: the literals that stand for markers and DataFrames `{name}`."""
    text = _plain_text(place, tables, values)
    found = TextConditions()
    if text is None:
        return found
    try:
        statements = Spark().parse(text, error_level=ErrorLevel.IMMEDIATE)
        queries = list(statements[0].find_all(exp.Select)) if len(statements) == 1 and statements[0] else []
        selects = {id(query): _Select(query, tables) for query in queries}
        for select in selects.values():
            select.read(found, selects, moment)
    except (ParseError, TokenError, RecursionError, ValueError):
        return TextConditions()
    return found


def _plain_text(place: Place, tables: Sequence[TextTable], values: Mapping[str, str]) -> str | None:
    """Write a query for the parser; None if it has syntax that the parser reads otherwise than Spark."""
    tokens = [token for token in lex(place.source[: place.end]) if token.start >= place.start]
    written: list[str] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        table = next((each for each in tables if each.place.start == token.start), None)
        if table is not None:
            written.append(f"{_TABLE}{table.index}")
            at = next((i for i in range(at, len(tokens)) if tokens[i].start >= table.place.end), len(tokens))
            continue
        if token.kind in _STRANGE or token.text == "|>":
            return None
        if token.text == "/*+":
            at = next((i for i in range(at, len(tokens)) if tokens[i].text == "*/"), len(tokens)) + 1
            continue
        text, length = _written(tokens, at, values)
        written.append(text)
        at += length
    return " ".join(written)


def _written(tokens: Sequence[Lexeme], at: int, values: Mapping[str, str]) -> tuple[str, int]:
    """Write one token, or a marker; return how many tokens that is."""
    token = tokens[at]
    following = [each.text for each in tokens[at + 1 : at + 3]]
    if token.text == ":" and len(following) > 0 and tokens[at + 1].is_name:
        return values.get(tokens[at + 1].name, UNKNOWN_CALL), 2
    if token.text == "{" and len(following) == 2 and following[1] == "}":
        return UNKNOWN_CALL, 3
    if token.text == "?":
        return UNKNOWN_CALL, 1
    is_string = token.kind is LexemeKind.STRING
    if is_string and ("\\" in token.text or not token.text.startswith("'") or "'" in token.text[1:-1]):
        return UNKNOWN_CALL, 1
    is_part = at > 0 and tokens[at - 1].text == "."
    if token.word in KNOWN_CALLS and following[:1] == ["("] and not is_part:
        return CALL + token.word, 1
    return token.text, 1


@dataclass(frozen=True)
class _Source:
    """A relation of a FROM clause. name: in lower case; columns may be qualified by the end of it.

    is_optional: its rows may be missing in the result, as nulls. is_hidden: its columns are not in the result.
    """

    name: tuple[str, ...]
    table: TextTable | None = None
    is_optional: bool = False
    is_hidden: bool = False
    is_sampled: bool = False

    @property
    def schema(self) -> Schema | None:
        """Its columns, if they are known."""
        return None if self.table is None else self.table.schema


class _Select:
    """A SELECT: its relations, and its conditions on them."""

    def __init__(self, query: exp.Select, tables: Sequence[TextTable]) -> None:
        self._query = query
        self._tables = {f"{_TABLE}{table.index}": table for table in tables}
        self._joins: list[exp.Join] = list(query.args.get("joins") or [])
        self.sources = self._find_sources()

    def read(self, found: TextConditions, selects: "Mapping[int, _Select]", moment: Moment) -> None:
        """Add what the conditions say about tables."""
        known = [source for source in self.sources if source.table is not None and not source.is_sampled]
        where = self._query.args.get("where")
        for source in known:
            assert source.table is not None
            found.tables.append(source.table.index)
            for condition, visible in self._conditions_on(source, where):
                expression = read_expression(condition, _ColumnsOf(self, source, visible), moment)
                found.conditions.append(Condition(source.table.index, expression, source.is_optional))
        found.keys += self._keys(where, selects)

    def find_column(self, name: exp.Expression, visible: Sequence[_Source]) -> tuple[_Source, Reference] | None:
        """Return the column that a name refers to, and its relation; None if that is not certain."""
        if not isinstance(name, exp.Column) or not all(isinstance(part, exp.Identifier) for part in name.parts):
            return None
        parts = [part.name for part in name.parts]
        qualified = [
            (named, tuple(parts[at:]))
            for at in range(1, len(parts))
            if (named := [each for each in visible if each.name[-at:] == tuple(map(str.lower, parts[:at]))])
        ]
        if qualified:
            return _only_column(*qualified[0]) if len(qualified) == 1 else None
        return None if self._query.args.get("laterals") else _only_column(visible, tuple(parts))

    @property
    def _visible(self) -> list[_Source]:
        """The relations whose columns are in the result of all joins."""
        return [source for source in self.sources if not source.is_hidden]

    def _visible_in(self, join: int) -> list[_Source]:
        """The relations whose columns a join by its number can refer to, from 1."""
        return [each for at, each in enumerate(self.sources[: join + 1]) if at == join or not each.is_hidden]

    def _find_sources(self) -> list[_Source]:
        clause = self._query.args.get("from_")
        if clause is None or not has_only(self._query, *_CLAUSES):
            return []
        sources = [self._source(clause.this)]
        for join in self._joins:
            side, kind = _kind_of(join)
            if (side, kind) not in _FILTERED or not has_only(join, "this", "on", "using", "side", "kind", "method"):
                return []
            if side in ("RIGHT", "FULL"):
                sources = [replace(source, is_optional=True) for source in sources]
            new = self._source(join.this)
            sources.append(replace(new, is_optional=side in ("LEFT", "FULL"), is_hidden=kind in _HIDES_RIGHT))
        return sources

    def _source(self, relation: exp.Expression) -> _Source:
        label = (relation.alias_or_name.lower(),)
        if not isinstance(relation, exp.Table) or not has_only(relation, "this", "alias", "sample"):
            return _Source(label)
        alias = relation.args.get("alias")
        table = self._tables.get(relation.name) if len(relation.parts) == 1 else None
        if table is None or (alias is not None and alias.args.get("columns")):
            return _Source(label)
        is_sampled = bool(relation.args.get("sample"))
        return _Source(label if relation.alias else table.name, table, is_sampled=is_sampled)

    def _conditions_on(
        self, source: _Source, where: exp.Where | None
    ) -> Iterator[tuple[exp.Expression, Sequence[_Source]]]:
        """Yield the conditions that rows of a relation must meet to matter for the result, and what these refer to."""
        if where is not None and not source.is_hidden:
            yield where.this, self._visible
        at = self.sources.index(source)
        for index, join in enumerate(self._joins, start=1):
            before, new = _FILTERED[_kind_of(join)]
            if (before and at < index) or (new and at == index):
                on = join.args.get("on")
                if on is not None:
                    yield on, self._visible_in(index)

    def _keys(self, where: exp.Where | None, selects: "Mapping[int, _Select]") -> Iterator[Keys]:
        for index, join in enumerate(self._joins, start=1):
            before, new = _FILTERED[_kind_of(join)]
            for left, right in self._equal(join.args.get("on"), self._visible_in(index)):
                if self.sources.index(left[0]) > self.sources.index(right[0]):
                    left, right = right, left
                if self.sources.index(right[0]) == index:
                    yield from _keys_of(left, right) if before else ()
                    yield from _keys_of(right, left) if new else ()
        for left, right in self._equal(where, self._visible):
            if not left[0].is_optional and not right[0].is_optional:
                yield from _keys_of(left, right)
                yield from _keys_of(right, left)
        for test in _conjuncts(where):
            query = test.args.get("query") if isinstance(test, exp.In) else None
            inner = selects.get(id(query.this)) if isinstance(query, exp.Subquery) else None
            target = self.find_column(test.this, self._visible) if inner is not None else None
            if inner is not None and target is not None:
                source = inner.only_column()
                yield from _keys_of(target, source) if source is not None else ()

    def only_column(self) -> tuple[_Source, Reference] | None:
        """Return the only column that the query selects; None if it selects anything else."""
        selected = self._query.expressions
        only = selected[0].unalias() if len(selected) == 1 else None
        return None if only is None else self.find_column(only, self._visible)

    def _equal(
        self, condition: exp.Expression | None, visible: Sequence[_Source]
    ) -> Iterator[tuple[tuple[_Source, Reference], tuple[_Source, Reference]]]:
        for test in _conjuncts(condition):
            if isinstance(test, exp.EQ):
                left, right = self.find_column(test.this, visible), self.find_column(test.expression, visible)
                if left is not None and right is not None and left[0] is not right[0]:
                    yield left, right


@dataclass(frozen=True)
class _ColumnsOf:
    """Finds the columns of one relation of a SELECT, among those that a condition can refer to."""

    select: _Select
    source: _Source
    visible: Sequence[_Source]

    def __call__(self, name: exp.Expression) -> Column | None:
        found = self.select.find_column(name, self.visible)
        return Column(found[1]) if found is not None and found[0] is self.source else None


def _kind_of(join: exp.Join) -> tuple[str, str]:
    # A natural join has a condition that is not written, which says less than none.
    return str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()


def _only_column(sources: Sequence[_Source], path: tuple[str, ...]) -> tuple[_Source, Reference] | None:
    found = []
    for source in sources:
        if source.schema is None:
            return None
        if any(each.name.lower() == path[0].lower() for each in source.schema.fields):
            found.append(source)
    if len(found) != 1 or found[0].schema is None:
        return None
    tops = [each for each in found[0].schema.fields if each.name.lower() == path[0].lower()]
    if len(tops) != 1 or (len(path) > 1 and not isinstance(tops[0].type, StructType)):
        return None
    try:
        return found[0], find_reference(ast.Column((tops[0].name, *path[1:])), found[0].schema)
    except InvalidFilter:
        return None


def _keys_of(target: tuple[_Source, Reference], source: tuple[_Source, Reference]) -> Iterator[Keys]:
    tables = target[0].table, source[0].table
    is_top = len(target[1].path) == len(source[1].path) == 1
    if tables[0] is not None and tables[1] is not None and is_top:
        yield Keys(tables[0].index, target[1].path[0], tables[1].index, source[1].path[0])


def _conjuncts(condition: exp.Expression | None) -> Iterator[exp.Expression]:
    match condition:
        case None:
            return
        case exp.Where() | exp.Paren():
            yield from _conjuncts(condition.this)
        case exp.And():
            yield from _conjuncts(condition.this)
            yield from _conjuncts(condition.expression)
        case _:
            yield condition
