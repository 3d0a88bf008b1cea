"""Decide which words of a query are keywords, and which functions it may call.

Spark takes nearly every word for a name where the grammar allows one, and sqlglot has its own list. So that both read
the same query, a word is written bare only if it is a keyword here and for sqlglot; all others are quoted, and a quoted
word is never a keyword. This rules out everything that is not a query (TABLE, SET, TRANSFORM ... USING, IDENTIFIER,
pipes).

Calls are found from the tokens alone, because in Spark's grammar every call is a name before a parenthesis.

Raises InvalidInput, Unsupported.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from icefield.errors import InvalidInput, Unsupported
from icefield.expr.query.functions import ALLOWED_FUNCTIONS, PURE_FUNCTIONS, words
from icefield.expr.query.schemas import check_schema_argument
from icefield.expr.query.tokens import Token, TokenKind

MAX_NESTING = 200

# Keywords that a parenthesis may follow without a call.
_BEFORE_PARENTHESIS = words(
    """
    select distinct all from where by having qualify on using join lateral as in not and or when then else case between
    like ilike rlike regexp is any some exists over filter group sets rollup cube union intersect except minus values
    limit offset tablesample repeatable pivot unpivot nulls for placing div interval rows range escape
    """
)
KEYWORDS = _BEFORE_PARENTHESIS | words(
    """
    with recursive order sort distribute cluster partition window inner left right full outer cross natural semi anti
    view end null true false unknown cast try_cast unbounded preceding following current row asc desc first last
    ignore respect within grouping extract both leading trailing substring overlay position trim collate
    include exclude percent bucket out of to
    date timestamp timestamp_ntz timestamp_ltz time boolean tinyint byte smallint short int integer bigint long float
    real double string char character varchar binary decimal dec numeric void variant array map struct
    year years quarter month months week weeks day days dayofyear hour hours minute minutes second seconds millisecond
    milliseconds microsecond microseconds nanosecond nanoseconds
    current_date current_timestamp current_time localtimestamp
    """
)
# Functions whose arguments are plain expressions in the grammar.
PLAIN_CALLS = PURE_FUNCTIONS - KEYWORDS - words("substr dateadd date_add datediff date_diff") | {"window"}
# They choose join strategies and numbers of partitions; they do not change the result.
HINTS = words(
    """
    broadcast broadcastjoin mapjoin merge shuffle_merge mergejoin shuffle_hash shuffle_replicate_nl
    coalesce repartition repartition_by_range rebalance
    """
)
_HINT_START, _HINT_END = "/*+", "*/"
# Without a column of that name, Spark takes them for functions whose result depends on the session.
_SESSION_NAMES = words(
    """
    current_user session_user current_catalog current_database current_schema current_path
    """
)
_STARTS_OF_QUERIES = frozenset({"select", "with", "values", "from"})


@dataclass(frozen=True)
class Calls:
    """The functions that a query calls.

    functions: their names in lower case. places: the tokens that name them, or name hints, which are not calls.
    keywords: keywords before a parenthesis, which are not calls if Spark too reads them as keywords.
    """

    functions: frozenset[str]
    places: frozenset[int]
    keywords: frozenset[str]


def find_calls(tokens: Sequence[Token]) -> Calls:
    """Find the functions that a query calls; refuse those that a view may not call."""
    _check_nesting(tokens)
    hinted, names = _find_hints(tokens)
    functions, places, keywords = set(), set(names), set()
    for at, token in enumerate(tokens):
        if at in hinted or not (token.is_name or token.text in (_HINT_START, _HINT_END)):
            continue
        _check_word(tokens, at)
        if _text(tokens, at + 1) != "(":
            continue
        if _is_no_call(tokens, at):
            keywords |= {token.word} & _BEFORE_PARENTHESIS
        else:
            functions.add(_function(tokens, at))
            check_schema_argument(tokens, at)
            places.add(at)
    return Calls(frozenset(functions), frozenset(places), frozenset(keywords))


def _check_word(tokens: Sequence[Token], at: int) -> None:
    token = tokens[at]
    if not token.is_name:
        raise InvalidInput(f"cannot parse the query: a hint is not allowed at {token.text}")
    if token.word == "using" and _text(tokens, at + 1) != "(":
        raise Unsupported("a view cannot run programs with TRANSFORM ... USING")
    if token.name.lower() in _SESSION_NAMES:
        _check_session_name(tokens, at)


def _function(tokens: Sequence[Token], at: int) -> str:
    name = tokens[at].name
    if at and tokens[at - 1].text == ".":
        raise Unsupported(
            f"a view cannot use the function {name} by a qualified name", hint="Write its last part alone"
        )
    if name.lower() not in ALLOWED_FUNCTIONS or not name.isascii():
        raise Unsupported(
            f"a view cannot use the function {name}",
            hint="Views may use Spark's own functions that depend on their arguments alone; see docs/views.md",
        )
    return name.lower()


def _is_no_call(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a name before a parenthesis is not a call in Spark's grammar."""
    token = tokens[at]
    if token.word in _BEFORE_PARENTHESIS and token.word not in ALLOWED_FUNCTIONS:
        return True
    before = tokens[at - 1] if at else None
    if before is None or before.text == ".":
        return False
    # AS t (a, b); (SELECT ...) t (a, b); WITH t (a, b) AS (...): after these no expression can begin.
    if before.word in ("as", "with", "recursive") or before.text == ")":
        return token.word not in _BEFORE_PARENTHESIS
    return before.text == "," and _is_common_table(tokens, at)


def _is_common_table(tokens: Sequence[Token], at: int) -> bool:
    """Return whether the tokens are `name (a, b) AS (SELECT x ...`, and not `f(a, b) AS (select, x)`."""
    end = at + 2
    while end < len(tokens) and (tokens[end].is_name or tokens[end].text == ","):
        end += 1
    if [_text(tokens, end), _text(tokens, end + 1).lower(), _text(tokens, end + 2)] != [")", "as", "("]:
        return False
    return _text(tokens, end + 3).lower() in _STARTS_OF_QUERIES and _text(tokens, end + 4) not in (",", ")", "")


def _check_session_name(tokens: Sequence[Token], at: int) -> None:
    around = (tokens[at - 1].text.lower() if at else "", _text(tokens, at + 1))
    if around[0] in (".", "as") or around[1] in (".", "("):
        return
    name = tokens[at].name
    raise Unsupported(f"a view cannot use {name}", hint=f"Write a column of that name as t.{name}")


def _check_nesting(tokens: Sequence[Token]) -> None:
    depth = 0
    for token in tokens:
        depth += token.depth
        if depth < 0:
            raise InvalidInput(f"cannot parse the query: unexpected {token.text}")
        if depth > MAX_NESTING:
            raise InvalidInput(f"the query is nested too deeply (more than {MAX_NESTING} parentheses)")


def _find_hints(tokens: Sequence[Token]) -> tuple[set[int], set[int]]:
    """Return the positions of hints, each `/*+ NAME(a, 1), NAME */` after a SELECT, and of their names."""
    places: set[int] = set()
    names: set[int] = set()
    inside, depth = False, 0
    for at, token in enumerate(tokens):
        if token.text == _HINT_START and at and tokens[at - 1].word == "select":
            inside, depth = True, 0
        if inside:
            places.add(at)
            _check_hint_token(token)
            depth += token.depth
            if depth > 1:
                raise Unsupported("a hint of a view calls nothing")
            if depth == 0 and token.is_name:
                names.add(at)
        inside = inside and token.text != _HINT_END
    for at in names:
        if tokens[at].word not in HINTS:
            raise Unsupported(
                f"a view cannot use the hint {tokens[at].name}", hint="Hints in views are those of joins and partitions"
            )
    return places, names


def _check_hint_token(token: Token) -> None:
    is_number = token.kind is TokenKind.NUMBER and token.text.isdigit()
    if not token.is_name and not is_number and token.text not in (_HINT_START, _HINT_END, "(", ")", ",", "."):
        raise Unsupported("a hint in a view may contain only names and integers")


def _text(tokens: Sequence[Token], at: int) -> str:
    if at >= len(tokens) or tokens[at].kind in (TokenKind.STRING, TokenKind.QUOTED):
        return ""
    return tokens[at].text
