"""Resolve the names of a query: what each mention refers to, and the name that stands for it in the text for Spark.

Temporary views of the lake are queries below the query: they are resolved again at each use, so they follow the tables.
Raises InvalidInput, Unsupported, and the errors of names and versions.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from icefield.engine.rows import is_spark
from icefield.errors import InvalidInput, Unsupported
from icefield.sql.query.references import Reference, find_relation_of, name_of, with_versions
from icefield.sql.session import Run
from icefield.sql.syntax.cursor import Name
from icefield.sql.syntax.place import Place, pointing_at
from icefield.sql.text.mentions import Part, find_mentions
from icefield.sql.text.rewrite import frame_name
from icefield.sql.text.shape import Mention, Shape
from icefield.view import MAX_DEPTH

_TRANSFORMS = frozenset({"bucket", "truncate", "years", "months", "days", "hours", "iceberg_version"})


@dataclass(frozen=True)
class Temporary:
    """A mention of a temporary view of the lake."""

    mention: Mention
    key: str
    parts: tuple[str, ...]
    name: str
    query: "QueryNames"


@dataclass(frozen=True)
class Given:
    """A mention of a DataFrame that the caller gave."""

    mention: Mention
    name: str
    frame: Any


@dataclass(frozen=True)
class QueryNames:
    """A query whose names are resolved. left: the names that are left to Spark."""

    origin: Place
    part: Part
    shape: Shape
    references: list[Reference] = field(default_factory=list)
    temporary: list[Temporary] = field(default_factory=list)
    given: list[Given] = field(default_factory=list)
    left: list[Name] = field(default_factory=list)

    def all_references(self) -> Iterator[Reference]:
        """Yield the references of the query, and of the temporary views in it."""
        yield from self.references
        for each in self.temporary:
            yield from each.query.all_references()


class Resolution:
    """Resolves the names of one statement."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._scope = run.lake.ambient.random_uuid().hex
        self._count = 0

    def resolve(self, place: Place, part: Part = Part.QUERY, inside: tuple[str, ...] = ()) -> QueryNames:
        """Find out what the names of a text refer to. inside: the temporary views that the text is part of."""
        shape = find_mentions(place, part)
        if shape.writes is not None:
            at = Place(place.source, shape.writes.start, shape.writes.end)
            raise at.error("a query cannot insert rows", hint="Begin the statement with INSERT", kind=Unsupported)
        self._refuse_transforms(shape, place.source)
        found = QueryNames(place, part, shape)
        for mention in shape.mentions:
            self._resolve_mention(found, mention, inside)
        return found

    def _refuse_transforms(self, shape: Shape, source: str) -> None:
        """Refuse Iceberg's functions, such as `lake.system.bucket`, which only its Spark runtime has."""
        for name in (each for each in shape.qualified if each.is_call):
            parts = [token.name.lower() for token in name.tokens]
            if len(parts) > 1 and parts[-2] == "system" and parts[-1] in _TRANSFORMS:
                place = Place(source, name.tokens[0].start, name.tokens[-1].end)
                raise place.error(
                    f"the function {place.text} is of Iceberg's Spark runtime",
                    hint="Compare the column itself: files are pruned by its partitions",
                    kind=Unsupported,
                )

    def _resolve_mention(self, found: QueryNames, mention: Mention, inside: tuple[str, ...]) -> None:
        run = self._run
        if mention.frame is not None:
            found.given.append(Given(mention, self._new_name(), frame_of(run, mention.frame, mention.place)))
            return
        name = name_of(run, mention)
        view = self._find_view(name, inside)
        if view is not None:
            key, text = view
            query = self._below(key, text, mention, inside)
            found.temporary.append(Temporary(mention, key, name.parts, self._new_name(), query))
            return
        with pointing_at(mention.name_place):
            relation = find_relation_of(run, name)
        if relation is None:
            found.left.append(name)
            return
        reference = Reference(self._count, mention, name.parts, self._new_name(), relation)
        found.references.append(with_versions(run, reference))

    def _find_view(self, name: Name, inside: tuple[str, ...]) -> tuple[str, Place] | None:
        """Return the query that a name stands for, and its key: one of WITH before a change, or a temporary view."""
        run = self._run
        if len(name.parts) == 1 and not inside and name.parts[0].lower() in run.common:
            return f"WITH {name.parts[0]}", run.common[name.parts[0].lower()]
        key = run.find_temporary(name.parts)
        text = "" if key is None else run.session.temporary_views[key]
        return None if key is None else (key, Place(text, 0, len(text)))

    def _below(self, key: str, query: Place, mention: Mention, inside: tuple[str, ...]) -> QueryNames:
        if mention.travel is not None:
            raise mention.travel.place.error("a temporary view has no versions to read", kind=Unsupported)
        if key in inside or len(inside) > MAX_DEPTH:
            raise mention.place.error(f"the temporary view {key} reads itself", kind=InvalidInput)
        return self.resolve(query, inside=(*inside, key))

    def _new_name(self) -> str:
        self._count += 1
        return frame_name(self._scope, self._count)


def frame_of(run: Run, name: str, place: Place) -> Any:
    """Return a DataFrame that the caller gave."""
    frame = given_value(run, name, place)
    if not is_spark(frame) or not hasattr(frame, "sparkSession"):
        raise place.error(f"{name} must be a Spark DataFrame to be read, not {type(frame).__name__}", kind=InvalidInput)
    return frame


def given_value(run: Run, name: str, place: Place) -> Any:
    """Return what the caller gave as `{name}`."""
    if name in run.frames:
        return run.frames[name]
    known = ", ".join(run.frames) or "none"
    raise place.error(
        f"no DataFrame {name!r} was given (given: {known})", hint=f"Call sql(..., {name}=frame)", kind=InvalidInput
    )
