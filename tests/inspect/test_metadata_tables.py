"""Metadata tables: what they show, what filters on them save, and that they open every table that others wrote."""

import datetime
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.commit.faults import Around
from tests.golden.expected import Expected
from tests.golden.reading import cases, load
from tests.golden.store import GoldenStore

import icefield
from icefield.ambient import SeededAmbient
from icefield.cache.reading import ReadContext
from icefield.errors import InvalidFilter, InvalidInput, NoSuchSnapshot, Unsupported
from icefield.inspect.metadata_tables import METADATA_TABLES, OF_A_VERSION, OF_THE_TABLE, open_metadata_table
from icefield.inspect.metrics import readable_bounds
from icefield.inspect.source import Inspected
from icefield.lake import Lake
from icefield.model.partition import PartitionField, PartitionSpec
from icefield.plan.partition.struct import partition_struct
from icefield.plan.versions import resolve_version
from icefield.table.inspection import TableInspection
from icefield.table.table import Table
from icefield.types.datatypes import DateType, DecimalType, LongType, StringType, TimestampType, UnknownType, UUIDType
from icefield.types.transforms import Bucket, Identity, Void

ROWS = pa.schema([("id", pa.int64()), ("name", pa.string())])


class CountingStore(Around):
    """Counts what is read."""

    def __init__(self, real: Any) -> None:
        super().__init__(real)
        self.reads: Counter[str] = Counter()

    def read(self, location: str) -> Any:
        self.reads[location] += 1
        return self.real.read(location)

    def read_range(self, location: str, offset: int, length: int, *, of_size: int | None = None) -> Any:
        self.reads[location] += 1
        return self.real.read_range(location, offset, length, of_size=of_size)

    def open_input(self, location: str) -> Any:
        self.reads[location] += 1
        return self.real.open_input(location)


@pytest.fixture(scope="module", params=[2, 3])
def filled(request: pytest.FixtureRequest) -> Iterator[Lake]:
    """A lake that tests only read."""
    with icefield.connect("memory:", ambient=SeededAmbient(7)) as lake:
        fill(lake, request.param)
        yield lake


@pytest.fixture
def table(filled: Lake) -> Table:
    """A handle of one's own on the table that tests only read."""
    return filled.table("a.t")


@pytest.fixture
def changing(memory_lake: Lake) -> Table:
    """The same for tests that write."""
    return fill(memory_lake, 2)


def fill(lake: Lake, version: int) -> Table:
    """Make four appends of two partitions each, under two specs; delete one row by position, and one whole file."""
    made = lake.create_table(
        "a.t",
        "id long not null, name string",
        partition_by=["name"],
        format_version=version,
        properties={"write.delete.mode": "merge-on-read", "commit.manifest-merge.enabled": "false"},
    )
    made.append(rows((1, "a"), (2, "a"), (3, "b")))
    made.append(rows((4, "c"), (5, "d")))
    with made.evolve() as change:
        change.add_partition_field("truncate(10, id)")
    made.append(rows((14, "a"), (15, "b")))
    made.append(rows((24, "c"), (25, "d")))
    made.delete("id = 2")
    made.delete("id = 25")
    return made


def rows(*pairs: tuple[int, str]) -> pa.Table:
    return pa.Table.from_pylist([{"id": i, "name": n} for i, n in pairs], ROWS)


def read(table: Table, name: str, **options: Any) -> list[dict[str, Any]]:
    batches = table.inspect(name, **options).to_arrow()
    whole = batches.read_all()
    whole.validate(full=True)
    found: list[dict[str, Any]] = whole.to_pylist()
    return found


def counted(table: Table) -> CountingStore:
    """Count what the table's later reads open."""
    store = CountingStore(table._context.store)
    table._head.backend = replace(table._head.backend, store=store, cache=None)
    return store


def manifests_read(table: Table, store: CountingStore) -> Counter[str]:
    paths = {row["path"] for row in table.inspect("all_manifests").to_arrow().read_all().to_pylist()}
    return Counter({path: times for path, times in store.reads.items() if path in paths})


FILTERS: list[tuple[str, str, Callable[[dict[str, Any]], bool]]] = [
    ("files", "partition.name = 'c'", lambda r: r["partition"]["name"] == "c"),
    ("files", "partition.id_trunc = 10", lambda r: r["partition"]["id_trunc"] == 10),
    ("files", "partition.id_trunc IS NULL", lambda r: r["partition"]["id_trunc"] is None),
    ("files", "content = 1", lambda r: r["content"] == 1),
    ("files", "content IN (0, 2)", lambda r: r["content"] in (0, 2)),
    ("files", "spec_id = 1 AND record_count > 0", lambda r: r["spec_id"] == 1),
    (
        "files",
        "readable_metrics.id.lower_bound >= 14",
        lambda r: (r["readable_metrics"]["id"]["lower_bound"] or 0) >= 14,
    ),
    ("files", "file_path LIKE '%name=a%'", lambda r: "name=a" in r["file_path"]),
    ("entries", "status = 2", lambda r: r["status"] == 2),
    ("entries", "status = 0", lambda r: r["status"] == 0),
    ("entries", "data_file.partition.name = 'd'", lambda r: r["data_file"]["partition"]["name"] == "d"),
    ("entries", "data_file.content = 0 AND status != 1", lambda r: r["data_file"]["content"] == 0 and r["status"] != 1),
    ("all_files", "partition.name = 'c' OR content = 1", lambda r: r["partition"]["name"] == "c" or r["content"] == 1),
    ("partitions", "partition.name = 'a'", lambda r: r["partition"]["name"] == "a"),
    ("partitions", "spec_id = 0 AND file_count > 0", lambda r: r["spec_id"] == 0 and r["file_count"] > 0),
    ("manifests", "partition_spec_id = 1", lambda r: r["partition_spec_id"] == 1),
    ("snapshots", "operation = 'append'", lambda r: r["operation"] == "append"),
    ("position_deletes", "partition.name = 'a'", lambda r: r["partition"]["name"] == "a"),
    ("position_deletes", "partition.name = 'b'", lambda r: r["partition"]["name"] == "b"),
    ("position_deletes", "pos > 0", lambda r: r["pos"] > 0),
]


@pytest.mark.parametrize(("name", "where", "matches"), FILTERS)
def test_a_filter_lets_through_what_matches(table: Table, name: str, where: str, matches: Any) -> None:
    expected = [row for row in read(table, name) if matches(row)]
    assert read(table, name, where=where) == expected
    assert table.inspect(name, where=where).count() == len(expected)


@pytest.mark.parametrize(
    ("name", "where", "opened"),
    [
        ("files", "partition.name = 'd'", 2),
        ("files", "partition.id_trunc = 10", 1),  # files of the first spec have none
        ("files", "partition.id_trunc IS NULL", 3),
        ("files", "content = 1", 1),
        ("files", "spec_id = 1", 2),
        ("files", "spec_id = 1 AND partition.name = 'a'", 1),
        ("data_files", None, 4),
        ("delete_files", None, 1),
        ("entries", "status = 2", 1),
        ("entries", "status = 1", 5),
        ("entries", "data_file.content > 0", 1),
        ("partitions", "partition.name = 'd'", 2),
        ("manifests", None, 0),
        ("snapshots", None, 0),
    ],
)
def test_a_filter_saves_opening_manifests(table: Table, name: str, where: str | None, opened: int) -> None:
    store = counted(table)
    read(table, name, where=where)
    assert sum(manifests_read(table, store).values()) == opened


def test_all_files_reads_each_manifest_once(table: Table) -> None:
    store = counted(table)
    found = read(table, "all_files")
    times = manifests_read(table, store)
    assert set(times.values()) == {1}
    live = {row["file_path"] for row in read(table, "files")}
    gone = {row["data_file"]["file_path"] for row in read(table, "all_entries", where="status = 2")}
    assert {row["file_path"] for row in found} == live | gone
    assert gone - live


def test_all_manifests_opens_only_the_lists_of_snapshots_that_are_asked_for(table: Table) -> None:
    last = table.snapshots()[-1]
    store = counted(table)
    found = read(table, "all_manifests", where=f"reference_snapshot_id = {last.snapshot_id}")
    assert {row["path"] for row in found} == {row["path"] for row in read(table, "manifests")}
    assert set(store.reads) == {last.manifest_list}


def test_position_deletes_that_name_other_files_are_not_opened(table: Table) -> None:
    (deleted,) = read(table, "position_deletes")
    assert deleted["pos"] == 1
    assert deleted["row"] is None
    store = counted(table)
    assert read(table, "position_deletes", where="file_path = 'another'") == []
    assert store.reads[deleted["delete_file_path"]] == 0
    again = read(table, "position_deletes", where=f"file_path = '{deleted['file_path']}'")
    assert again == [deleted]
    assert store.reads[deleted["delete_file_path"]] > 0


def test_columns_are_given_in_the_order_asked_and_structs_in_part(table: Table) -> None:
    select = ["record_count", "partition.name", "readable_metrics.id.upper_bound"]
    inspection = table.inspect("files", select=select, where="content = 0 AND partition.name = 'b'")
    assert [f.name for f in inspection.schema.fields] == ["record_count", "partition", "readable_metrics"]
    assert sorted(inspection.to_arrow().read_all().to_pylist(), key=str) == [
        {"record_count": 1, "partition": {"name": "b"}, "readable_metrics": {"id": {"upper_bound": bound}}}
        for bound in (15, 3)
    ]


def test_a_version_is_looked_at_as_it_was(changing: Table) -> None:
    table = changing
    first = table.snapshots()[0]
    table.create_tag("first", at=first.snapshot_id)
    assert len(read(table, "files", as_of="first")) == 2
    assert read(table, "files", as_of=first.snapshot_id) == read(table, "files", as_of="first")
    with pytest.raises(NoSuchSnapshot):
        table.inspect("files", as_of=7)
    with pytest.raises(InvalidInput, match="does not accept as_of"):
        table.inspect("snapshots", as_of="first")


def test_a_branch_shows_its_own_files(changing: Table) -> None:
    table = changing
    table.create_branch("side")
    side = table.at("side")
    side.append(rows((7, "side")))
    assert len(read(side, "files")) == len(read(table, "files")) + 1
    assert read(side, "refs") == read(table, "refs")


def test_a_name_that_is_none_says_what_there_is(table: Table) -> None:
    with pytest.raises(InvalidInput, match="position_deletes") as raised:
        table.inspect("fils")
    assert raised.value.hint == "Did you mean 'files'?"
    with pytest.raises(InvalidFilter, match="nothing"):
        table.inspect("files", where="nothing = 1")
    with pytest.raises(InvalidInput, match="select takes a list of strings"):
        table.inspect("files", select="file_path")


def test_every_metadata_table_of_an_empty_table_is_there(memory_lake: Lake) -> None:
    made = memory_lake.create_table("a.empty", "id long, items list<struct<x: int>>", partition_by=["id"])
    assert {name: len(read(made, name)) for name in METADATA_TABLES} == {
        **dict.fromkeys(METADATA_TABLES, 0),
        "metadata_log_entries": 1,
        "schemas": 4,
    }


def test_a_table_without_partitions_is_one_partition_without_a_name(memory_lake: Lake) -> None:
    made = memory_lake.create_table("a.t", "id long")
    made.append(pa.table({"id": [1, 2]}))
    made.append(pa.table({"id": [3]}))
    assert "partition" not in [f.name for f in made.inspect("files").schema.fields]
    (whole,) = read(made, "partitions")
    assert (whole["record_count"], whole["file_count"]) == (3, 2)
    assert "spec_id" not in whole


def test_partitions_add_up_to_the_files(table: Table) -> None:
    found = read(table, "partitions")
    files = read(table, "files")
    data = [f for f in files if f["content"] == 0]
    by_partition = Counter(str(f["partition"]) for f in data)
    assert {str(p["partition"]): p["file_count"] for p in found} == dict(by_partition)
    assert sum(p["total_data_file_size_in_bytes"] for p in found) == sum(f["file_size_in_bytes"] for f in data)
    (deleted,) = [p for p in found if p["position_delete_file_count"]]
    assert (deleted["partition"]["name"], deleted["position_delete_record_count"]) == ("a", 1)
    assert deleted["last_updated_snapshot_id"] == table.snapshots()[-2].snapshot_id


def test_a_partition_s_last_update_is_not_told_when_that_snapshot_is_gone(memory_lake: Lake) -> None:
    made = memory_lake.create_table("a.t", "id long")
    first = made.append(pa.table({"id": [1]}))
    made.delete("id = 7")
    made.rewrite_manifests()
    made.append(pa.table({"id": [2]}))
    made.delete("id = 2")
    assert first is not None
    assert [p["last_updated_snapshot_id"] for p in read(made, "partitions")] == [first.snapshot_id]
    made.remove_snapshots([first.snapshot_id])
    assert [(p["file_count"], p["last_updated_snapshot_id"]) for p in read(made, "partitions")] == [(1, None)]


def test_history_tells_what_was_rolled_back(changing: Table) -> None:
    table = changing
    third = table.snapshots()[2]
    table.rollback(third.snapshot_id)
    table.append(rows((30, "e")))
    output = [(row["snapshot_id"], row["is_current_ancestor"]) for row in read(table, "history")]
    assert output[:3] == [(s.snapshot_id, True) for s in table.snapshots()[:3]]
    assert not any(current for _, current in output[3:6])
    assert [current for _, current in output[6:]] == [True, True]


def test_schemas_and_properties(changing: Table) -> None:
    table = changing
    with table.evolve() as change:
        change.add_column("inner", "struct<x: int>", doc="deep")
    output = [(r["schema_id"], r["is_current"], r["name"], r["type"]) for r in read(table, "schemas")]
    assert output[:2] == [(0, False, "id", "long"), (0, False, "name", "string")]
    assert output[-1] == (1, True, "inner.x", "int")
    assert read(table, "properties", where="key LIKE 'write.%'") == [
        {"key": "write.delete.mode", "value": "merge-on-read"}
    ]


def test_summaries_leave_the_operation_to_its_own_column(table: Table) -> None:
    for row in read(table, "snapshots"):
        assert row["operation"] in ("append", "delete", "overwrite")
        assert "operation" not in dict(row["summary"])


def test_manifests_are_read_in_steps_of_bounded_size(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read(table, "files")
    monkeypatch.setattr("icefield.plan.entries.BYTES_PER_BATCH", 1)
    batches = list(table.inspect("files").to_arrow())
    assert len(batches) == 5
    assert sorted(row["file_path"] for b in batches for row in b.to_pylist()) == sorted(r["file_path"] for r in whole)


def test_bounds_from_before_a_type_was_widened_are_readable(memory_lake: Lake) -> None:
    made = memory_lake.create_table("a.t", "n int")
    made.append(pa.table({"n": pa.array([1, 5], pa.int32())}))
    with made.evolve() as change:
        change.update_column_type("n", "long")
    made.append(pa.table({"n": [2**40]}))
    output = read(made, "files", select=["readable_metrics.n.lower_bound"])
    assert sorted(row["readable_metrics"]["n"]["lower_bound"] for row in output) == [1, 2**40]


@pytest.mark.parametrize(
    ("bounds", "kind", "values"),
    [
        ([b"\1\0\0\0\0\0\0\0", None, b"\2\0\0\0"], LongType(), [1, None, 2]),
        ([b"\1\0\0"], LongType(), [None]),
        ([b"\1\0\0\0", None], DateType(), [datetime.date(1970, 1, 2), None]),
        ([b"\1\0\0\0"], TimestampType(), [datetime.datetime(1970, 1, 2)]),
        ([b"ab", None], StringType(), ["ab", None]),
        ([b"\xff"], StringType(), [None]),
        ([b"\x01\x00", b"\xff"], DecimalType(9, 2), [256 / 100, -0.01]),
        ([b"short"], UUIDType(), [None]),
        ([b"x", None], UnknownType(), [None, None]),
        ([], LongType(), []),
    ],
)
def test_readable_bounds(bounds: list[bytes | None], kind: Any, values: list[Any]) -> None:
    found = readable_bounds(pa.array(bounds, pa.binary()), kind).to_pylist()
    assert [float(v) if isinstance(kind, DecimalType) else v for v in found] == values


def test_partition_fields_of_all_specs_stand_under_their_newest_names(table: Table) -> None:
    metadata = table.metadata
    specs = (
        PartitionSpec((PartitionField(2, 1000, "old", Identity()), PartitionField(1, 1001, "same", Bucket(4))), 0),
        PartitionSpec((PartitionField(2, 1000, "new", Void()), PartitionField(9, 1002, "gone", Identity())), 1),
        PartitionSpec((PartitionField(2, 1003, "same", Bucket(2)),), 2),
    )
    changed = type(metadata)(**{**vars(metadata), "specs": specs})
    output = [(f.field_id, f.name, str(f.type)) for f in partition_struct(changed).fields]
    assert output == [(1000, "new", "string"), (1001, "same_1001", "int"), (1003, "same", "int")]


def test_one_id_for_different_partition_fields_is_refused(table: Table) -> None:
    metadata = table.metadata
    specs = tuple(PartitionSpec((PartitionField(source, 1000, "p", Identity()),), source) for source in (1, 2))
    with pytest.raises(Unsupported, match="1000"):
        partition_struct(type(metadata)(**{**vars(metadata), "specs": specs}))


@pytest.mark.parametrize("expected", cases())
def test_what_others_wrote_can_be_looked_at(expected: Expected) -> None:
    metadata = load(expected["metadata"])
    source = Inspected(ReadContext(GoldenStore()), metadata, expected["metadata"], resolve_version(metadata, None))
    names = ("files", "partitions", "position_deletes", "manifests", "all_entries", "snapshots")
    found = {name: TableInspection(open_metadata_table(name, source)).to_arrow().read_all() for name in names}
    for whole in found.values():
        whole.validate(full=True)
    files, partitions, manifests = (found[name] for name in ("files", "partitions", "manifests"))
    data = files.filter(pc.equal(files["content"], 0))
    assert pc.sum(partitions["record_count"]).as_py() == pc.sum(data["record_count"]).as_py()
    assert (pc.sum(partitions["file_count"]).as_py() or 0) == data.num_rows
    if manifests["added_data_files_count"].null_count == 0:  # old writers did not count
        counts = ("added_data_files_count", "existing_data_files_count")
        assert sum(pc.sum(manifests[name]).as_py() or 0 for name in counts) == data.num_rows
    positions = files.filter(pc.equal(files["content"], 1))
    assert found["position_deletes"].num_rows == (pc.sum(positions["record_count"]).as_py() or 0)


def test_the_two_sorts_of_metadata_tables_are_apart() -> None:
    assert not OF_A_VERSION.keys() & OF_THE_TABLE.keys()
    assert len(METADATA_TABLES) == 18
