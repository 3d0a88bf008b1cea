"""Check that a query names a relation only where a table was resolved.

Spark takes nearly every word for a name where no keyword fits: `FROM SELECT` reads a table called select, and
`FROM LATERAL t` the table t. Here the clauses are followed token by token, as in Spark's grammar: FROM, JOIN and each
comma of a FROM clause must be followed by a resolved name, a function, VALUES or a parenthesis. And no keyword that
begins a clause may be where a name could be: `FROM VALUES t` reads a table called values.

Raises InvalidInput.
"""

from collections.abc import Container, Sequence

from icefield.errors import InvalidInput
from icefield.expr.query.functions import words
from icefield.expr.query.tokens import Token, TokenKind

# These end a FROM clause.
_ENDS_FROM = words(
    "where group having qualify order sort cluster distribute limit offset window union intersect except minus"
)
_EXTENDS_RELATION = words("join pivot unpivot tablesample")
_CLAUSES = _ENDS_FROM | words("select from join lateral values with on using by")
_BEFORE_ITEM = _CLAUSES | words("distinct all")
_BEFORE_SELECT = words("union all distinct intersect except minus")
_HAVE_FROM_INSIDE = words("extract trim substr substring overlay")


class RelationCheck:
    """The tokens of a query, with their roles.

    bare: tokens written as keywords. calls: the names of functions. relations: where resolved names begin.
    """

    def __init__(
        self, tokens: Sequence[Token], bare: Container[int], calls: Container[int], relations: Container[int]
    ) -> None:
        self._tokens = tokens
        self._bare = bare
        self._calls = calls
        self._relations = relations

    def run(self) -> None:
        """Refuse a query that could name any other relation."""
        # Per open parenthesis: "from" in a FROM clause, "select" before it, "call" in a function with its own FROM.
        clauses = [""]
        for at, token in enumerate(self._tokens):
            word = self._word(at)
            self._check_keyword(at, word)
            if token.text in ("(", "["):
                before = self._tokens[at - 1].text.lower() if at else ""
                clauses.append("call" if before in _HAVE_FROM_INSIDE else "")
            elif token.text in (")", "]"):
                clauses.pop()
            elif word:
                clauses[-1] = self._after(at, word, clauses[-1])
            elif token.text == "," and clauses[-1] == "from":
                self._expect_relation(at + 1)

    def _after(self, at: int, word: str, clause: str) -> str:
        """Return the clause that a keyword leads to."""
        if word == "from" and clause != "call" and not self._is_distinct_from(at):
            self._expect_relation(at + 1)
            return "from"
        if word in _EXTENDS_RELATION and clause == "select":
            # The tokens before it would be a relation called select and its alias.
            raise self._wrong(at)
        if word == "join":
            self._expect_relation(at + 1)
        if word == "select":
            return "select"
        if word in _ENDS_FROM or (word == "lateral" and self._word(at + 1) == "view"):
            return ""
        return clause

    def _check_keyword(self, at: int, word: str) -> None:
        following = self._tokens[at + 1].text if at + 1 < len(self._tokens) else ""
        if word in _CLAUSES and following in ("", ")", ",", ".", "]"):
            raise self._wrong(at)
        if word == "lateral" and self._word(at + 1) != "view" and following != "(" and at + 1 not in self._calls:
            raise self._wrong(at)
        if word == "values" and not self._begins_values(at + 1):
            raise self._wrong(at)
        if word == "as" and (at == 0 or self._tokens[at - 1].text in ("(", ",") or self._word(at - 1) in _BEFORE_ITEM):
            raise self._wrong(at)  # SELECT AS v (a) is a relation called select, and its alias
        is_first = at == 0 or self._tokens[at - 1].text in ("(", ")") or self._word(at - 1) in _BEFORE_SELECT
        if word == "select" and not is_first:
            raise self._wrong(at)

    def _begins_values(self, at: int) -> bool:
        """Return whether there is a value here, and not the alias of a relation called values."""
        token = self._tokens[at]
        following = self._tokens[at + 1].kind if at + 1 < len(self._tokens) else None
        is_typed = token.kind is TokenKind.WORD and following is TokenKind.STRING  # DATE '2026-01-01'
        return is_typed or token.kind in (TokenKind.NUMBER, TokenKind.STRING) or token.text in ("(", "-", "+")

    def _expect_relation(self, at: int) -> None:
        if at in self._relations or at in self._calls or self._word(at) in ("values", "lateral"):
            return
        if at >= len(self._tokens) or self._tokens[at].text != "(":
            raise self._wrong(at - 1)

    def _is_distinct_from(self, at: int) -> bool:
        return self._word(at - 1) == "distinct" and self._word(at - 2) in ("is", "not")

    def _word(self, at: int) -> str:
        """Return the keyword at a position, or an empty string for any other token."""
        return self._tokens[at].word if 0 <= at < len(self._tokens) and at in self._bare else ""

    def _wrong(self, at: int) -> InvalidInput:
        near = " ".join(token.text for token in self._tokens[max(0, at - 1) : at + 3])
        return InvalidInput(
            f"cannot parse the query: no relation is named after {self._tokens[at].text}, near {near!r}"
        )
