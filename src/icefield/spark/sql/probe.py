"""Ask a session about a query before it is run: `icefield.engine.queries.probe.Probe`.

The query is analysed and optimised over placeholders: relations of Parquet files without files, each with an option by
which it is found in the plan. (Spark would fold a query over empty local data to nothing.) The optimised plan is walked
node by node; conditions are taken as JSON, with what that leaves out.

Only sessions of this process show their plans. Over Spark Connect there are plans as text, in which strings are not
quoted, so that a filter could be misread.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icefield.engine.queries.probe import ExpressionJson, Occurrence, ProbedPlan, Settings, names_moment
from icefield.spark.session.session import active_in_jvm, is_remote
from icefield.spark.sql.join_keys import PlanNode, find_keys
from icefield.spark.types import logical_field
from icefield.types.schema import Schema

PRUNING = "icefield.sql.pruning"
KEY_PRUNING = "icefield.sql.key-pruning"
_ZONE = "spark.sql.session.timeZone"
_OPTION = "icefieldtable"
_SEPARATOR = "\x01"


class SessionProbe:
    """Asks one session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark: Any = spark
        self._is_remote = is_remote(spark)

    def settings(self) -> Settings:
        """Return the settings that matter."""
        conf = self._spark.conf
        prunes, finds_keys = (str(conf.get(key, "true")).lower() != "false" for key in (PRUNING, KEY_PRUNING))
        fingerprint = None if self._is_remote else hash(self._state.conf().getAllConfs().toString())
        return Settings(str(conf.get(_ZONE)), prunes, finds_keys, fingerprint)

    def offsets(self, seconds: Sequence[int]) -> list[int]:
        """Return the offset of the session's time zone from UTC, in seconds, at moments in seconds since 1970."""
        zone = str(self._spark.conf.get(_ZONE))
        return [_offset_at(self._spark, zone, moment, is_remote=self._is_remote) for moment in seconds]

    def plan(self, schemas: Sequence[Schema], analyse: Callable[[Sequence[Any]], Any]) -> ProbedPlan | None:
        """Probe a query. None if the session does not show its plans, or if they depend on the time of the query."""
        if self._is_remote:
            return None
        try:
            placeholders = [_placeholder(self._spark, schema, index) for index, schema in enumerate(schemas)]
            frame: Any = analyse(placeholders)
            with active_in_jvm(self._spark):
                return self._read(frame._jdf.queryExecution(), schemas)  # noqa: SLF001 - it shows its plan nowhere else
        except (PySparkException, Py4JError):
            # Parquet cannot hold a column, or the plan has another form than in the versions of Spark that are known.
            return None

    @property
    def _state(self) -> Any:
        return self._spark._jsparkSession.sessionState()  # noqa: SLF001 - pyspark has no other way to it

    def _read(self, execution: Any, schemas: Sequence[Schema]) -> ProbedPlan | None:
        analysed = execution.analyzed()
        if self._is_passing(analysed):
            return None
        reader = _PlanReader(schemas)
        reader.read(execution.optimizedPlan())
        keys = [key for root in reader.roots for key in find_keys(root, schemas)]
        return ProbedPlan(tuple(reader.occurrences), tuple(keys), self._is_lasting(analysed))

    def _is_passing(self, analysed: Any) -> bool:
        """Return whether a query depends on when it is run: the optimiser replaces the current time by a literal."""
        patterns = self._spark._jvm.org.apache.spark.sql.catalyst.trees.TreePattern  # noqa: SLF001
        is_current = analysed.containsPattern(patterns.CURRENT_LIKE())
        return bool(is_current) or names_moment(analysed.toString())

    def _is_lasting(self, analysed: Any) -> bool:
        """Return whether a plan has nothing that a statement of the session can change."""
        state = self._state
        has_own = not state.catalogManager().tempVariableManager().isEmpty() or any(
            _items(state.catalog().listTemporaryFunctions())
        )
        return not has_own and all(_is_ours(leaf) for leaf in _leaves(analysed))


class _PlanReader:
    """Collects the occurrences of placeholders in a plan and its subqueries."""

    def __init__(self, schemas: Sequence[Schema]) -> None:
        self._schemas = schemas
        self.occurrences: list[Occurrence] = []
        self.roots: list[PlanNode] = []

    def read(self, plan: Any) -> None:
        """Read a plan."""
        self.roots.append(self._node(plan))

    def _node(self, plan: Any, condition: ExpressionJson | None = None) -> PlanNode:
        kind = plan.nodeName()
        for subquery in _items(plan.subqueries()):
            self.read(subquery)
        table = _table_of(plan) if kind == "LogicalRelation" else None
        if table is not None:
            self.occurrences.append(Occurrence(table, condition))
            return PlanNode(kind, plan, (), len(self.occurrences) - 1, table)
        own = _condition(plan) if kind == "Filter" else None
        return PlanNode(kind, plan, tuple(self._node(child, own) for child in _items(plan.children())))


@lru_cache(maxsize=256)
def _placeholder(spark: SparkSession, schema: Schema, index: int) -> DataFrame:
    """Return a relation without rows, with the columns of a table as Spark shows them."""
    columns = StructType([logical_field(field) for field in schema.fields])
    return spark.read.schema(columns).option(_OPTION, str(index)).parquet(f"file://{_empty_directory().name}")


@lru_cache(maxsize=1)
def _empty_directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="icefield-probe-")


def _table_of(relation: Any) -> int | None:
    """Return the index of the table that a relation stands for."""
    files = relation.relation()
    if files.getClass().getSimpleName() != "HadoopFsRelation":
        return None
    found = files.options().get(_OPTION)
    return int(found.get()) if found.isDefined() else None


def _is_ours(leaf: Any) -> bool:
    kind = leaf.nodeName()
    return kind == "CTERelationRef" or (kind == "LogicalRelation" and _table_of(leaf) is not None)


def _leaves(plan: Any) -> Iterator[Any]:
    yield from _items(plan.collectLeaves())
    for subquery in _items(plan.subqueriesAll()):
        yield from _items(subquery.collectLeaves())


def _condition(plan: Any) -> ExpressionJson:
    """Return the condition of a filter as JSON, with the values that Spark leaves out."""
    condition = plan.condition()
    nodes: ExpressionJson = json.loads(condition.toJSON())
    # Spark numbers the nodes of a subquery, too.
    if any("Subquery" in str(node.get("class")) for node in nodes):
        return nodes
    for at, node in enumerate(nodes):
        match str(node.get("class")).rpartition(".")[2]:
            case "InSet":
                node.update(_set_of(condition.apply(at)))
            case "Like":
                node["escapeChar"] = str(condition.apply(at).escapeChar())
            case "Literal" if node.get("dataType") == "binary" and node.get("value") is not None:
                node["value"] = bytes(condition.apply(at).value()).hex()
    return nodes


def _set_of(test: Any) -> dict[str, Any]:
    values = test.hset()
    members = values.mkString(_SEPARATOR).split(_SEPARATOR)
    return {
        "hset": members if len(members) == values.size() else None,
        "type": json.loads(test.child().dataType().json()),
    }


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(at) for at in range(sequence.size()))


@lru_cache(maxsize=4096)
def _offset_at(spark: Any, zone: str, moment: int, *, is_remote: bool) -> int:
    if is_remote:
        local = f"CAST(timestamp_seconds({moment}) AS TIMESTAMP_NTZ)"
        text = f"SELECT timestampdiff(SECOND, TIMESTAMP_NTZ '1970-01-01 00:00:00', {local})"
        return int(spark.sql(text).collect()[0][0]) - moment
    time = spark._jvm.java.time  # noqa: SLF001 - the zones that count are those of Spark
    rules = spark._jvm.org.apache.spark.sql.catalyst.util.DateTimeUtils.getZoneId(zone).getRules()  # noqa: SLF001
    return int(rules.getOffset(time.Instant.ofEpochSecond(moment)).getTotalSeconds())
