"""Which rows of its tables a query can need, as filters for planning: one for each mention of a table.

    SELECT * FROM shop.orders o JOIN shop.items i ON o.id = i.order_id WHERE o.day = '2026-03-01' AND o.id < 9
      ->  orders: day = DATE '2026-03-01' AND id < 9        items: order_id < 9

A session of this process optimises the query over placeholders, and its plan says what is filtered. Over Spark Connect,
and for queries with the current time, the conditions are taken from the text. In both cases filters only leave out rows
that the query drops anyway: Spark evaluates the whole query on the rest.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from icefield.engine.choose import LOCAL
from icefield.engine.queries.probe import Keys, Probe, ProbedPlan, Settings, names_moment
from icefield.engine.rows import load_spark_engine
from icefield.errors import IcefieldError
from icefield.expr.bind.bound import FALSE, TRUE, Bound, all_of, any_of
from icefield.expr.query.functions import words
from icefield.expr.query.lexer import lex
from icefield.sql.filters.expression import UNKNOWN
from icefield.sql.filters.filters import filter_of, without_nulls
from icefield.sql.filters.plan_json import read_condition
from icefield.sql.filters.query_text import TextTable, read_text
from icefield.sql.filters.text_expressions import Moment, known_values
from icefield.sql.filters.zone import Zone
from icefield.sql.query.names import QueryNames
from icefield.sql.query.references import Reference
from icefield.sql.query.semi_join import FEW_FILES, Occurrence, key_filters
from icefield.sql.session import Run

Analyse = Callable[[Mapping[str, Any]], Any]

_CONDITIONS = words("where on having join qualify using intersect")
_MOST_PROBED = 256


@dataclass(frozen=True)
class Inside:
    """What the views of a query read: references to tables, one for each view and table, and the views' queries."""

    tables: Sequence[Reference]
    queries: Sequence[str]


def plan_filters(run: Run, names: QueryNames, inside: Inside, analyse: Analyse) -> dict[str, Bound]:
    """Return the filters of a query's tables, by the names of their references; the others are read whole.

    analyse: returns the DataFrame of the query over other DataFrames, by the names of references.
    """
    tables = [*(each for each in names.all_references() if each.is_table), *inside.tables]
    has_filters = any(
        _has_condition(text) for text in (*(each.origin.text for each in _all_queries(names)), *inside.queries)
    )
    if run.engine == LOCAL or not has_filters or not any(_has_many_files(each) for each in tables):
        return {}
    return _Planning(run, names, tables, inside.queries).filters(analyse)


@dataclass(frozen=True)
class _Found:
    """What is known of a query: occurrences of its tables with their filters, and keys by which these are joined."""

    occurrences: Sequence[Occurrence]
    keys: Sequence[Keys]


class _Planning:
    """The filters of one query. tables: its mentions of tables, and those of its views. views: their queries."""

    def __init__(self, run: Run, names: QueryNames, tables: Sequence[Reference], views: Sequence[str]) -> None:
        self._run = run
        self._names = names
        self._tables = tables
        self._queries = [*(each.origin.text for each in _all_queries(names)), *views]
        # The definition of a view is more than its text.
        self._is_repeatable = not views and not run.frames
        self._schemas = [table.scan(columns=table.columns).schema for table in tables]

    def filters(self, analyse: Analyse) -> dict[str, Bound]:
        """Return the filters by the names of the tables."""
        probe = load_spark_engine().probe(self._run.lake.spark)
        settings = probe.settings()
        if not settings.prunes:
            return {}
        zone = Zone(settings.zone, probe.offsets)
        plan = self._plan(probe, settings, analyse)
        known = self._by_text(zone) if plan is None else self._by_plan(plan, zone)
        keys = key_filters(self._tables, known.occurrences, known.keys) if settings.finds_keys else {}
        found: dict[int, Bound] = {}
        for index, each in enumerate(known.occurrences):
            where = all_of(each.where, keys.get(index, TRUE))
            found[each.table] = any_of(found.get(each.table, FALSE), where)
        return {self._tables[index].name: where for index, where in found.items() if where != TRUE}

    def _by_plan(self, plan: ProbedPlan, zone: Zone) -> _Found:
        found = []
        for each in plan.occurrences:
            schema = self._schemas[each.table]
            condition = UNKNOWN if each.condition is None else read_condition(each.condition, schema)
            found.append(Occurrence(each.table, filter_of(condition, schema, zone)))
        return _Found(found, plan.keys)

    def _by_text(self, zone: Zone) -> _Found:
        """Find what the text says, of each table at its only mention."""
        moment = Moment(self._run.lake.ambient.now_ms() * 1000, zone)
        values = known_values(self._run.parameters.named.items())
        wheres: dict[int, Bound] = {}
        keys: list[Keys] = []
        for query in _all_queries(self._names):
            tables = [
                TextTable(index, table.mention.place, _written_name(table), self._schemas[index])
                for index, table in enumerate(self._tables)
                if table in query.references
            ]
            found = read_text(query.origin, tables, values, moment)
            wheres |= dict.fromkeys(found.tables, TRUE)
            for each in found.conditions:
                where = filter_of(each.expression, self._schemas[each.table], zone)
                wheres[each.table] = all_of(wheres[each.table], without_nulls(where) if each.is_optional else where)
            keys += found.keys
        return _by_table(wheres, keys)

    def _plan(self, probe: Probe, settings: Settings, analyse: Analyse) -> ProbedPlan | None:
        """Probe the query, or take what an earlier probe of the same query found."""
        if any(map(names_moment, self._queries)):
            return None
        known, key = self._run.session.probed, self._key(settings)
        if self._is_repeatable and key in known:
            return known[key]
        names = [table.name for table in self._tables]
        try:
            plan = probe.plan(self._schemas, lambda frames: analyse(dict(zip(names, frames, strict=True))))
        except IcefieldError:
            return None  # what is wrong with the query is said when it is opened
        if plan is not None and plan.is_lasting and self._is_repeatable:
            if len(known) >= _MOST_PROBED:
                known.clear()
            known[key] = plan
        return plan

    def _key(self, settings: Settings) -> Hashable:
        """Return what a plan depends on."""
        tables = [str(table.relation.name) for table in self._tables]
        return *self._queries, *tables, *self._schemas, repr(self._run.parameters), settings.fingerprint


def _all_queries(names: QueryNames) -> Iterator[QueryNames]:
    """Yield a query, and those of the temporary views that it reads."""
    yield names
    for each in names.temporary:
        yield from _all_queries(each.query)


def _by_table(wheres: Mapping[int, Bound], keys: Sequence[Keys]) -> _Found:
    """Return what a text says about tables, each of which occurs once."""
    at = {table: index for index, table in enumerate(wheres)}
    known = [key for key in keys if key.target in at and key.source in at]
    return _Found(
        [Occurrence(table, where) for table, where in wheres.items()],
        [replace(key, target=at[key.target], source=at[key.source]) for key in known],
    )


def _written_name(table: Reference) -> tuple[str, ...]:
    """Return the name by which columns are qualified with that of the table; empty if it has an alias."""
    return () if table.mention.alias else tuple(part.lower() for part in table.parts)


def _has_many_files(table: Reference) -> bool:
    snapshot = table.version.snapshot
    if snapshot is None:
        return False
    count = snapshot.summary.get("total-data-files", "")
    return not count.isdigit() or int(count) >= FEW_FILES


def _has_condition(text: str) -> bool:
    return any(token.word in _CONDITIONS for token in lex(text))
