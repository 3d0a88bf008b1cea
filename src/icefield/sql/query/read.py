"""Open queries as DataFrames: names are resolved, tables fixed at one moment, and the text given to Spark.

All tables of a statement are loaded in one call, those of its views too. The rows are read when the DataFrame is used;
the versions are fixed now. Raises the errors of names and versions, and what Spark says about the text, at its place.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from icefield.catalog.catalog import Kind
from icefield.engine.local import LOCAL
from icefield.engine.rows import is_spark, load_spark_engine
from icefield.engine.sql import RefusedBySpark, SparkSql, SparkText
from icefield.errors import IcefieldError, InvalidInput, NeedsSpark, Unsupported
from icefield.expr.query.lexer import lex
from icefield.model.names import TableName
from icefield.sql.query.errors import error_of
from icefield.sql.query.mentions import Part, find_mentions
from icefield.sql.query.pins import Pins
from icefield.sql.query.references import Reference, find_relation_of, find_temporary, name_of, pin, resolve_travel
from icefield.sql.query.rewrite import Edit, Replaced, Rewritten, edits_of, frame_name, rewrite
from icefield.sql.query.shape import Mention, Shape
from icefield.sql.session import Run
from icefield.sql.syntax.cursor import Name
from icefield.sql.syntax.place import Place, pointing_at
from icefield.sql.syntax.strings import literal_of
from icefield.view import Reading

_MAX_DEPTH = 50


def open_query(run: Run, place: Place, pins: Pins | None = None) -> Any:
    """Open a query as a DataFrame: all its tables at one moment, only files that its filters need."""
    return Opening(run, pins).query(place)


def open_relation(run: Run, name: Name, pins: Pins | None = None) -> Any:
    """Open a table, view, branch, tag or metadata table as a DataFrame."""
    return Opening(run, pins).query(name.place, Part.RELATION)


@dataclass(frozen=True)
class QueryNames:
    """A query whose names are resolved.

    By the index of a mention: parts: its name. below: the query of a temporary view. frames: a DataFrame that the
    caller gave. references: mentions of the lake.
    """

    origin: Place
    shape: Shape
    parts: dict[int, tuple[str, ...]] = field(default_factory=dict)
    references: list[Reference] = field(default_factory=list)
    below: "dict[int, QueryNames]" = field(default_factory=dict)
    frames: dict[int, Any] = field(default_factory=dict)

    def all_references(self) -> Iterator[Reference]:
        """Yield the references of the query, and of the temporary views in it."""
        yield from self.references
        for each in self.below.values():
            yield from each.all_references()


class Opening:
    """One statement that opens queries: every name in it is resolved once, all tables are of one moment."""

    def __init__(self, run: Run, pins: Pins | None = None) -> None:
        self._run = run
        self._pins = pins or Pins(run)
        self._openers: dict[TableName, Callable[[], Any]] = {}
        self._reading = Reading(run.lake.source, pinned=self._openers)
        self._scope = run.lake.ambient.random_uuid().hex
        self._count = 0

    def query(self, place: Place, part: Part = Part.QUERY) -> Any:
        """Open a query, or one relation, as a DataFrame."""
        if self._run.engine == LOCAL:
            raise place.error("a query", kind=NeedsSpark)
        names = self.resolve(place, part)
        self.pin(names)
        return self.open(names, part)

    def resolve(self, place: Place, part: Part = Part.QUERY, inside: tuple[str, ...] = ()) -> QueryNames:
        """Find out what the names of a query refer to; nothing is loaded yet."""
        shape = find_mentions(place, part)
        if shape.writes is not None:
            at = Place(place.source, shape.writes.start, shape.writes.end)
            raise at.error("a query cannot insert rows", hint="Begin the statement with INSERT", kind=Unsupported)
        found = QueryNames(place, shape)
        for index, mention in enumerate(shape.mentions):
            self._resolve_mention(found, index, mention, inside)
        return found

    def pin(self, names: QueryNames) -> None:
        """Fix the versions of all tables that a query reads, those of views too, at one moment."""
        every = list(names.all_references())
        tables = [each.relation.name for each in every if each.relation.kind is Kind.TABLE]
        for view in (each for each in every if each.relation.kind is Kind.VIEW):
            with pointing_at(view.mention.place):
                below = self._reading.tables_of(view.relation.name)
            self._openers |= {name: partial(self._open_table, name) for name in below}
            tables += below
        self._pins.load(tables)
        _pin_all(names, self._pins)

    def open(self, names: QueryNames, part: Part = Part.QUERY) -> Any:
        """Give the text to Spark."""
        text, rewritten = self._spark_text(names, part)
        try:
            return self._sql.run(text)
        except RefusedBySpark as refused:
            raise error_of(self._run, refused, rewritten) from refused

    @property
    def _sql(self) -> SparkSql:
        return load_spark_engine().sql(self._run.lake.spark)

    def _resolve_mention(self, found: QueryNames, index: int, mention: Mention, inside: tuple[str, ...]) -> None:
        run = self._run
        if mention.frame is not None:
            found.frames[index] = _frame_of(run, mention)
            return
        name = name_of(run, mention)
        found.parts[index] = name.parts
        if (key := find_temporary(run, name.parts)) is not None:
            if mention.travel is not None:
                raise mention.travel.place.error("a temporary view has no versions to read", kind=Unsupported)
            if key in inside or len(inside) > _MAX_DEPTH:
                raise mention.place.error(f"the temporary view {key} reads itself", kind=InvalidInput)
            text = run.session.temporary_views[key]
            found.below[index] = self.resolve(Place(text, 0, len(text)), inside=(*inside, key))
            return
        with pointing_at(mention.name_place):
            relation = find_relation_of(run, name)
        if relation is not None:
            as_of = resolve_travel(run, relation, mention.travel)
            self._count += 1
            generated = frame_name(self._scope, self._count)
            found.references.append(Reference(index, mention, name.parts, generated, relation, as_of))

    def _spark_text(self, names: QueryNames, part: Part) -> tuple[SparkText, Rewritten]:
        catalog = self._run.lake.catalog.name
        frames: dict[str, Any] = {}
        replaced: list[Replaced] = []
        for reference in names.references:
            frames[reference.name] = self._frame_of(reference)
            full = _full_name(reference, catalog)
            replaced.append(Replaced(reference.mention, reference.name, full))
        for index, below in names.below.items():
            frames[name := self._new_name()] = self.open(below)
            replaced.append(Replaced(names.shape.mentions[index], name, names.parts[index]))
        for index, frame in names.frames.items():
            frames[name := self._new_name()] = frame
            replaced.append(Replaced(names.shape.mentions[index], name, ()))
        edits = [*edits_of(names.shape, replaced), *self._values(names)]
        if part is Part.RELATION:
            edits.append(Edit(names.origin.start, names.origin.start, "SELECT * FROM "))
        rewritten = rewrite(names.origin, edits)
        positional = _remaining(self._run, rewritten)
        return SparkText(rewritten.text, frames, self._run.parameters.named, positional), rewritten

    def _new_name(self) -> str:
        self._count += 1
        return frame_name(self._scope, self._count)

    def _open_table(self, name: TableName) -> Any:
        return self._pins.table(name).scan().to_spark()

    def _frame_of(self, reference: Reference) -> Any:
        if reference.relation.kind is Kind.TABLE:
            return reference.frame()
        with pointing_at(reference.mention.place):
            return self._reading.frame(reference.relation.name)

    def _values(self, names: QueryNames) -> Iterator[Edit]:
        """Write values that the caller gave as `{name}`."""
        for token in names.shape.values:
            place = Place(names.origin.source, token.start, token.end)
            if token.name not in self._run.frames:
                raise _unknown_frame(self._run, token.name, place)
            with pointing_at(place):
                yield Edit(token.start - 1, token.end + 1, literal_of(self._run.frames[token.name]))


def _pin_all(names: QueryNames, pins: Pins) -> None:
    names.references[:] = [
        pin(each, pins.table(each.relation.name)) if each.relation.kind is Kind.TABLE else each
        for each in names.references
    ]
    for below in names.below.values():
        _pin_all(below, pins)


def _full_name(reference: Reference, catalog: str) -> tuple[str, ...]:
    """Return the whole name of a relation, with which columns may begin."""
    name = reference.relation.name
    full = (catalog, *name.namespace, name.name)
    is_within = reference.relation.inspects is not None or reference.relation.ref is not None
    return (*full, reference.parts[-1]) if is_within else full


def _frame_of(run: Run, mention: Mention) -> Any:
    assert mention.frame is not None
    if mention.frame not in run.frames:
        raise _unknown_frame(run, mention.frame, mention.place)
    frame = run.frames[mention.frame]
    if not is_spark(frame) or not hasattr(frame, "sparkSession"):
        raise mention.place.error(
            f"{mention.frame} must be a Spark DataFrame to be read, not {type(frame).__name__}", kind=InvalidInput
        )
    return frame


def _unknown_frame(run: Run, name: str, place: Place) -> IcefieldError:
    known = ", ".join(run.frames) or "none"
    return place.error(
        f"no DataFrame {name!r} was given (given: {known})", hint=f"Call sql(..., {name}=frame)", kind=InvalidInput
    )


def _remaining(run: Run, rewritten: Rewritten) -> list[Any]:
    """Return the values of the `?` markers that are left in a text."""
    values = run.parameters.positional
    if not values:
        return []
    origin, found, index = rewritten.origin, list[Any](), 0
    for token in lex(origin.source[: origin.end]):
        if token.text != "?":
            continue
        is_left = token.start >= origin.start and not any(e.start <= token.start < e.end for e in rewritten.edits)
        if is_left and index < len(values):
            found.append(values[index])
        index += 1
    return found
