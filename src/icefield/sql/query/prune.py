"""Which rows of its tables a query can need, as filters for planning: one for each mention of a table.

    SELECT * FROM shop.orders o JOIN shop.items i ON o.id = i.order_id WHERE o.day = '2026-03-01' AND o.id < 9
      ->  orders: day = DATE '2026-03-01' AND id < 9        items: order_id < 9

A session of this process optimises the query over placeholders, and its plan says what is filtered. Over Spark Connect,
and for queries with the current time, the conditions are taken from the text. In both cases filters only leave out rows
that the query drops anyway: Spark evaluates the whole query on the rest.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from icefield.engine.local import LOCAL
from icefield.engine.probe import Probe, ProbedPlan, Settings, names_moment
from icefield.engine.rows import load_spark_engine
from icefield.errors import IcefieldError
from icefield.expr.bind.bound import FALSE, TRUE, Bound, all_of, any_of
from icefield.expr.query.functions import words
from icefield.expr.query.lexer import lex
from icefield.sql.filters.filters import filter_of
from icefield.sql.filters.plan_json import read_condition
from icefield.sql.filters.zone import Zone
from icefield.sql.query.references import Reference
from icefield.sql.query.semi_join import FEW_FILES, Occurrence, key_filters
from icefield.sql.session import Run

Analyse = Callable[[Mapping[str, Any]], Any]

_CONDITIONS = words("where on having join qualify using intersect")
_MOST_PLANS = 256


def plan_filters(run: Run, references: Sequence[Reference], analyse: Analyse) -> list[Bound | None]:
    """Return a filter for each reference of a query; None for all rows.

    references: all that the query reads, in their texts. analyse: returns the DataFrame of the query over other
    DataFrames, by the names of references.
    """
    tables = [each for each in references if each.is_table]
    texts = list(dict.fromkeys(each.mention.place.source for each in references))
    found: dict[str, Bound] = {}
    if run.engine != LOCAL and any(_has_many_files(each) for each in tables) and any(map(_has_condition, texts)):
        found = _Planning(run, tables, texts).filters(analyse)
    return [found.get(each.name) for each in references]


class _Planning:
    """The filters of one query. tables: its mentions of tables."""

    def __init__(self, run: Run, tables: Sequence[Reference], texts: Sequence[str]) -> None:
        self._run = run
        self._tables = tables
        self._texts = texts
        self._schemas = [table.scan(columns=table.columns).schema for table in tables]

    def filters(self, analyse: Analyse) -> dict[str, Bound]:
        """Return the filters by the names of the tables."""
        probe = load_spark_engine().probe(self._run.lake.spark)
        settings = probe.settings()
        if not settings.prunes:
            return {}
        plan = self._plan(probe, settings, analyse)
        zone = Zone(settings.zone, probe.offsets)
        if plan is None:
            return {}
        occurrences = [self._occurrence(each.table, each.condition, zone) for each in plan.occurrences]
        keys = key_filters(self._tables, occurrences, plan.keys) if settings.finds_keys and plan.keys else {}
        found: dict[int, Bound] = {}
        for index, each in enumerate(occurrences):
            where = all_of(each.where, keys.get(index, TRUE))
            found[each.table] = any_of(found.get(each.table, FALSE), where)
        return {self._tables[index].name: where for index, where in found.items() if where != TRUE}

    def _occurrence(self, table: int, condition: Any, zone: Zone) -> Occurrence:
        schema = self._schemas[table]
        where = TRUE if condition is None else filter_of(read_condition(condition, schema), schema, zone)
        return Occurrence(table, where)

    def _plan(self, probe: Probe, settings: Settings, analyse: Analyse) -> ProbedPlan | None:
        """Probe the query, or take what an earlier probe of the same query found."""
        if any(map(names_moment, self._texts)):
            return None
        known, key = self._run.session.probed, self._key(settings)
        if key in known:
            return known[key]
        names = [table.name for table in self._tables]
        try:
            plan = probe.plan(self._schemas, lambda frames: analyse(dict(zip(names, frames, strict=True))))
        except IcefieldError:
            return None  # what is wrong with the query is said when it is opened
        if plan is not None and plan.is_lasting and not self._run.frames:
            if len(known) >= _MOST_PLANS:
                known.clear()
            known[key] = plan
        return plan

    def _key(self, settings: Settings) -> Hashable:
        """Return what a plan depends on."""
        mentions = [(table.mention.place.start, str(table.relation.name)) for table in self._tables]
        parameters = repr(self._run.parameters)
        return tuple(self._texts), tuple(mentions), tuple(self._schemas), parameters, settings.fingerprint


def _has_many_files(table: Reference) -> bool:
    snapshot = table.version.snapshot
    if snapshot is None:
        return False
    count = snapshot.summary.get("total-data-files", "")
    return not count.isdigit() or int(count) >= FEW_FILES


def _has_condition(text: str) -> bool:
    return any(token.word in _CONDITIONS for token in lex(text))
