"""A column `a.b` and the field b of a struct a: new tables of that kind are refused, and rows of old ones are right."""

import pyarrow as pa
import pytest

from icefield.errors import InvalidInput
from icefield.lake import Lake
from icefield.table.table import Table
from icefield.types.datatypes import ListType, LongType, NestedField, StructType
from icefield.types.schema import Schema

STRUCT = NestedField(2, "a", StructType((NestedField(3, "b", LongType()),)))
ROWS = pa.table({"a.b": pa.array([1, 2, 3], pa.int64()), "a": [{"b": 30}, {"b": 20}, {"b": 10}]})


@pytest.fixture
def table(memory_lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Table:
    """A table that was made before such names were refused."""
    with monkeypatch.context() as earlier:
        earlier.setattr("icefield.commit.actions.create.check_dotted_names", lambda _schema: None)
        made = memory_lake.create_table("t.t", Schema((NestedField(1, "a.b", LongType()), STRUCT)))
    made.append(ROWS)
    return made


@pytest.mark.parametrize(
    "fields",
    [
        (NestedField(1, "a.b", LongType()), STRUCT),
        (STRUCT, NestedField(1, "a.b", LongType())),
        (NestedField(1, "l.element", LongType()), NestedField(2, "l", ListType(3, LongType()))),
    ],
)
def test_two_fields_of_one_dotted_name_are_refused(memory_lake: Lake, fields: tuple[NestedField, ...]) -> None:
    with pytest.raises(InvalidInput, match="two columns share the name"):
        memory_lake.create_table("t.t", Schema(fields))


def test_a_column_that_would_share_a_dotted_name_is_not_added(memory_lake: Lake) -> None:
    table = memory_lake.create_table("t.t", Schema((STRUCT, NestedField(4, "c", LongType()))))
    with pytest.raises(InvalidInput, match="two columns share the name"), table.evolve() as change:
        change.rename_column("c", "a.b")
    assert table.schema.column_names == ["a", "c"]


def test_all_columns_are_read(table: Table) -> None:
    assert table.scan().to_arrow().read_all().to_pylist() == ROWS.to_pylist()


def test_each_of_the_columns_is_selected_by_its_own_name(table: Table) -> None:
    assert table.scan(select=["`a.b`"]).to_arrow().read_all().to_pylist() == [{"a.b": n} for n in (1, 2, 3)]
    assert table.scan(select=["`a`.`b`"]).to_arrow().read_all().to_pylist() == [{"a": {"b": n}} for n in (30, 20, 10)]
    assert (table.scan().max("`a.b`").as_py(), table.scan().max("`a`.`b`").as_py()) == (3, 30)


@pytest.mark.parametrize(("where", "left"), [("`a.b` = 1", [2, 3]), ("a.b = 10", [1, 2]), ("a.b = 1", [1, 2, 3])])
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_filters_mean_the_column_that_they_name(table: Table, where: str, left: list[int], mode: str) -> None:
    table.set_properties({"write.delete.mode": mode})
    assert table.scan(where=where).count() == 3 - len(left)
    table.delete(where)
    assert table.scan().to_arrow().read_all()["a.b"].to_pylist() == left
