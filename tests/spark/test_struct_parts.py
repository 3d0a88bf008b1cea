"""A part of a struct that is asked for alone has the values that it has in the whole.

Spark's reader is then asked for that part only, forgets field ids, and looks for names.
"""

import pyarrow as pa
import pytest

from icefield.lake import Lake

pytestmark = pytest.mark.spark

# Floats keep their column from having a name of the file; the others have one.
SHAPE = (
    "id long, whole struct<x: int, t: string>, a struct<x: int, y: float>, "
    "n struct<i: struct<x: int, f: double>, t: string>, "
    "l list<struct<x: int, y: float>>, m map<string, struct<x: int, y: float>>"
)
PAIR = pa.struct([("x", pa.int32()), ("y", pa.float32())])
INNER = pa.struct([("i", pa.struct([("x", pa.int32()), ("f", pa.float64())])), ("t", pa.string())])
COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("whole", pa.struct([("x", pa.int32()), ("t", pa.string())])),
        ("a", PAIR),
        ("n", INNER),
        ("l", pa.list_(PAIR)),
        ("m", pa.map_(pa.string(), PAIR)),
    ]
)
ONE = {
    "id": 1,
    "whole": {"x": 1, "t": "one"},
    "a": {"x": 1, "y": 1.5},
    "n": {"i": {"x": 1, "f": -0.0}, "t": "one"},
    "l": [{"x": 1, "y": 0.5}, {"x": 7, "y": None}],
    "m": [("k", {"x": 1, "y": 2.0})],
}
TWO = {"id": 2, "whole": {"x": 2, "t": None}, "a": {"x": 2, "y": None}, "n": {"i": None, "t": "two"}, "l": [], "m": []}
EXPECTED = {
    "whole.x": [1, 2, None],
    "a.x": [1, 2, None],
    "n.i.x": [1, None, None],
    "n.t": ["one", "two", None],
    "l.x": [[1, 7], [], None],
    "get(l, 0).x": [1, None, None],
    "m['k'].x": [1, None, None],
    "transform(map_values(m), v -> v.x)": [[1], [], None],
}
MATCHING = {
    "whole.x = 1": [1],
    "a.x = 1": [1],
    "a.x IS NULL": [3],
    "n.i.x = 1": [1],
    "n.i.f = 0": [1],
    "n.t = 'two'": [2],
    "exists(l, e -> e.x = 7)": [1],
    "m['k'].x = 1": [1],
}


@pytest.mark.parametrize("evolved", [False, True])
def test_parts_of_structs_alone(lake: Lake, evolved: bool) -> None:
    table = lake.create_table("a.t", SHAPE)
    table.append(pa.Table.from_pylist([ONE, TWO, {"id": 3}], schema=COLUMNS))
    if evolved:
        with table.evolve() as change:
            change.update_column_type("a.y", "double")
            change.add_column("whole.new", "int")
            change.rename_column("n.i.f", "g")
    frame = table.scan().to_spark()
    for text, values in EXPECTED.items():
        assert [row[1] for row in frame.selectExpr("id", text).orderBy("id").collect()] == values, text
        # Alone, so that nothing else of the row is read.
        alone = [row[0] for row in frame.selectExpr(text).collect()]
        assert sorted(map(repr, alone)) == sorted(map(repr, values)), text
    for text, ids in MATCHING.items():
        text = text.replace("n.i.f", "n.i.g") if evolved else text
        assert [row.id for row in frame.where(text).select("id").orderBy("id").collect()] == ids, text
    assert sorted(tuple(row) for row in frame.groupBy("a.x").count().collect() if row.x) == [(1, 1), (2, 1)]
