"""Keys that other writers put into schemas, specs, orders and refs survive whatever icefield does to the table."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefield.lake import Lake
from icefield.table.table import Table

MARK = "x-other"
SHAPE = "id long not null, s struct<a: int, l list<struct<b: int>>>, m map<string, struct<c: int>>, ts timestamp"


def mark_all(value: Any, path: str) -> None:
    """Give every object of a JSON value a key of its own."""
    if isinstance(value, dict):
        for key, inner in list(value.items()):
            mark_all(inner, f"{path}/{key}")
        value[MARK] = {"path": path, "exact": [1, 2.5, None, True, "\u00e9"]}
    elif isinstance(value, list):
        for inner in value:
            mark_all(inner, f"{path}/{inner.get('id', inner.get('field-id', ''))}")


def marks_of(value: Any) -> set[str]:
    if isinstance(value, dict):
        mine = {json.dumps(value[MARK], sort_keys=True)} if MARK in value else set()
        return mine.union(*(marks_of(inner) for inner in value.values()))
    return set().union(*map(marks_of, value)) if isinstance(value, list) else set()


def load_json(table: Table) -> dict[str, Any]:
    return dict(json.loads(Path(table.metadata_location.removeprefix("file://")).read_bytes()))


@pytest.fixture(params=[1, 2, 3])
def marked(lake: Lake, request: pytest.FixtureRequest) -> Table:
    """A table whose metadata another writer has put keys into, at every depth."""
    made = lake.create_table("a.t", SHAPE, partition_by=["day(ts)"], order_by=["id desc"], format_version=request.param)
    made.append(pa.table({"id": pa.array([1], pa.int64())}))
    made.create_branch("dev")
    document = load_json(made)
    for key in ("schemas", "partition-specs", "sort-orders"):
        mark_all(document[key], key)
    for name, ref in document["refs"].items():
        mark_all(ref, name)
    location = Path(made.metadata_location.removeprefix("file://"))
    location.write_text(json.dumps(document))
    return lake.table("a.t")


def test_every_key_survives_a_commit(marked: Table) -> None:
    before = load_json(marked)
    expected = marks_of(before)
    assert len(expected) == 20
    marked.append(pa.table({"id": pa.array([2], pa.int64())}))
    after = load_json(marked)
    assert marks_of(after) == expected
    assert (after["schemas"], after["sort-orders"]) == (before["schemas"], before["sort-orders"])


def test_keys_of_fields_follow_them_into_later_schemas_specs_and_orders(marked: Table) -> None:
    expected = marks_of(load_json(marked)["schemas"])
    with marked.evolve() as change:
        change.add_column("s.new", "int")
        change.add_column("m.value.new", "int")
        change.rename_column("s.l.element.b", "bb")
        change.update_column_type("s.a", "long")
        change.move_column("ts", first=True)
        change.add_partition_field("bucket(4, id)")
    after = load_json(marked)
    current = next(s for s in after["schemas"] if s["schema-id"] == after["current-schema-id"])
    assert marks_of(current) == expected
    spec = next(s for s in after["partition-specs"] if s["spec-id"] == after["default-spec-id"])
    assert MARK in spec
    assert [MARK in field for field in spec["fields"]] == [True, False]


def test_keys_of_refs_stay_when_the_ref_moves(marked: Table) -> None:
    marked.at("dev").append(pa.table({"id": pa.array([3], pa.int64())}))
    refs = load_json(marked)["refs"]
    assert all(MARK in ref for ref in refs.values())
    assert refs["dev"]["snapshot-id"] != refs["main"]["snapshot-id"]
