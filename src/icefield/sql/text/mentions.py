"""The names of relations in a query, found by following its tokens through Spark's grammar.

    WITH c AS (SELECT * FROM shop.orders) SELECT c.id, o.id FROM c JOIN shop.items VERSION AS OF 7 o ON c.id = o.id
                             ^^^^^^^^^^^                                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^

A relation is named after FROM, JOIN, a comma of a FROM clause, and TABLE. Subqueries, common table expressions and
their scopes, set operations, pipes, lateral views, samples and aliases are followed; expressions are not read, except
for the names in them that may begin with that of a table. Nothing is refused here: what does not look like a query is
left to Spark, which refuses it. Spark's parser checks what was found, where it can be asked.
"""

from collections.abc import Sequence
from enum import Enum

from icefield.expr.query.functions import words
from icefield.expr.query.lexer import Lexeme, LexemeKind, has_word, lex
from icefield.expr.query.subqueries import AFTER_COLUMN, OPERATORS_AFTER_COLUMN
from icefield.sql.syntax.cursor import Cursor
from icefield.sql.syntax.place import Place
from icefield.sql.text.constants import read_value
from icefield.sql.text.shape import Mention, Qualified, Scope, Shape, Star, Travel

_ENDS_FROM = words("where group having qualify order sort cluster distribute limit offset window select insert")
_SET_OPERATORS = words("union except intersect minus")
_JOINS = words("anti cross full inner join lateral left natural on right semi using")
_CLAUSES = _ENDS_FROM | words("tablesample pivot unpivot with for when")
_VERSIONS = words("version system_version")
_TIMES = words("timestamp system_time")
_LITERALS = frozenset({LexemeKind.NUMBER, LexemeKind.STRING, LexemeKind.RAW, LexemeKind.BINARY, LexemeKind.DOLLAR})

Names = frozenset[str]


class Part(Enum):
    """What a text is: a query, one relation of a FROM clause, or an expression, which may have subqueries."""

    QUERY = "query"
    RELATION = "relation"
    EXPRESSION = "expression"


def find_mentions(place: Place, part: Part = Part.QUERY) -> Shape:
    """Find the relations that a text names."""
    finder = _Finder(place)
    match part:
        case Part.QUERY:
            finder.query(0, frozenset(), None)
        case Part.RELATION:
            finder.relation(0, frozenset(), Scope())
        case Part.EXPRESSION:
            finder.items(0, frozenset(), Scope())
    mentions = sorted(finder.mentions, key=lambda each: each.place.start)
    return Shape(
        tuple(mentions),
        tuple(finder.common),
        tuple(finder.qualified),
        tuple(finder.stars),
        tuple(finder.values),
        finder.writes,
    )


class _Finder:
    """Follows the tokens of a query. Each method takes the index of a token, and returns that of the next to read."""

    def __init__(self, place: Place) -> None:
        self._source, self._end = place.source, place.end
        self._tokens: Sequence[Lexeme] = [t for t in lex(place.source[: place.end]) if t.start >= place.start]
        self.mentions: list[Mention] = []
        self.common: list[str] = []
        self.qualified: list[Qualified] = []
        self.stars: list[Star] = []
        self.values: list[Lexeme] = []
        self.writes: Lexeme | None = None

    def query(self, at: int, common: Names, outer: Scope | None) -> int:
        """Follow a query up to the parenthesis that closes it, or to the end."""
        if self._word(at) == "with":
            at, common = self._common_tables(at, common, outer)
        return self._body(at, common, Scope(outer))

    def items(
        self, at: int, common: Names, scope: Scope, *, is_hint: bool = False, in_table_function: bool = False
    ) -> int:
        """Follow expressions up to the parenthesis that closes them, or to the end."""
        while at < len(self._tokens) and self._tokens[at].depth >= 0:
            if in_table_function and self._word(at) == "table":
                at = self._table_argument(at + 1, common, scope)
            else:
                at = self._item(at, common, scope, is_hint=is_hint)
        return at

    def _body(self, at: int, common: Names, scope: Scope, *, in_from: bool = False) -> int:
        """Follow the clauses of a query."""
        begins = not in_from
        while at < len(self._tokens) and self._tokens[at].depth >= 0:
            word, text = self._keyword(at), self._tokens[at].text
            if begins and word == "table" and self._is_name(at + 1):
                at = self._table(at + 1, common, scope)
            elif word == "from" and self._begins_from(at):
                in_from, at = True, self.relation(at + 1, common, scope)
            elif word == "join" or (text == "," and in_from):
                scope.is_natural |= "natural" in (self._word(each) for each in range(at - 3, at))
                at = self.relation(at + 1, common, scope)
            elif word in _SET_OPERATORS and not self._is_after_star(at):
                at += 2 if self._word(at + 1) in ("all", "distinct") else 1
                in_from, begins, scope = False, True, Scope(scope.outer)
                continue
            else:
                if word in _ENDS_FROM or text == "|>" or (word == "lateral" and self._word(at + 1) == "view"):
                    in_from = False
                if word == "insert" and self._word(at + 1) in ("into", "overwrite"):
                    self.writes = self.writes or self._tokens[at]
                at = self._item(at, common, scope)
            begins = False
        return at

    def _begins_from(self, at: int) -> bool:
        """Return whether FROM is a clause: not a part of DISTINCT FROM, and not a column of that name."""
        is_distinct = self._word(at - 1) == "distinct" and self._word(at - 2) in ("is", "not")
        following = self._text(at + 1).lower()
        is_column = following in AFTER_COLUMN and has_word(self._tokens, at + 1, "from")
        return not is_distinct and not is_column and following not in ("from", *OPERATORS_AFTER_COLUMN)

    def _item(self, at: int, common: Names, scope: Scope, *, is_hint: bool = False) -> int:
        """Follow one token, a name with its parts, or all that is in parentheses."""
        token = self._tokens[at]
        if token.depth > 0:
            return self._group(at, common, scope, is_hint=is_hint)
        if token.text == "/*+" or (token.text == "*/" and is_hint):
            return self._hint(at + 1, common, scope) if token.text == "/*+" else at + 1
        if token.text == "$" and self._text(at + 1) == "{":
            return at + 2  # a variable that Spark substitutes
        if token.text == "{" and self._is_name(at + 1) and self._text(at + 2) == "}":
            self.values.append(self._tokens[at + 1])
            return at + 3
        if token.text == "*" and self._begins_star(at):
            self.stars.append(self._star(at, scope))
        if token.text == ":" and self._is_name(at + 1):
            return at + 2
        if token.word == "as" and self._is_name(at + 1):
            return at + 2
        return self._name(at, scope, is_hint=is_hint) if token.is_name else at + 1

    def _name(self, at: int, scope: Scope, *, is_hint: bool) -> int:
        """Follow a name of one or more parts."""
        end = self._end_of_name(at)
        is_star = self._text(end) == "." and self._text(end + 1) == "*"
        is_call = self._text(end) == "("
        parts = tuple(self._tokens[at:end:2])
        if len(parts) > 1 or is_star or is_hint or parts[0].name.startswith("_"):
            self.qualified.append(Qualified(parts, scope, is_hint, is_star, is_call))
        if is_star:
            self.stars.append(self._star(end + 1, scope, tuple(part.name.lower() for part in parts)))
            return end + 2
        return end

    def _star(self, at: int, scope: Scope, owner: tuple[str, ...] = ()) -> Star:
        has_list = self._word(at + 1) == "except" and self._text(at + 2) == "("
        return Star(self._tokens[at], scope, owner, self._tokens[at + 2].end if has_list else None)

    def _hint(self, at: int, common: Names, scope: Scope) -> int:
        while at < len(self._tokens) and self._tokens[at].text != "*/":
            at = self._item(at, common, scope, is_hint=True)
        return self._after(at)

    def _group(
        self, at: int, common: Names, scope: Scope, *, is_hint: bool = False, in_table_function: bool = False
    ) -> int:
        """Follow what is in parentheses or brackets, in an expression."""
        begins_query = self._begins_query(at + 1) and not (in_table_function and self._word(at + 1) == "table")
        if self._text(at) == "(" and begins_query:
            return self._after(self.query(at + 1, common, scope))
        return self._after(self.items(at + 1, common, scope, is_hint=is_hint, in_table_function=in_table_function))

    def _common_tables(self, at: int, common: Names, outer: Scope | None) -> tuple[int, Names]:
        """Follow WITH; each expression sees those before it, and itself if they are recursive."""
        at += 1
        is_recursive = self._word(at) == "recursive" and self._is_name(at + 1)
        at += is_recursive
        while self._is_name(at):
            name = self._tokens[at].name.lower()
            at += 1
            if self._text(at) == "(" and self._word(self._end_of_group(at)) in ("as", "max"):
                at = self._end_of_group(at)
            while at < len(self._tokens) and self._text(at) not in ("(", ")"):
                at += 1
            at = self._after(self.query(at + 1, common | {name} if is_recursive else common, outer))
            common |= {name}
            if self._text(at) != ",":
                break
            at += 1
        return at, common

    def relation(self, at: int, common: Names, scope: Scope) -> int:
        """Follow one relation of a FROM clause, with its sample and its alias."""
        at += self._word(at) == "lateral"
        if self._text(at) == "(":
            inside = at + 1
            if self._begins_query(inside):
                end = self.query(inside, common, scope)
            else:
                end = self._body(self.relation(inside, common, scope), common, scope, in_from=True)
            return self._aliased(self._after(end), scope)[0]
        if self._text(at) == "{":
            return self._frame(at, scope)
        if self._word(at) == "values" and self._begins_values(at + 1):
            return self._rows(at + 1, common, scope)
        if not self._is_name(at):
            return at
        end = self._end_of_name(at)
        if self._text(end) == "(" and self._word(at) == "identifier" and end == at + 1:
            after = self._end_of_group(end)
            if self._text(after) != "(":
                return self._mention(at, after, common, scope, argument=self._place(end + 1, after - 1))
            end = after
        if self._text(end) == "(":
            return self._aliased(self._group(end, common, scope, in_table_function=True), scope)[0]
        return self._mention(at, end, common, scope)

    def _table(self, at: int, common: Names, scope: Scope) -> int:
        """Follow the name after TABLE, which has neither version nor alias."""
        end = self._end_of_name(at)
        parts = tuple(token.name for token in self._tokens[at:end:2])
        if self._word(at) == "identifier" and self._text(end) == "(":
            after = self._end_of_group(end)
            place, argument = self._place(at, after), self._place(end + 1, after - 1)
            self._add(Mention((), place, place, None, scope, argument=argument))
            return after
        if len(parts) == 1 and parts[0].lower() in common:
            self.common.append(parts[0])
        else:
            self._add(Mention(parts, self._place(at, end), self._place(at, end), None, scope))
        return end

    def _add(self, mention: Mention) -> None:
        self.mentions.append(mention)
        mention.scope.mentions.append(mention)

    def _mention(self, at: int, end: int, common: Names, scope: Scope, argument: Place | None = None) -> int:
        """Follow the name of a relation, its version, its sample and its alias."""
        parts = () if argument is not None else tuple(token.name for token in self._tokens[at:end:2])
        name_place = self._place(at, end)
        travel, end = self._travel(end)
        options = None
        if self._word(end) == "with" and self._text(end + 1) == "(":
            opening, end = end + 2, self._end_of_group(end + 1)
            options = self._place(opening, end - 1) if end - 1 > opening else None
        place = self._place(at, end)
        after = self._end_of_sample(end)
        next_at, alias = self._aliased(after, scope)
        if len(parts) == 1 and parts[0].lower() in common:
            scope.aliases.add((alias or parts[0]).lower())
            self.common.append(parts[0])
            return next_at
        insert_at = self._tokens[after - 1].end
        self._add(Mention(parts, name_place, place, insert_at, scope, alias, travel, None, argument, options))
        return next_at

    def _frame(self, at: int, scope: Scope) -> int:
        """Follow a DataFrame: `{name}`."""
        if not (self._is_name(at + 1) and self._text(at + 2) == "}"):
            return at + 1
        place = self._place(at, at + 3)
        after = self._end_of_sample(at + 3)
        next_at, alias = self._aliased(after, scope)
        name, insert_at = self._tokens[at + 1].name, self._tokens[after - 1].end
        self.mentions.append(Mention((), place, place, insert_at, scope, alias, frame=name))
        return next_at

    def _table_argument(self, at: int, common: Names, scope: Scope) -> int:
        """Follow TABLE t, TABLE (t) or TABLE (query) in the arguments of a table function."""
        if self._text(at) != "(":
            return self._table(at, common, scope) if self._is_name(at) else at
        if self._begins_query(at + 1):
            return self._after(self.query(at + 1, common, scope))
        return self._after(self._table(at + 1, common, scope)) if self._is_name(at + 1) else at

    def _rows(self, at: int, common: Names, scope: Scope) -> int:
        """Follow the rows of VALUES in a FROM clause, up to their alias."""
        while at < len(self._tokens):
            if self._tokens[at].depth < 0 or self._keyword(at) in _CLAUSES | _JOINS | _SET_OPERATORS:
                return at
            at = self._item(at, common, scope) if self._word(at) != "as" else at
            ends_operand = self._tokens[at - 1].text == ")" or self._tokens[at - 1].kind in _LITERALS
            if ends_operand and (self._is_name(at) or self._word(at) == "as"):
                return self._aliased(at, scope)[0]
        return at

    def _travel(self, at: int) -> tuple[Travel | None, int]:
        """Follow a clause that names a version or a time."""
        start = at
        at += self._word(at) == "for"
        word = self._word(at)
        if word not in _VERSIONS | _TIMES or (self._word(at + 1), self._word(at + 2)) != ("as", "of"):
            return None, start
        at += 3
        if at >= len(self._tokens):
            return None, start
        value = read_value(Cursor(self._source, self._tokens[at].start, self._end))
        end = next((i for i in range(at, len(self._tokens)) if self._tokens[i].start >= value.end), len(self._tokens))
        return Travel(word in _TIMES, value, self._place(start, end)), end

    def _end_of_sample(self, at: int) -> int:
        for word in ("tablesample", "repeatable"):
            if self._word(at) == word and self._text(at + 1) == "(":
                at = self._end_of_group(at + 1)
        return at

    def _aliased(self, at: int, scope: Scope) -> tuple[int, str | None]:
        """Follow an alias, possibly with a list of columns."""
        at = self._end_of_sample(at)
        if self._word(at) == "as" and self._is_name(at + 1):
            at += 1
        elif not self._is_alias(at):
            return at, None
        alias, at = self._tokens[at].name, at + 1
        scope.aliases.add(alias.lower())
        return (self._end_of_group(at) if self._text(at) == "(" else at), alias

    def _is_alias(self, at: int) -> bool:
        """Return whether a token after a relation is its alias, and not the beginning of a clause."""
        if not self._is_name(at) or self._word(at) in _JOINS | _SET_OPERATORS:
            return False
        # Spark reads WHERE at the end as an alias.
        return self._word(at) not in _CLAUSES or self._text(at + 1) in ("", ")", ",")

    def _begins_query(self, at: int) -> bool:
        """Return whether a query begins here, and not an expression with a column that has the name of a keyword."""
        if self._text(at) == "(":
            return self._begins_query(at + 1)
        following = self._text(at + 1).lower()
        is_column = following in OPERATORS_AFTER_COLUMN or following in AFTER_COLUMN
        match self._word(at):
            case "select":
                return bool(following) and (following == ":" or not is_column)  # a parameter
            case "with" | "table":
                return not is_column and self._is_name(at + 1)
            case "from":
                return not is_column and (self._is_name(at + 1) or following in ("(", "{"))
            case "values":
                return self._begins_values(at + 1)
        return False

    def _begins_values(self, at: int) -> bool:
        if at >= len(self._tokens):
            return False
        token = self._tokens[at]
        is_typed = (
            token.kind is LexemeKind.WORD and at + 1 < len(self._tokens) and self._tokens[at + 1].kind in _LITERALS
        )
        is_call = token.is_name and self._text(at + 1) == "("
        return is_typed or is_call or token.kind in _LITERALS or token.text in ("(", "-", "+", "?", ":")

    def _begins_star(self, at: int) -> bool:
        is_argument = self._text(at - 1) == "(" and self._word(at - 2) != "count"  # which counts rows, not columns
        return is_argument or self._word(at - 1) in ("select", "distinct", "all") or self._text(at - 1) in (",", "*/")

    def _is_after_star(self, at: int) -> bool:
        return at > 0 and self._tokens[at - 1].text == "*" and self._text(at + 1) == "("

    def _end_of_name(self, at: int) -> int:
        """Return the index after a name and its parts."""
        at += 1
        while self._text(at) == "." and self._is_name(at + 1):
            at += 2
        return at

    def _end_of_group(self, at: int) -> int:
        """Return the index after the parenthesis that closes one."""
        depth = 0
        for each in range(at, len(self._tokens)):
            depth += self._tokens[each].depth
            if depth == 0:
                return each + 1
        return len(self._tokens)

    def _after(self, at: int) -> int:
        """Return the index after a parenthesis that closes, which may be missing."""
        return min(at + 1, len(self._tokens))

    def _keyword(self, at: int) -> str:
        """Return the word at an index, unless it is certainly a name: a part of one, a marker or a function."""
        word = self._word(at)
        before, after = self._text(at - 1) if at else "", self._text(at + 1)
        if before in (".", ":") or after == "." or (after == "(" and word in ("window", "insert", "sort")):
            return ""
        return word

    def _word(self, at: int) -> str:
        return self._tokens[at].word if 0 <= at < len(self._tokens) else ""

    def _text(self, at: int) -> str:
        return self._tokens[at].text if 0 <= at < len(self._tokens) else ""

    def _is_name(self, at: int) -> bool:
        return 0 <= at < len(self._tokens) and self._tokens[at].is_name

    def _place(self, first: int, end: int) -> Place:
        return Place(self._source, self._tokens[first].start, self._tokens[end - 1].end)
