"""What a change or a scan costs grows with the number of columns, not with its square.

Work is counted, as calls of Python and built-in functions. A search in a list of names is one call however long the
list is, so those are looked for in the source.
"""

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pyarrow as pa
import pytest

import icefield
from icefield.lake import Lake
from icefield.table.table import Table
from icefield.types.schema import Schema

FEW, MANY = 60, 240
SOURCE = Path(icefield.__file__).parent
LISTS = ("names", "column_names")


def count_calls(work: Callable[[], object]) -> int:
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def rows(columns: int, first: int = 0) -> pa.Table:
    data = {f"c{at}": pa.array(range(4), pa.int64()) for at in range(columns)}
    return pa.table({"id": pa.array(range(first, first + 4), pa.int64())} | data)


def make(lake: Lake, columns: int) -> Table:
    table = lake.create_table(f"t.t{columns}", rows(columns).schema, properties={"write.delete.mode": "merge-on-read"})
    table.append(rows(columns))
    table.append(rows(columns, 4))
    return table


WORKS: dict[str, Callable[[Lake, Table, int], object]] = {
    "create": lambda lake, table, n: lake.create_table(f"t.new{n}", rows(n).schema),
    "append": lambda lake, table, n: table.append(rows(n, 8)),
    "scan": lambda lake, table, n: table.scan().to_arrow().read_all(),
    "scan with a filter": lambda lake, table, n: table.scan(f"c{n - 1} = 2", ["id"]).to_arrow().read_all(),
    "explain": lambda lake, table, n: str(table.scan(f"c{n - 1} = 2").explain()),
    "delete": lambda lake, table, n: table.delete("id = 3"),
    "upsert": lambda lake, table, n: table.upsert(rows(n).slice(1, 1), on=["id"]),
    "upsert of one column": lambda lake, table, n: table.upsert(rows(1).slice(1, 1), on=["id"]),
    "overwrite": lambda lake, table, n: table.overwrite(rows(n).slice(2, 1), where="id = 2"),
    "compact": lambda lake, table, n: table.compact(),
    "inspect": lambda lake, table, n: table.inspect("files").to_arrow().read_all(),
    "replace": lambda lake, table, n: table.replace(rows(n).schema),
}


@pytest.mark.parametrize("name", WORKS)
def test_work_grows_with_the_columns_and_no_faster(memory_lake: Lake, name: str) -> None:
    work = WORKS[name]
    few, many = make(memory_lake, FEW), make(memory_lake, MANY)
    small = count_calls(lambda: work(memory_lake, few, FEW))
    large = count_calls(lambda: work(memory_lake, many, MANY))
    assert large <= small * MANY / FEW * 1.1


@pytest.mark.slow
def test_no_list_of_names_is_searched_for_each_column() -> None:
    """Manifests have few columns, so rooms that know only them are left out."""
    found = [
        place
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] not in ("codec", "cache", "plan", "inspect", "explain")
        for place in _searches(path)
    ]
    assert not found


def _searches(path: Path) -> Iterator[str]:
    """Yield the places where a comprehension or loop looks for a name in a list of names."""
    tree = ast.parse(path.read_text())
    loops = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.For, ast.While)
    for loop in (node for node in ast.walk(tree) if isinstance(node, loops)):
        for node in ast.walk(loop):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
                lists = [each for each in node.comparators if isinstance(each, ast.Attribute) and each.attr in LISTS]
                yield from (f"{path.name}:{each.lineno}" for each in lists)


def test_schemas_that_are_derived_are_not_checked_again_for_each_file(
    memory_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = memory_lake.create_table("a.t", "id long, n long")
    checked: list[Schema] = []
    check = Schema.__post_init__

    def noted(schema: Schema) -> None:
        checked.append(schema)
        check(schema)

    monkeypatch.setattr(Schema, "__post_init__", noted)
    counts: list[int] = []
    for _ in range(3):
        table.append(pa.table({"id": [1, 2], "n": [3, 4]}))
        checked.clear()
        assert table.scan("id > 1", ["n"]).to_arrow().read_all().num_rows == len(counts) + 1
        counts.append(len(checked))
    assert counts[-1] <= counts[0] <= 3, "as many for three files as for one"
