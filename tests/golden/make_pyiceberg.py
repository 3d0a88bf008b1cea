"""Make the golden tables of PyIceberg, all or those that are named, with what PyIceberg reads in them.

.venv/bin/python -m tests.golden.make_pyiceberg [name ...]   (needs to write /icefield-golden)
"""

import shutil
import sys
import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from tests.golden.keeping import keep_all
from tests.golden.pyiceberg_maker import NAMESPACE, PLAIN_LOCATIONS, Recipe, WriteContext
from tests.golden.store import ROOT

_PLAIN = pa.schema([("id", pa.int64()), ("s", pa.string())])


def main(names: list[str]) -> int:
    """Make the tables; return how many failed."""
    Path(ROOT).mkdir(exist_ok=True)
    catalog = SqlCatalog("golden", uri="sqlite:///:memory:", warehouse=f"file://{ROOT}")
    catalog.create_namespace(NAMESPACE)
    try:
        return keep_all(WriteContext(catalog, recipe) for recipe in RECIPES if not names or recipe.name in names)
    finally:
        catalog.close()
        shutil.rmtree(ROOT)


def _rows(first: int, last: int) -> pa.Table:
    ids = range(first, last)
    return pa.table({"id": list(ids), "s": [f"s{i}" for i in ids]}, _PLAIN)


def plain(t: WriteContext) -> None:
    """Two appends, and an overwrite of the rows that match a filter."""
    table = t.create(_PLAIN)
    table.append(_rows(0, 3))
    table.append(_rows(3, 6))
    table.overwrite(_rows(10, 11), overwrite_filter="id = 4")


def v1_plain(t: WriteContext) -> None:
    """Format version 1, partitioned by identity; one partition deleted."""
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "s"))
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "s", StringType()))
    table = t.create(schema, 1, spec)
    table.append(_rows(0, 3))
    table.delete("s = 's1'")


def types(t: WriteContext) -> None:
    """Every primitive type of version 2, with null, and nested ones."""
    kinds = {
        "boolean": (BooleanType(), True),
        "int": (IntegerType(), -(2**31)),
        "long": (LongType(), 2**63 - 1),
        "float": (FloatType(), 0.1),
        "double": (DoubleType(), -0.0),
        "small": (DecimalType(9, 2), Decimal("-1234567.89")),
        "middle": (DecimalType(18, 0), Decimal(-(10**17))),
        "great": (DecimalType(38, 38), Decimal("0." + "9" * 38)),
        "date": (DateType(), date(1, 1, 1)),
        "time": (TimeType(), time(23, 59, 59, 999999)),
        "timestamp": (TimestampType(), datetime(1969, 12, 31, 23, 59, 59, 999999)),
        "timestamptz": (TimestamptzType(), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
        "string": (StringType(), "zażółć \U0001f600"),
        "uuid": (UUIDType(), uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes),
        "fixed": (FixedType(3), b"\x00\xff\x80"),
        "binary": (BinaryType(), b""),
        "struct": (StructType(NestedField(50, "x", LongType())), {"x": 1}),
        "list": (ListType(51, StringType(), element_required=False), ["a", None]),
        "map": (MapType(52, StringType(), 53, IntegerType(), value_required=False), [("k", 1)]),
    }
    fields = [NestedField(at, name, kind) for at, (name, (kind, _)) in enumerate(kinds.items(), 2)]
    table = t.create(Schema(NestedField(1, "id", LongType()), *fields))
    full = {"id": 1} | {name: value for name, (_, value) in kinds.items()}
    like = schema_to_pyarrow(table.schema(), include_field_ids=False)
    table.append(pa.Table.from_pylist([full, {"id": 2}], like))


def identity_partitions(t: WriteContext) -> None:
    """Partitions by identity of five types, with names that need escaping, before 1970, null."""
    kinds = {"y": DateType(), "m": TimestampType(), "n": IntegerType(), "b": BooleanType(), "i": StringType()}
    fields = [NestedField(at, name, kind) for at, (name, kind) in enumerate(kinds.items(), 2)]
    schema = Schema(NestedField(1, "id", LongType()), *fields)
    by = (PartitionField(f.field_id, 998 + f.field_id, IdentityTransform(), f"{f.name} part") for f in fields)
    table = t.create(schema, 2, PartitionSpec(*by))
    moments = (datetime(2017, 11, 16, 22, 31, 8), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(1900, 2, 28))
    rows = [
        {"id": at, "y": moment.date(), "m": moment, "n": -at, "b": at == 1, "i": f"a b/c={at}%41"}
        for at, moment in enumerate(moments)
    ]
    like = schema_to_pyarrow(schema, include_field_ids=False)
    table.append(pa.Table.from_pylist([*rows, {"id": 9}], like))


def schema_evolution(t: WriteContext) -> None:
    """A column renamed, one dropped and added again, one widened, one moved, one added to a struct."""
    schema = Schema(
        NestedField(1, "id", IntegerType()),
        NestedField(2, "a", StringType()),
        NestedField(3, "b", StringType()),
        NestedField(4, "st", StructType(NestedField(5, "x", FloatType()))),
    )
    table = t.create(schema)
    first = [{"id": 1, "a": "a1", "b": "b1", "st": {"x": 0.5}}, {"id": 2}]
    table.append(pa.Table.from_pylist(first, schema_to_pyarrow(table.schema(), include_field_ids=False)))
    with table.update_schema() as change:
        change.rename_column("a", "aa")
        change.delete_column("b")
        change.update_column("id", LongType())
        change.update_column(("st", "x"), DoubleType())
        change.add_column(("st", "y"), StringType())
    with table.update_schema() as change:
        change.add_column("b", StringType())
        change.move_first("b")
    second = [{"b": "new", "id": 2**40, "aa": "a3", "st": {"x": 1e300, "y": "y3"}}]
    table.append(pa.Table.from_pylist(second, schema_to_pyarrow(table.schema(), include_field_ids=False)))


def partition_evolution(t: WriteContext) -> None:
    """Unpartitioned, then by identity."""
    table = t.create(_PLAIN)
    table.append(_rows(0, 3))
    with table.update_spec() as change:
        change.add_identity("s")
    table.append(_rows(3, 5))


def copied_delete(t: WriteContext) -> None:
    """A delete that copies the file without the rows; the history reads the first."""
    table = t.create(_PLAIN)
    table.append(_rows(0, 5))
    table.delete("id = 2")


def name_mapping(t: WriteContext) -> None:
    """A Parquet file without ids, added as it is; a column renamed since."""
    t.folder.mkdir(parents=True)
    pq.write_table(_rows(0, 4), t.folder / "raw.parquet")
    table = t.create(_PLAIN)
    table.add_files([f"{t.recipe.root}/{t.recipe.name}/raw.parquet"])
    with table.update_schema() as change:
        change.rename_column("s", "text")


def branch_and_tag(t: WriteContext) -> None:
    """A tag, and a branch that went its own way."""
    table = t.create(_PLAIN)
    table.append(_rows(0, 2))
    first = table.current_snapshot()
    assert first
    table.manage_snapshots().create_tag(first.snapshot_id, "first").create_branch(first.snapshot_id, "dev").commit()
    table.append(_rows(10, 11), branch="dev")
    table.append(_rows(2, 3))


def manifests_in_zstd(t: WriteContext) -> None:
    """Manifests compressed with zstd."""
    t.create(_PLAIN, write_avro_compression__codec="zstd").append(_rows(0, 3))


def manifests_uncompressed(t: WriteContext) -> None:
    """Manifests that are not compressed."""
    t.create(_PLAIN, write_avro_compression__codec="null").append(_rows(0, 3))


def object_storage(t: WriteContext) -> None:
    """Data files below hashed directories, as for object stores."""
    t.create(_PLAIN, write_object__storage_enabled="true").append(_rows(0, 3))


def upserted(t: WriteContext) -> None:
    """Identifier fields, and rows replaced by key."""
    schema = Schema(
        NestedField(1, "id", LongType(), required=True), NestedField(2, "s", StringType()), identifier_field_ids=[1]
    )
    table = t.create(schema)
    like = schema_to_pyarrow(schema, include_field_ids=False)
    table.append(_rows(0, 4).cast(like))
    table.upsert(pa.table({"id": [3, 4], "s": ["changed", "s4"]}, like))


def emptied(t: WriteContext) -> None:
    """Written, then emptied by a delete."""
    table = t.create(_PLAIN)
    table.append(_rows(0, 2))
    table.delete("id >= 0")


_BY_ROW = ("id > 1", "id <= 2", "s = 's2'")
RECIPES = (
    Recipe(plain, _BY_ROW, history=True),
    Recipe(v1_plain, _BY_ROW, root=PLAIN_LOCATIONS),
    Recipe(types, ("id = 1", "string is null", "date < '1970-01-01'")),
    Recipe(
        identity_partitions,
        ("y < '1970-01-01'", "i is null", "m >= '1969-12-31T23:00:00'", "n = -1", "i = 'a b/c=1%41'"),
    ),
    Recipe(schema_evolution, ("aa = 'a1'", "b is null", "id > 1"), history=True, root=PLAIN_LOCATIONS),
    Recipe(partition_evolution, ("s = 's1'", "s = 's4'", "id > 2")),
    Recipe(copied_delete, _BY_ROW, history=True),
    Recipe(name_mapping, ("text = 's1'", "id > 1"), root=PLAIN_LOCATIONS),
    Recipe(branch_and_tag, _BY_ROW),
    Recipe(manifests_in_zstd, _BY_ROW),
    Recipe(manifests_uncompressed, _BY_ROW),
    Recipe(object_storage, _BY_ROW),
    Recipe(upserted, ("s = 'changed'", "id > 2")),
    Recipe(emptied),
)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
