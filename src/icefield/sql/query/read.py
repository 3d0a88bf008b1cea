"""Open queries as DataFrames: names are resolved, tables fixed at one moment, and the text given to Spark.

All tables of a statement are loaded in one call, those of its views too. The rows are read when the DataFrame is used;
the versions are fixed now. Raises the errors of names and versions, and what Spark says about the text, at its place.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain
from typing import Any

from icefield.catalog.catalog import Kind
from icefield.engine.choose import LOCAL
from icefield.engine.queries.sql import RefusedBySpark, SparkSql, SparkText
from icefield.engine.rows import load_spark_engine
from icefield.errors import NeedsSpark, Unsupported
from icefield.expr.bind.bound import Bound
from icefield.expr.query.lexer import lex
from icefield.model.names import TableName
from icefield.sql.query.errors import error_of, without_generated
from icefield.sql.query.hidden import edits_of_stars, with_hidden_columns
from icefield.sql.query.names import QueryNames, Resolution, given_value
from icefield.sql.query.pins import Pins
from icefield.sql.query.prune import Inside, plan_filters
from icefield.sql.query.references import Reference, pin
from icefield.sql.session import Relation, Run
from icefield.sql.syntax.cursor import Name
from icefield.sql.syntax.place import Place, pointing_at
from icefield.sql.syntax.strings import literal_of
from icefield.sql.text.labels import Replaced, edits_of
from icefield.sql.text.mentions import Part
from icefield.sql.text.rewrite import Edit, Rewritten, rewrite
from icefield.view import Reading

# Opens a reference as a DataFrame.
FrameOf = Callable[[Reference], Any]


def open_query(run: Run, place: Place, pins: Pins | None = None) -> Any:
    """Open a query as a DataFrame: all its tables at one moment, only files that its filters need."""
    opening = Opening(run, pins)
    return opening.open(opening.names(place))


def open_relation(run: Run, name: Name, pins: Pins | None = None) -> Any:
    """Open a table, view, branch, tag or metadata table as a DataFrame."""
    opening = Opening(run, pins)
    return opening.open(opening.names(name.place, Part.RELATION))


class Opening:
    """One statement that opens queries: every name in it is resolved once, and all tables are of one moment."""

    def __init__(self, run: Run, pins: Pins | None = None) -> None:
        self._run = run
        self._pins = pins or Pins(run)
        self._reading = Reading(run.lake.source)
        self._inside: dict[str, list[Reference]] = {}  # the tables of views, by the names of the references to these
        self._resolution = Resolution(run)

    def names(self, place: Place, part: Part = Part.QUERY) -> QueryNames:
        """Resolve the names of a query, and fix the versions of all tables that it reads at one moment."""
        names = self._resolution.resolve(place, part)
        every = list(names.all_references())
        tables = [each.relation.name for each in every if each.relation.kind is Kind.TABLE]
        below: dict[str, list[TableName]] = {}
        views = [each for each in every if each.relation.kind is Kind.VIEW]
        for view in views:
            with pointing_at(view.mention.place):
                below[view.name] = self._reading.tables_of(view.relation.name)
        self._pins.load([*tables, *chain.from_iterable(below.values())])
        self._inside |= {view.name: [self._table_inside(view, each) for each in below[view.name]] for view in views}
        self._fix(names)
        return names

    def open(self, names: QueryNames) -> Any:
        """Open a query whose names are resolved as a DataFrame."""
        if self._run.engine == LOCAL:
            raise names.origin.error("a query", kind=NeedsSpark)
        self.check(names)
        self.prune(names)
        return self.analyse(names, self._frame_of)

    def explain(self, names: QueryNames, mode: str) -> str:
        """Return Spark's plan of a query, and what is read of each table."""
        known = {each.name: ".".join(each.parts) for each in names.all_references()}
        plan = without_generated(self.sql.explain(self.open(names), mode), known)
        inside = chain.from_iterable(self._inside.values())
        references = [each for each in (*names.all_references(), *inside) if each.is_table]
        tables = [str(each.scan(each.where, each.columns).explain()) for each in references]
        return "\n\n".join([plan, *tables])

    def prune(self, names: QueryNames) -> None:
        """Find out which rows of its tables a query can need, and let its references read no others."""
        inside = Inside(list(chain.from_iterable(self._inside.values())), self._reading.queries)
        filters = plan_filters(self._run, names, inside, partial(self._analyse_instead, names))
        self._filter(names, filters)
        for name, tables in self._inside.items():
            self._inside[name] = [replace(each, where=filters.get(each.name)) for each in tables]

    def analyse(self, names: QueryNames, frame_of: FrameOf) -> Any:
        """Give the text to Spark, with a DataFrame for each reference."""
        rewritten, run = self.rewritten(names), self._run
        text = SparkText(
            rewritten.text, self.frames(names, frame_of), run.parameters.named, remaining_values(run, rewritten)
        )
        try:
            return self.sql.run(text)
        except RefusedBySpark as refused:
            raise error_of(run, refused, rewritten, names.left) from refused

    def frames(self, names: QueryNames, frame_of: FrameOf | None = None) -> dict[str, Any]:
        """Open what a text names, by the names that stand for it in the text for Spark."""
        frame_of = frame_of or self._frame_of
        frames = {each.name: frame_of(each) for each in names.references}
        for each in names.temporary:
            kept = self._run.session.cached.get(each.key)
            frames[each.name] = self.analyse(each.query, frame_of) if kept is None else kept
        return frames | {each.name: each.frame for each in names.given}

    def check(self, names: QueryNames) -> None:
        """Refuse a text in which Spark's parser finds other relations, if that can be asked."""
        rewritten = self.rewritten(names)
        try:
            found = self.sql.relations(rewritten.text)
        except RefusedBySpark as refused:
            raise error_of(self._run, refused, rewritten, names.left) from refused
        if found is None:
            return
        generated = [each.name for each in names.references]
        generated += [each.name for each in names.temporary] + [each.name for each in names.given]
        left = [name.parts for name in names.left]
        expected = Counter(f"[{', '.join(parts)}]" for parts in (*((name,) for name in generated), *left))
        expected += Counter(f"[{name}]" for name in names.shape.common)
        surplus = Counter(found) - expected
        if surplus and names.part is not Part.EXPRESSION:
            raise names.origin.error(
                f"cannot tell which tables the query reads: Spark finds {', '.join(surplus)}",
                hint="Write names that are also keywords in backquotes",
                kind=Unsupported,
            )

    def rewritten(self, names: QueryNames) -> Rewritten:
        """Return the text for Spark, in which generated names stand for relations."""
        catalog = self._run.lake.catalog.name
        replaced = [
            *(_replaced(each, catalog) for each in names.references),
            *(Replaced(each.mention, each.name, each.parts) for each in names.temporary),
            *(Replaced(each.mention, each.name, ()) for each in names.given),
        ]
        is_local = self._run.engine == LOCAL
        edits = [*edits_of(names.shape, replaced, is_strict=is_local), *edits_of_stars(names.shape, names.references)]
        edits += self._edits_of_values(names)
        if names.part is Part.RELATION:
            edits.append(Edit(names.origin.start, names.origin.start, "SELECT * FROM "))
        return rewrite(names.origin, edits)

    @cached_property
    def sql(self) -> SparkSql:
        """The Spark session that analyses the text."""
        return load_spark_engine().sql(self._run.lake.spark)

    def _fix(self, names: QueryNames) -> None:
        """Give references their tables, and the columns that the query needs of them."""
        for at, each in enumerate(names.references):
            if each.relation.kind is Kind.TABLE:
                fixed = pin(each, self._pins.table(each.relation.name))
                names.references[at] = with_hidden_columns(fixed, names.shape)
        for temporary in names.temporary:
            self._fix(temporary.query)

    def _filter(self, names: QueryNames, filters: Mapping[str, Bound]) -> None:
        names.references[:] = [replace(each, where=filters.get(each.name)) for each in names.references]
        for temporary in names.temporary:
            self._filter(temporary.query, filters)

    def _analyse_instead(self, names: QueryNames, frames: Mapping[str, Any]) -> Any:
        """Give the text to Spark, with other DataFrames for some references."""

        def frame_of(reference: Reference) -> Any:
            if reference.relation.kind is Kind.VIEW:
                return self._open_view(reference, frame_of)
            return frames[reference.name] if reference.name in frames else self._frame_of(reference)

        return self.analyse(names, frame_of)

    def _frame_of(self, reference: Reference) -> Any:
        if reference.relation.kind is Kind.TABLE:
            cached = self._run.session.cached
            is_kept = bool(cached) and reference.columns is None and reference.cache_key in cached
            return cached[reference.cache_key] if is_kept else reference.frame()
        return self._open_view(reference, Reference.frame)

    def _open_view(self, view: Reference, frame_of: FrameOf) -> Any:
        pinned = {each.relation.name: partial(frame_of, each) for each in self._inside[view.name]}
        with pointing_at(view.mention.place):
            return self._reading.over(pinned).frame(view.relation.name)

    def _table_inside(self, view: Reference, name: TableName) -> Reference:
        """Return a reference to a table that a view reads."""
        return replace(
            view, name=f"{view.name}.{name}", relation=Relation(name, Kind.TABLE), table=self._pins.table(name)
        )

    def _edits_of_values(self, names: QueryNames) -> Iterator[Edit]:
        """Write values that the caller gave as `{name}`."""
        for token in names.shape.values:
            place = Place(names.origin.source, token.start, token.end)
            with pointing_at(place):
                yield Edit(token.start - 1, token.end + 1, literal_of(given_value(self._run, token.name, place)))


def cache_key(names: QueryNames) -> str | None:
    """Return the key under which the rows of a single relation are cached; None for a relation of Spark."""
    if names.temporary:
        return names.temporary[0].key
    if not names.references:
        return None
    if names.references[0].relation.kind is Kind.VIEW:
        raise names.origin.error("a view cannot be cached", hint="Cache a temporary view of it", kind=Unsupported)
    return names.references[0].cache_key


def _replaced(reference: Reference, catalog: str) -> Replaced:
    """Return what is known of a relation: its whole name, with which columns may begin, and its columns."""
    name = reference.relation.name
    full = (catalog, *name.namespace, name.name)
    if reference.relation.inspects is not None or reference.relation.ref is not None:
        full = (*full, reference.parts[-1])
    columns = reference.version.schema.column_names if reference.is_table and reference.table is not None else None
    lower = None if columns is None else frozenset(each.lower() for each in columns)
    return Replaced(reference.mention, reference.name, full, lower)


def remaining_values(run: Run, rewritten: Rewritten) -> Sequence[Any]:
    """Return the values of the `?` markers that are left in a text.

    They are counted in the statement as written, of which some may be blanks in the text, at the same positions.
    """
    values = run.parameters.positional
    if not values:
        return []
    origin = rewritten.origin
    source = run.text if len(run.text) == len(origin.source) else origin.source
    markers = [token.start for token in lex(source) if token.text == "?"]
    written = (token.start for token in lex(origin.source[: origin.end]) if token.text == "?")
    left = (
        start
        for start in written
        if start >= origin.start and not any(edit.start <= start < edit.end for edit in rewritten.edits)
    )
    return [value for start in left for at, value in zip(markers, values, strict=False) if at == start]
