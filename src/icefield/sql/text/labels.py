"""The aliases by which columns find the relations that were replaced in a query.

    SELECT shop.orders.id FROM shop.orders            ->  SELECT `orders`.id FROM icefield_… AS `orders`
    SELECT a.t.x, t.y FROM a.t JOIN b.t ON …          ->  SELECT `lake.a.t`.x, `t`.y FROM … AS `lake.a.t` JOIN … AS `t`

A relation without an alias gets the last part of its name, by which Spark resolves names as it would those of the
author, ambiguous ones included. Only where a longer name has to tell it from another relation of that last part, or is
in a subquery, whose own columns could hide it, it gets its whole name. A short name is then given to the only relation
that has the column, or refused.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from icefield.errors import InvalidInput
from icefield.expr.query.tokens import quoted
from icefield.sql.syntax.place import Place
from icefield.sql.text.rewrite import Edit
from icefield.sql.text.shape import Mention, Qualified, Scope, Shape


@dataclass(frozen=True)
class Replaced:
    """A mention that is replaced: by which name, and the full name by which columns may refer to it.

    columns: the names of its columns in lower case, without metadata columns; None if they are not known.
    """

    mention: Mention
    name: str
    full: tuple[str, ...]
    columns: frozenset[str] | None = None


@dataclass(frozen=True)
class _Owners:
    """The relations that a name begins with, and how many of its parts belong to them."""

    relations: Sequence[Replaced]
    width: int
    has_rivals: bool

    @property
    def is_one(self) -> bool:
        """Whether they have one name, as two mentions of a table have."""
        return len({each.full for each in self.relations}) == 1


def edits_of(shape: Shape, replaced: Sequence[Replaced], *, is_strict: bool = False) -> Iterator[Edit]:
    """Yield the edits that replace relations by new names, with aliases by which columns still find them.

    is_strict: no two relations of a SELECT may have the same alias.
    """
    known = {id(each.mention): each for each in replaced}
    owners = [(name, found) for name in shape.qualified if (found := _owners_of(name, known)) is not None]
    labels = _labels(known, owners, is_strict=is_strict)
    for each in replaced:
        mention = each.mention
        yield Edit(mention.place.start, mention.place.end, each.name)
        if mention.alias is None and mention.after is not None and id(mention) in labels:
            yield Edit(mention.after, mention.after, f" AS {quoted(labels[id(mention)])}")
    for name, found in owners:
        first = found.relations[0]
        label, width = labels[id(first.mention)], found.width
        if width == 1 and all(labels[id(each.mention)] == each.full[-1] for each in found.relations):
            continue
        if found.is_one and not (found.has_rivals and width == 1):
            yield Edit(name.tokens[0].start, name.tokens[width - 1].end, quoted(label))
        elif not name.is_hint:
            raise _ambiguous(name, found)


def _labels(
    known: Mapping[int, Replaced], owners: Sequence[tuple[Qualified, _Owners]], *, is_strict: bool
) -> dict[int, str]:
    """Return the aliases of relations that have none."""
    relations = [each for each in known.values() if _needs_alias(each)]
    labels = {id(each.mention): each.full[-1] for each in relations}
    if is_strict:
        labels |= {id(each.mention): ".".join(each.full) for each in relations if _has_rival(each, known)}
    for name, found in owners:
        for each in found.relations if found.width > 1 and found.is_one else ():
            if _is_further_out(name.scope, each.mention.scope) or _has_rival(each, known):
                labels[id(each.mention)] = ".".join(each.full)
    return labels


def _needs_alias(each: Replaced) -> bool:
    return each.mention.alias is None and each.mention.after is not None and bool(each.full)


def _has_rival(each: Replaced, known: Mapping[int, Replaced]) -> bool:
    """Return whether another relation of the same SELECT goes by the last part of a name."""
    last, scope = each.full[-1].lower(), each.mention.scope
    return last in scope.aliases or any(
        other is not each.mention and _last(other, known) == last and _full(other, known) != each.full
        for other in scope.mentions
        if other.alias is None
    )


def _last(mention: Mention, known: Mapping[int, Replaced]) -> str:
    full = _full(mention, known)
    return full[-1].lower() if full else ""


def _full(mention: Mention, known: Mapping[int, Replaced]) -> tuple[str, ...]:
    each = known.get(id(mention))
    return mention.parts if each is None else each.full


def _is_further_out(inner: Scope, owner: Scope) -> bool:
    """Return whether a SELECT between two has relations, of which an alias or a column may hide a name."""
    scope: Scope | None = inner
    while scope is not None and scope is not owner:
        if scope.mentions or scope.aliases:
            return True
        scope = scope.outer
    return False


def _owners_of(name: Qualified, known: Mapping[int, Replaced]) -> _Owners | None:
    """Return the relations without an alias that a name may begin with; as in Spark, as many parts as possible."""
    if name.is_call:
        return None
    parts = tuple(token.name.lower() for token in name.tokens)
    longest = len(parts) if name.is_star or name.is_hint else len(parts) - 1
    scope: Scope | None = name.scope
    while scope is not None:
        for width in range(longest, 0, -1):
            found = [
                known[id(each)]
                for each in scope.mentions
                if id(each) in known and _is_named(known[id(each)], parts, width)
            ]
            if found:
                return _Owners(found, width, has_rivals=_has_strangers(scope, parts[0], known))
        if parts[0] in scope.aliases or _has_column(scope, parts[0], known):
            return None
        scope = scope.outer
    return None


def _has_column(scope: Scope, name: str, known: Mapping[int, Replaced]) -> bool:
    """Return whether a relation of a SELECT has a column, which comes before relations further out."""
    inside = (known[id(each)] for each in scope.mentions if id(each) in known)
    return any(each.columns is not None and name in each.columns for each in inside)


def _is_named(each: Replaced, parts: tuple[str, ...], width: int) -> bool:
    """Return whether a relation goes by the first parts of a name, and may have the column that is the next one."""
    full = tuple(part.lower() for part in each.full)
    if not _needs_alias(each) or full[-width:] != parts[:width]:
        return False
    column = parts[width] if width < len(parts) else "_"
    return each.columns is None or column.startswith("_") or column in each.columns


def _has_strangers(scope: Scope, name: str, known: Mapping[int, Replaced]) -> bool:
    """Return whether a relation of which no columns are known goes by a name."""
    strangers = [each for each in scope.mentions if each.alias is None and id(each) not in known]
    return name in scope.aliases or any(_last(each, known) == name for each in strangers)


def _ambiguous(name: Qualified, found: _Owners) -> InvalidInput:
    source = found.relations[0].mention.place.source
    place = Place(source, name.tokens[0].start, name.tokens[-1].end)
    known = sorted({".".join(each.full) for each in found.relations})
    others = [f"another relation called {name.tokens[0].name}"] if len(known) == 1 else []
    message = f"{place.text} may be of {' or of '.join([*known, *others])}"
    error = place.error(message, hint="Give the relations aliases", kind=InvalidInput)
    assert isinstance(error, InvalidInput)
    return error
