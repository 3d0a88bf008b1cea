"""What is found in the text of a query: the relations that it names, and the names that refer to them."""

from dataclasses import dataclass, field

from icefield.expr.query.lexer import Lexeme
from icefield.sql.syntax.place import Place

BEGIN_QUERIES = ("select", "values", "with", "from", "table", "map", "reduce")


@dataclass(frozen=True)
class Travel:
    """A clause that names a version: `VERSION AS OF 12`, or a time: `TIMESTAMP AS OF '2026-01-01'`."""

    is_time: bool
    value: Place
    place: Place


@dataclass(eq=False)
class Scope:
    """The relations that columns of one SELECT may refer to, and the SELECT around it.

    is_natural: some of them are joined by all columns of the same names.
    """

    outer: "Scope | None" = None
    mentions: "list[Mention]" = field(default_factory=list)
    aliases: set[str] = field(default_factory=set)
    is_natural: bool = False


@dataclass(frozen=True, eq=False)
class Mention:
    """A relation that a query names.

    parts: its name; empty for a DataFrame `{name}` and for IDENTIFIER(...), whose arguments are in `argument`.
    place: what stands for the relation, with its version and options. after: where an alias fits, None if nowhere.
    """

    parts: tuple[str, ...]
    name_place: Place
    place: Place
    after: int | None
    scope: Scope
    alias: str | None = None
    travel: Travel | None = None
    frame: str | None = None
    argument: Place | None = None
    options: Place | None = None


@dataclass(frozen=True)
class Qualified:
    """A name in an expression, with its parts: a column, possibly with the name of its table before it.

    is_hint: it is a relation in a hint. is_star: it is followed by `.*`. is_call: it is the name of a function.
    """

    tokens: tuple[Lexeme, ...]
    scope: Scope
    is_hint: bool = False
    is_star: bool = False
    is_call: bool = False


@dataclass(frozen=True)
class Star:
    """A `*` that stands for columns. owner: the relation before it. excepts: where its list of exceptions begins."""

    token: Lexeme
    scope: Scope
    owner: tuple[str, ...] = ()
    excepts: int | None = None


@dataclass(frozen=True)
class Shape:
    """What was found in a query.

    common: names of common table expressions. values: each `{name}` that is not a relation. writes: an INSERT.
    """

    mentions: tuple[Mention, ...] = ()
    common: tuple[str, ...] = ()
    qualified: tuple[Qualified, ...] = ()
    stars: tuple[Star, ...] = ()
    values: tuple[Lexeme, ...] = ()
    writes: Lexeme | None = None
