"""The expressions of a statement, with the relations of their subqueries opened at the moment of the statement.

    DELETE FROM shop.orders o WHERE o.id IN (SELECT id FROM returns VERSION AS OF 12)
      ->  o.id IN (SELECT id FROM icefield_… AS `returns`)

The row-level engine evaluates SQL text, in which DataFrames have names: temporary views, which exist until the end of
the statement. Names resolve as in queries, and to versions of the same moment.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from icefield.dml.verbs import Verb
from icefield.engine.choose import LOCAL
from icefield.errors import IcefieldError, NeedsSpark
from icefield.sql.query.errors import without_generated
from icefield.sql.query.read import Opening
from icefield.sql.rows.expressions import Wording
from icefield.sql.rows.target import Target, at_one_moment
from icefield.sql.session import Run
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place
from icefield.sql.text.mentions import Part, find_mentions
from icefield.sql.text.rewrite import Edit

_NO_RELATION = "[TABLE_OR_VIEW_NOT_FOUND]"


@dataclass(frozen=True)
class Subqueries:
    """The expressions of a statement, whose relations are open.

    run: the statement, in a transaction of its own if it reads relations. edits: of each expression, by its start.
    left: names that are left to Spark. written: the expressions by their text for the engine.
    """

    run: Run
    cursor: Cursor
    edits: dict[int, list[Edit]] = field(default_factory=dict)
    left: list[Name] = field(default_factory=list)
    written: dict[str, Place] = field(default_factory=dict)

    @classmethod
    @contextmanager
    def opened(
        cls, run: Run, target: Target, verb: Verb, cursor: Cursor, places: Sequence[Place], *, more: bool = False
    ) -> "Iterator[Subqueries]":
        """Open what the subqueries of expressions read, until the end of the block, which commits the statement.

        more: the statement reads other relations, too.
        """
        nested = [place for place in places if _has_subquery(run, place)]
        if not nested and not more:
            yield cls(run, cursor)
            return
        assert verb.isolation is not None
        with at_one_moment(run, target.name, verb.isolation) as inside:
            opened = cls(inside, cursor)
            with _temporary_views(opened.open(nested)), opened.errors():
                yield opened

    def open(self, places: Sequence[Place]) -> dict[str, Any]:
        """Resolve the names in expressions, all of them before any is opened; return DataFrames by their names."""
        opening, frames = Opening(self.run), dict[str, Any]()
        resolved = [opening.names(place, Part.EXPRESSION) for place in places]
        for place, names in zip(places, resolved, strict=True):
            self.edits[place.start] = list(opening.rewritten(names).edits)
            self.left.extend(names.left)
            frames |= opening.frames(names)
        return frames

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise errors without generated names, and those about relations that Spark does not have either."""
        try:
            yield
        except IcefieldError as error:
            error.message = without_generated(error.message)
            written = error.message.replace("`", "")
            missing = [name for name in self.left if _NO_RELATION in written and f" {name} " in written]
            if missing:
                raise self.run.missing(missing[0]) from error
            raise

    def text(self, place: Place, wording: Wording) -> str:
        """Return an expression for the engine."""
        return self.writes(wording.text(self.cursor, place, self.edits.get(place.start, ())), place)

    def writes(self, text: str, place: Place) -> str:
        """Keep which expression a text is, for errors about it; return the text."""
        self.written.setdefault(text, place)
        return text


def _has_subquery(run: Run, place: Place) -> bool:
    mentions = find_mentions(place, Part.EXPRESSION).mentions
    if mentions and run.engine == LOCAL:
        raise mentions[0].place.error("a subquery", kind=NeedsSpark)
    return bool(mentions)


@contextmanager
def _temporary_views(frames: dict[str, Any]) -> Iterator[None]:
    made: list[str] = []
    try:
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name)
            made.append(name)
        yield
    finally:
        for name in made:
            frames[name].sparkSession.catalog.dropTempView(name)
