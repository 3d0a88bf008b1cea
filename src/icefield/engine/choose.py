"""Choose the engine of an operation, once, by one rule.

    rows are a DataFrame                        spark: its rows are already there
    the caller names one, or else the lake      that engine
    a Spark session is active, it can reach the
    files, and more than LARGE_BYTES of them
    must be opened                              spark
    otherwise                                   local

No session is started implicitly: without one, the local engine does large work too, file by file in bounded memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from icefield.cache.reading import ReadContext
from icefield.engine.engine import EngineUse, RowEngine
from icefield.engine.local import LOCAL, LocalEngine
from icefield.engine.local_upsert import open_arrow_rows
from icefield.engine.rows import SessionChoice, has_session, is_spark, load_spark_engine
from icefield.engine.upsert import UpsertRows
from icefield.errors import InvalidInput
from icefield.model.metadata import TableMetadata
from icefield.storage.store import Store, is_reachable

EngineName = Literal["auto", "local", "spark"]
ENGINE = "engine"  # a property of the lake
AUTO: EngineName = "auto"
SPARK: EngineName = "spark"
ENGINES: tuple[EngineName, ...] = ("auto", "local", "spark")
# The size above which Spark is faster than the local engine on two cores (decision 36); with more cores it is lower.
LARGE_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class EngineChoice:
    """The inputs of the rule. asked: the engine that the caller chose."""

    sessions: SessionChoice
    asked: EngineName | None = None

    def use(self, work_bytes: int, store: Store, rows: object = None) -> EngineUse:
        """Return the engine for an operation that reads this many bytes of files in a store."""
        self._check_asked(rows)
        if is_spark(rows):
            return EngineUse(SPARK, "the rows are a DataFrame")
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

    def open(self, use: EngineUse, context: ReadContext, base: TableMetadata, rows: object = None) -> RowEngine:
        """Return the engine for one version of a table. rows: if it is a DataFrame, its session is used."""
        if use.name == LOCAL:
            return LocalEngine(context.store, base)
        chosen: Any = getattr(rows, "sparkSession", None) if is_spark(rows) else None
        engine: RowEngine = load_spark_engine().row_engine(context, base, chosen or self.sessions.session)
        return engine

    def open_upsert(self, rows: object, on: Sequence[str] | None, base: TableMetadata) -> UpsertRows | None:
        """Prepare rows to upsert on their engine, or return None if there are none."""
        self._check_asked(rows)
        if is_spark(rows):
            opened: UpsertRows | None = load_spark_engine().open_upsert(rows, on, base)
            return opened
        return open_arrow_rows(rows, on, base.schema)

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
