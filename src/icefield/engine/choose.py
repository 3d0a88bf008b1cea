"""Choose the engine of an operation, once, by one rule.

    rows are a DataFrame                        spark: its rows are already there
    the caller names one, or else the lake      that engine
    a Spark session is active, it can reach the
    files, and more than LARGE_BYTES of them
    must be opened                              spark
    otherwise                                   local

No session is started implicitly: without one, the local engine does large work too, file by file in bounded memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput, NeedsSpark

with deferred_imports(__name__):
    from icefield.cache.reading import ReadContext
    from icefield.engine.change import Merge, MergeSource, SourceKeys
    from icefield.engine.engine import EngineUse, RowEngine
    from icefield.engine.local import LocalEngine
    from icefield.engine.merge_source import arrow_source_keys, open_arrow_source
    from icefield.engine.rows import SessionChoice, has_session, is_spark, load_spark_engine
    from icefield.model.metadata import TableMetadata
    from icefield.storage.store import Store, is_reachable

EngineName = Literal["auto", "local", "spark"]
ENGINE = "engine"  # a property of the lake
AUTO: EngineName = "auto"
LOCAL: EngineName = "local"
SPARK: EngineName = "spark"
ENGINES: tuple[EngineName, ...] = ("auto", "local", "spark")
# The size above which Spark is faster than the local engine on two cores (decision 36); with more cores it is lower.
LARGE_BYTES = 256 * 1024 * 1024
_CHOOSE_SPARK = (
    "Start a Spark session, or choose the engine: engine='spark', or --lake-property engine=spark on the command line"
)


@dataclass(frozen=True)
class EngineChoice:
    """The inputs of the rule. asked: the engine that the caller chose."""

    sessions: SessionChoice
    asked: EngineName | None = None

    def use(self, work_bytes: int, store: Store, rows: object = None, needs_spark: str | None = None) -> EngineUse:
        """Return the engine for an operation that reads this many bytes of files in a store.

        needs_spark: what only Spark can evaluate.
        """
        self._check_asked(rows)
        if is_spark(rows):
            return EngineUse(SPARK, "the rows are a DataFrame")
        if needs_spark is not None:
            return self._use_spark(needs_spark)
        if self.asked is not None and self.asked != AUTO:
            return EngineUse(self.asked, "the caller chose it")
        if self.asked is None and self.sessions.engine != AUTO:
            return EngineUse(self.sessions.engine, "the lake chose it")
        if work_bytes <= LARGE_BYTES:
            return EngineUse(LOCAL, f"{work_bytes:,} bytes to open, at most {LARGE_BYTES:,}")
        if not has_session(self.sessions.session):
            return EngineUse(LOCAL, f"{work_bytes:,} bytes to open, but no Spark session is active")
        if not is_reachable(store):
            return EngineUse(LOCAL, f"{work_bytes:,} bytes to open, but Spark cannot reach them")
        return EngineUse(SPARK, f"{work_bytes:,} bytes to open, more than {LARGE_BYTES:,}")

    def _use_spark(self, needs_spark: str) -> EngineUse:
        needs_spark = needs_spark.removesuffix(",")  # the comma after a clause inside a sentence
        is_chosen = SPARK in (self.asked, self.sessions.engine)
        if self.asked == LOCAL or not (is_chosen or has_session(self.sessions.session)):
            raise NeedsSpark(needs_spark, hint="Omit engine='local'" if self.asked == LOCAL else _CHOOSE_SPARK)
        return EngineUse(SPARK, f"only Spark can evaluate {needs_spark}")

    def open(self, use: EngineUse, context: ReadContext, base: TableMetadata, rows: object = None) -> RowEngine:
        """Return the engine for one version of a table. rows: if it is a DataFrame, its session is used."""
        if use.name == LOCAL:
            return LocalEngine(context.store, base)
        chosen: Any = getattr(rows, "sparkSession", None) if is_spark(rows) else None
        engine: RowEngine = load_spark_engine().row_engine(context, base, chosen or self.sessions.session)
        return engine

    def open_source(self, rows: object, base: TableMetadata) -> MergeSource:
        """Prepare the source rows of a merge on their engine, so that they can be read twice."""
        self._check_asked(rows)
        if is_spark(rows):
            opened: MergeSource = load_spark_engine().open_source(rows, base)
            return opened
        return open_arrow_source(rows)

    def source_keys(self, source: MergeSource, merge: Merge, base: TableMetadata) -> SourceKeys:
        """Find what the keys of the source rows tell about the rows of the table that they can match."""
        if is_spark(source.rows):
            found: SourceKeys = load_spark_engine().source_keys(source, merge, base)
            return found
        return arrow_source_keys(source, merge, base.schema)

    def _check_asked(self, rows: object) -> None:
        if self.asked is not None:
            check_engine(self.asked)
        if self.asked == LOCAL and is_spark(rows):
            raise InvalidInput(
                "engine='local' does not accept a DataFrame: its rows are on Spark",
                hint="Omit engine, or pass df.toArrow()",
            )


def check_engine(name: str) -> EngineName:
    """Check the name of an engine."""
    for known in ENGINES:
        if name == known:
            return known
    raise InvalidInput(f"unknown engine {name!r}", hint=f"Choose one of {', '.join(ENGINES)}")
