"""The same random history on both engines: the same rows, the same row ids where there are any, the same counts.

A history is drawn from its seed: run one again with ICEFIELD_SEEDS=123:124. ICEFIELD_DEEP=1 (`make deep`) has many.
"""

from collections.abc import Mapping
from random import Random
from typing import Any, Literal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.effort import DEEP, seeds

from icefield.lake import Lake
from icefield.model.snapshot import Snapshot
from icefield.table.table import Table

pytestmark = pytest.mark.spark

SEEDS = seeds(2, deep=60)
STEPS = 6 if DEEP else 4
Engine = Literal["local", "spark"]
ENGINES: tuple[Engine, Engine] = ("local", "spark")
SHAPE = pa.schema([("id", pa.int64()), ("day", pa.string()), ("value", pa.float64()), ("note", pa.string())])


@pytest.mark.parametrize("seed", SEEDS)
def test_both_engines_make_the_same_of_a_history(seed: int, lake: Lake, spark: SparkSession) -> None:
    random = Random(seed)
    tables = [_make(lake, name, Random(seed)) for name in ENGINES]
    story: list[str] = []
    for _ in range(STEPS):
        verb, arguments = _draw(random)
        story.append(f"{verb}{arguments}")
        made = [_do(table, verb, arguments, engine) for table, engine in zip(tables, ENGINES, strict=True)]
        history = "\n".join(story)
        assert _rows(tables[0]) == _rows(tables[1]), history
        assert [m is None for m in made] in ([True] * 2, [False] * 2), history
        assert _counts(made[0], verb) == _counts(made[1], verb), history
        assert tables[0].count(engine="local") == tables[1].count(engine="spark") == len(_rows(tables[0])), history
        for column in ("id", "value"):
            ends = [
                (t.scan().min(column, engine=e), t.scan().max(column, engine=e))
                for t, e in zip(tables, ENGINES, strict=True)
            ]
            assert ends[0] == ends[1], history


def _make(lake: Lake, name: str, random: Random) -> Table:
    table = lake.create_table(
        f"a.{name}",
        "id long not null, day string, value double, note string",
        partition_by=random.choice([[], ["day"], ["bucket(3, id)"]]),
        properties={
            f"write.{verb}.mode": random.choice(["copy-on-write", "merge-on-read"]) for verb in ("delete", "merge")
        },
        format_version=random.choice([2, 3]),
    )
    for start in range(0, 40, 10):
        table.append(_some_rows(Random(start), range(start, start + 10)))
    return table


def _some_rows(random: Random, ids: Any) -> pa.Table:
    found = [
        {
            "id": i,
            "day": random.choice(["a", "b", None, "c/d"]),
            "value": random.choice([0.0, -0.0, 1.5, float(i), None]),
            "note": random.choice(["x", "ü", "", None]),
        }
        for i in ids
    ]
    return pa.Table.from_pylist(found, schema=SHAPE)


def _draw(random: Random) -> tuple[str, Any]:
    verb = random.choice(["delete", "delete", "upsert", "upsert", "overwrite", "compact", "append"])
    ids = sorted(random.sample(range(60), random.randint(1, 12)))
    match verb:
        case "delete" | "overwrite":
            low = random.randint(0, 50)
            return verb, random.choice(
                [
                    f"id in ({', '.join(map(str, ids))})",
                    f"id between {low} and {low + 7}",
                    "day = 'a'",
                    "note is null and id > 20",
                ]
            )
        case "upsert":
            columns = ["id", *random.sample(["day", "value", "note"], random.randint(1, 3))]
            return verb, _some_rows(Random(random.random()), ids).select(columns).to_pylist()
        case "append":
            return verb, _some_rows(Random(random.random()), [100 + i for i in ids]).to_pylist()
        case _:
            return verb, None


def _do(table: Table, verb: str, arguments: Any, engine: Engine) -> Snapshot | None:
    match verb:
        case "delete":
            return table.delete(arguments, engine=engine).snapshot
        case "overwrite":
            return table.overwrite(_some_rows(Random(1), [70]), where=arguments, engine=engine, check_rows=False)
        case "upsert":
            _keep_one_of_each(table)
            named = [name for name in SHAPE.names if name in arguments[0]]
            rows = pa.Table.from_pylist(arguments, schema=pa.schema([SHAPE.field(name) for name in named]))
            return table.upsert(rows, on=["id"], engine=engine).snapshot
        case "append":
            return table.append(pa.Table.from_pylist(arguments, schema=SHAPE), engine=engine)
        case _:
            return table.compact(engine=engine).snapshot


def _keep_one_of_each(table: Table) -> None:
    """Remove rows whose key is not theirs alone: which of them an upsert keeps values of is refused."""
    ids = table.scan(select=["id"]).to_arrow().read_all().column("id").to_pylist()
    twice = {i for i in ids if ids.count(i) > 1}
    if twice:
        table.delete(f"id in ({', '.join(map(str, sorted(twice)))})", engine="local")


def _rows(table: Table) -> list[tuple[Any, ...]]:
    found = table.scan(select=SHAPE.names).to_arrow().read_all().to_pylist()
    return sorted(tuple(map(repr, row.values())) for row in found)


def _counts(made: Snapshot | None, verb: str) -> Mapping[str, str]:
    """Return what summaries must agree in: how rows lie in files may differ, and with it what is rewritten."""
    counted = ("operation", "added-records") if verb == "append" else ("operation",)
    return {} if made is None else {key: made.summary[key] for key in counted}
