"""A query over tables, parsed and rewritten from its tokens, so that Spark runs exactly what was checked.

    WITH c AS (SELECT * FROM shop.orders) SELECT c.id FROM c -- all
      ->  WITH `w0` AS ( SELECT * FROM `t0` AS `orders` ) SELECT `c` . `id` FROM `w0` AS `c`

The tokens stay those of the author, in a normal form (`query.tokens`), because a query that is generated from a syntax
tree may have another meaning. The syntax tree shows which tokens are names: those of tables and common table
expressions are replaced by new, unique names, and all other names are quoted (`query.words`). So Spark finds only the
relations that were resolved, whatever its settings and the tables of its session.

Raises InvalidInput for text that is not a query, Unsupported for a query that a view may not have.
"""

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from sqlglot import ParseError, TokenError, exp
from sqlglot.dialects.spark import Spark

from icefield.errors import InvalidInput, Unsupported
from icefield.expr.query.relations import RelationCheck
from icefield.expr.query.tokens import Token, TokenKind, find_end, quoted, tokenize
from icefield.expr.query.words import KEYWORDS, PLAIN_CALLS, find_calls

_MAX_SQL_CHARACTERS = 1 << 20
# Spark would substitute the value of a variable, a setting or an environment variable for it.
_SUBSTITUTION = "${"
# Repeated to any length, this is a name that no parser has a rule for.
_ANY_FUNCTION = "z"

Parts = tuple[str, ...]


@dataclass(frozen=True)
class Span:
    """A range of tokens, and its replacement."""

    first: int
    last: int
    text: str


class RelationNames:
    """The names of relations in a query. tokens: the query. calls: the tokens that name functions or hints.

    references: the nodes of the syntax tree that name a table or a common table expression.
    """

    def __init__(self, tokens: Sequence[Token], calls: Container[int], tree: exp.Query) -> None:
        self._tokens = tokens
        self._calls = calls
        starts = accumulate((len(token.text) + 1 for token in tokens), initial=0)
        self._at = {start: index for index, start in enumerate(starts)}
        self._with = list(tree.find_all(exp.CTE))
        self._columns = list(tree.find_all(exp.Column))
        self.references = [table for table in tree.find_all(exp.Table) if _is_reference(table)]
        owners = [(table, self._common_table(table)) for table in self.references]
        self._common = [(table, owner) for table, owner in owners if owner is not None]
        self._tables = [table for table, owner in owners if owner is None]

    @property
    def tables(self) -> list[Parts]:
        """The distinct names of tables as written, in order, each as its parts."""
        return list(dict.fromkeys(self._parts(table.parts) for table in self._tables))

    def spans(self, name: Callable[[Parts], str | None]) -> dict[int, Span]:
        """Return the new names of tables, by the first token that each replaces; a table without one keeps its name.

        The old names become aliases, so that columns still resolve.
        """
        found: dict[int, Span] = {}
        for table in self._tables:
            parts = self._parts(table.parts)
            if (new := name(parts)) is not None:
                label = self._label(parts, new)
                found |= {span.first: span for span in self._relation_spans(table, quoted(new), label)}
        return found | {span.first: span for span in self._column_spans(name)}

    def _relation_spans(self, table: exp.Table, new: str, label: str) -> Iterator[Span]:
        """Replace the name of a relation, and put its alias after it, or after its TABLESAMPLE."""
        first, last = self._place(table.parts[0]), self._place(table.parts[-1])
        end = self._end_of_sample(last)
        alias = "" if table.alias else f" AS {quoted(label)}"
        if end == last:
            yield Span(first, last, new + alias)
        else:
            yield Span(first, last, new)
            yield Span(end, end, self._tokens[end].text + alias)

    def _end_of_sample(self, at: int) -> int:
        """Return where `TABLESAMPLE (...) REPEATABLE (...)` ends if it follows a position, else that position."""
        for word in ("tablesample", "repeatable"):
            following = self._tokens[at + 1 : at + 3]
            if [token.text.lower() for token in following] == [word, "("]:
                at = find_end(self._tokens, at + 2)
        return at

    def _column_spans(self, name: Callable[[Parts], str | None]) -> Iterator[Span]:
        """Shorten columns that are qualified with the full name of a table: `shop.orders.id`."""
        known = {self._parts(table.parts) for table in self._tables if not table.alias}
        for column in self._columns:
            *owner, _ = column.parts
            if len(owner) > 1 and (written := self._parts(owner)) in known and (new := name(written)) is not None:
                yield Span(self._place(owner[0]), self._place(owner[-1]), quoted(self._label(written, new)))

    def _label(self, parts: Parts, new: str) -> str:
        """Return the alias of a table that has none: the last part of its name, unless two tables share it."""
        rivals = {each for each in self.tables if each[-1] == parts[-1]}
        return parts[-1] if len(rivals) == 1 else new

    def _common_table(self, table: exp.Table) -> exp.CTE | None:
        """Return the common table expression in scope that an unqualified name refers to."""
        if len(table.parts) > 1:
            return None
        name = self._tokens[self._place(table.this)].name.lower()
        for scope in _scopes(table):
            for each in reversed(scope):
                if self._tokens[self._place(each.args["alias"].this)].name.lower() == name:
                    return each
        return None

    def _parts(self, parts: Sequence[Any]) -> Parts:
        return tuple(self._tokens[self._place(part)].name for part in parts)

    def _place(self, name: Any) -> int:
        """Return the index of the token of a name in the syntax tree."""
        start, end = name.meta.get("start"), name.meta.get("end")
        at = self._at.get(start)
        if at is None or len(self._tokens[at].text) != end - start + 1 or not self._tokens[at].is_name:
            raise Unsupported(f"cannot find {name.name!r} in the query")
        return at


class Query(RelationNames):
    """A parsed query of a view.

    functions: the names of the functions that it calls. keywords: those before a parenthesis, which Spark may take for
    a function name at the start of an expression: `SELECT sets (1)`.
    has_escapes: whether the rewritten query has a string with a backslash.
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        _check_substitution(tokens)
        calls = find_calls(tokens)
        self.functions = calls.functions
        self.keywords = calls.keywords
        self.has_escapes = any(token.kind is TokenKind.STRING and "\\" in token.text for token in tokens)
        tree = _parse_view(shape_of(tokens, calls.places))
        super().__init__(tokens, calls.places, tree)
        self._names = {self._place(name) for name in tree.find_all(exp.Identifier) if _is_placed(name)}
        for table in self.references:
            _check_reference(table)
        relations = {self._place(table.parts[0]) for table in self.references}
        bare = {at for at in range(len(tokens)) if self._is_keyword(at)}
        RelationCheck(tokens, bare, self._calls, relations).run()

    def write(self, name: Callable[[Parts], str], scope: str) -> str:
        """Return the query with new names for the tables; the old names become aliases, so that columns still resolve.

        scope: a unique prefix for the names of common table expressions.
        """
        spans = {span.first: span for span in self._with_spans(scope)} | self.spans(name)
        written, at = [], 0
        while at < len(self._tokens):
            written.append(spans[at].text if at in spans else self._written(at))
            at = spans[at].last + 1 if at in spans else at + 1
        return " ".join(written)

    def _written(self, at: int) -> str:
        """Write a token: bare if it is a keyword or a function call, quoted if it is any other name."""
        token = self._tokens[at]
        if token.kind is not TokenKind.WORD or at in self._calls or self._is_keyword(at):
            return token.text
        return quoted(token.name)

    def _is_keyword(self, at: int) -> bool:
        follows_dot = at > 0 and self._tokens[at - 1].text == "."
        return self._tokens[at].word in KEYWORDS and at not in self._names and not follows_dot

    def _with_spans(self, scope: str) -> Iterator[Span]:
        """Rename common table expressions, so that they cannot be confused with tables of the session."""
        names = {id(each): quoted(f"icefield_{scope}_with_{index}") for index, each in enumerate(self._with)}
        for each in self._with:
            place = self._place(each.args["alias"].this)
            yield Span(place, place, names[id(each)])
        for table, owner in self._common:
            yield from self._relation_spans(table, names[id(owner)], self._tokens[self._place(table.this)].name)


def parse_query(text: str) -> Query:
    """Parse a single query; refuse anything else."""
    text = text.strip().removesuffix(";")
    if len(text) > _MAX_SQL_CHARACTERS:
        raise InvalidInput(f"the query has {len(text):,} characters, more than {_MAX_SQL_CHARACTERS:,}")
    return Query(tokenize(text))


def shape_of(tokens: Sequence[Token], calls: Container[int]) -> str:
    """Write tokens for the parser: with the same length, and a meaningless name for a plain function.

    In Spark's grammar nearly all calls are alike. sqlglot parses many functions by name, with its own rules for the
    number of arguments and for `GROUP BY window(...)`.
    """
    return " ".join(
        _ANY_FUNCTION * len(token.text) if at in calls and token.word in PLAIN_CALLS else token.shape
        for at, token in enumerate(tokens)
    )


def parse_shape(shape: str) -> exp.Query | None:
    """Parse the shape of a query; None if it is anything else."""
    try:
        statements = Spark().parse(shape)
    except (ParseError, TokenError) as error:
        raise InvalidInput(f"cannot parse the query: {_first_fault(error)}") from error
    except RecursionError as error:
        raise InvalidInput("the query is nested too deeply") from error
    except Exception as error:
        # The parser raises this on calls with too few arguments.
        raise InvalidInput(f"cannot parse the query: {type(error).__name__}: {error}") from error
    tree = statements[0] if len(statements) == 1 else None
    return tree if isinstance(tree, exp.Query) else None


def _parse_view(shape: str) -> exp.Query:
    tree = parse_shape(shape)
    if tree is None:
        raise InvalidInput(
            "a view is defined by a single SELECT", hint="Give the query alone, without CREATE VIEW ... AS"
        )
    if tree.find(exp.Placeholder, exp.Parameter):
        raise Unsupported("a view cannot have parameters")
    return tree


def _check_substitution(tokens: Sequence[Token]) -> None:
    for token in tokens:
        if _SUBSTITUTION in token.text:
            raise Unsupported(
                f"a view cannot use the name {token.name!r}, in which Spark would replace {_SUBSTITUTION}...}}",
                hint="Rename the column",
            )


def _is_placed(name: exp.Identifier) -> bool:
    """Return whether a name has its position in the query; in hints the position is relative to the hint."""
    return "start" in name.meta and not name.find_ancestor(exp.Hint)


def _is_reference(table: exp.Table) -> bool:
    """Return whether a node names a table or a common table expression; functions and hints do not."""
    return isinstance(table.this, exp.Identifier | exp.Dot) and not table.find_ancestor(exp.Hint)


def _scopes(table: exp.Table) -> Iterator[list[exp.CTE]]:
    """Yield the common table expressions that a name may refer to, inner ones first."""
    child: Any = table
    while child.parent is not None:
        parent = child.parent
        if isinstance(parent, exp.With):
            # An expression can refer to those before it, and to itself only if it is recursive.
            at = next(index for index, each in enumerate(parent.expressions) if each is child)
            yield parent.expressions[: at + 1] if parent.recursive else parent.expressions[:at]
            # The query of this WITH would include the later ones too, so continue with its parent.
            child = parent.parent
            continue
        if isinstance(parent, exp.Query):
            yield parent.ctes
        child = parent


def _check_reference(table: exp.Table) -> None:
    if is_versioned(table):
        raise Unsupported(f"cannot read {table.name} at an older version inside a view")


def is_versioned(table: exp.Table) -> bool:
    """Return whether a table is read at a version: `t VERSION AS OF 1`."""
    return bool(table.args.get("version") or table.args.get("when"))


def _first_fault(error: ParseError | TokenError) -> str:
    details = error.errors[0] if isinstance(error, ParseError) and error.errors else {}
    if not details:
        return "a quote or comment is not closed"
    return f"{details['description']} at line {details['line']}, near {details['highlight']!r}"
