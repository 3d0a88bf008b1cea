"""The tables that a query reads, found in its text and replaced in it. (Spark's dialect)

Only the names are replaced: the rest of the text stays letter for letter what its author wrote, because a query that a
parser reads and writes again may come to mean something else. Names of common table expressions are no tables.

Raises InvalidInput for a text that is no query, Unsupported for a query whose tables cannot be told.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlglot import ParseError, TokenError, exp
from sqlglot.dialects.spark import Spark

from icefield.errors import InvalidInput, Unsupported

# They run programs or Java code of the author's choice, with the rights of whoever reads.
_REFUSED_FUNCTIONS = {"reflect", "java_method", "try_reflect", "identifier"}
_MAX_SQL_CHARACTERS = 1 << 20

Parts = tuple[str, ...]


@dataclass(frozen=True)
class _Span:
    """A piece of the text, and what comes in its place."""

    start: int
    end: int
    text: str


class Query:
    """A parsed query."""

    def __init__(self, text: str, tree: exp.Query) -> None:
        self._text = text
        self._tables = [table for table in tree.find_all(exp.Table) if _is_reference(table)]
        self._columns = list(tree.find_all(exp.Column))
        for table in self._tables:
            _check_reference(table, text)

    @property
    def tables(self) -> list[Parts]:
        """The names of tables as they are written, part by part, each once, in order."""
        return list(dict.fromkeys(_parts(table) for table in self._tables))

    def with_tables(self, name: Callable[[Parts], str]) -> str:
        """Return the text with other names for the tables; columns keep finding them under the old ones."""
        spans = [*self._table_spans(name), *self._column_spans(name)]
        text = self._text
        for span in sorted(spans, key=lambda span: span.start, reverse=True):
            text = text[: span.start] + span.text + text[span.end :]
        return text

    def _table_spans(self, name: Callable[[Parts], str]) -> Iterator[_Span]:
        for table in self._tables:
            start, end = _place(table.parts)
            alias = "" if table.alias else f" AS {quoted(self._label(_parts(table), name))}"
            yield _Span(start, end, quoted(name(_parts(table))) + alias)

    def _column_spans(self, name: Callable[[Parts], str]) -> Iterator[_Span]:
        """Shorten columns that are written with the whole name of a table: `shop.orders.id`."""
        known = {_parts(table) for table in self._tables if not table.alias}
        for column in self._columns:
            *owner, _ = column.parts
            written = tuple(part.name for part in owner)
            if len(written) > 1 and written in known:
                start, end = _place(owner)
                yield _Span(start, end, quoted(self._label(written, name)))

    def _label(self, parts: Parts, name: Callable[[Parts], str]) -> str:
        """Return what columns call a table without an alias: its last part, unless two tables share that."""
        rivals = {_parts(table) for table in self._tables if _parts(table)[-1] == parts[-1]}
        return parts[-1] if len(rivals) == 1 else name(parts)


def parse_query(text: str) -> Query:
    """Parse one query, and refuse whatever else a text may be."""
    text = text.strip().removesuffix(";")
    if len(text) > _MAX_SQL_CHARACTERS:
        raise InvalidInput(f"the query has {len(text):,} characters, more than {_MAX_SQL_CHARACTERS:,}")
    try:
        statements = Spark().parse(text)
        if len(statements) != 1 or not isinstance(statements[0], exp.Query):
            raise InvalidInput("a view is made of one SELECT", hint="Give the query alone, without CREATE VIEW ... AS")
        _check_harmless(statements[0])
        return Query(text, statements[0])
    except (ParseError, TokenError) as error:
        raise InvalidInput(f"cannot parse the query: {_first_fault(error)}") from error
    except RecursionError as error:
        raise InvalidInput("the query is nested too deeply") from error


def quoted(name: str) -> str:
    """Write an identifier."""
    return "`" + name.replace("`", "``") + "`"


def _check_harmless(tree: exp.Query) -> None:
    if tree.find(exp.QueryTransform):
        raise Unsupported("a view cannot run programs with TRANSFORM ... USING")
    for function in tree.find_all(exp.Anonymous):
        if function.name.lower() in _REFUSED_FUNCTIONS:
            raise Unsupported(f"a view cannot use the function {function.name.lower()}")


def _is_reference(table: exp.Table) -> bool:
    """Say whether a node names a table; functions such as range(10), hints and common table expressions do not."""
    if not isinstance(table.this, exp.Identifier | exp.Dot) or table.find_ancestor(exp.Hint):
        return False
    return len(table.parts) > 1 or not _is_common_table(table)


def _is_common_table(table: exp.Table) -> bool:
    """Say whether a name of one part is that of a common table expression in scope."""
    name = table.name.lower()
    child: Any = table
    while child.parent is not None:
        parent = child.parent
        if isinstance(parent, exp.With):
            # An expression sees those before it; itself only if it is recursive.
            at = next(index for index, each in enumerate(parent.expressions) if each is child)
            visible = parent.expressions[: at + 1] if parent.recursive else parent.expressions[:at]
            if any(each.alias.lower() == name for each in visible):
                return True
            # The query that owns this WITH would show the later ones too: go on above it.
            child = parent.parent
            continue
        if isinstance(parent, exp.Query) and any(each.alias.lower() == name for each in parent.ctes):
            return True
        child = parent
    return False


def _check_reference(table: exp.Table, text: str) -> None:
    for part in table.parts:
        start, end = _place([part])
        if text[start:end] not in (part.name, quoted(part.name)):
            raise Unsupported(f"cannot tell where {part.name!r} stands in the query")
    if table.args.get("version") or table.args.get("when"):
        raise Unsupported(f"cannot read {table.name} at an older version inside a view")
    if table.args.get("sample") and not table.alias:
        raise Unsupported(f"cannot sample {table.name} without an alias", hint="Write FROM name TABLESAMPLE (...) AS n")


def _parts(table: exp.Table) -> Parts:
    return tuple(part.name for part in table.parts)


def _place(parts: list[Any]) -> tuple[int, int]:
    """Return where a dotted name begins and ends in the text."""
    start, end = parts[0].meta.get("start"), parts[-1].meta.get("end")
    if start is None or end is None:
        raise Unsupported(f"cannot tell where {parts[-1].name!r} stands in the query")
    return start, end + 1


def _first_fault(error: ParseError | TokenError) -> str:
    details = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    if not details:
        return "a quote or comment is not closed"
    return f"{details['description']} at line {details['line']}, near {details['highlight']!r}"
