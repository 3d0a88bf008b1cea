"""Upserts by equality deletes: which rows they replace, what they refuse, and how they meet other writers."""

import random
from collections.abc import Callable, Sequence
from typing import Any, Literal

import pyarrow as pa
import pytest
from tests.commit.racing import files_of, race, reachable
from tests.effort import DEEP

import icefield
from icefield.commit.actions.equality_upsert import EqualityUpsert
from icefield.dml import equality
from icefield.errors import ConcurrentChange, IcefieldError, InvalidInput, SchemaMismatch, Unsupported
from icefield.lake import Lake
from icefield.storage.memory import MemoryStore
from icefield.table.table import Table

Row = tuple[int, str, int]
SCHEMA = "id long, p string, n long"
EQUALITY: Literal["equality"] = "equality"
FORMAT_VERSIONS = [2, 3]


def rows(*given: Row) -> pa.Table:
    kinds = {"id": pa.int64(), "p": pa.string(), "n": pa.int64()}
    return pa.table({name: pa.array([r[at] for r in given], kind) for at, (name, kind) in enumerate(kinds.items())})


def rows_of(table: Table) -> list[Row]:
    read = table.scan().to_arrow().read_all()
    return sorted((row["id"], row["p"], row["n"]) for row in read.to_pylist())


def delete_files_of(table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.inspect("delete_files").to_arrow().read_all().to_pylist()
    return found


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:")


# By what the table is partitioned, and whether each key (id) or (id, p) determines the partition.
PARTITIONINGS: dict[str, tuple[list[str], bool, bool]] = {
    "not": ([], False, False),
    "by a key": (["bucket(3, id)"], True, True),
    "by another column": (["p"], False, True),
    "by both": (["truncate(10, id)", "p"], False, True),
    "by two transforms of a key": (["bucket(2, id)", "truncate(5, id)"], True, True),
}


@pytest.mark.parametrize("version", FORMAT_VERSIONS)
@pytest.mark.parametrize("key", [["id"], ["id", "p"]], ids=",".join)
@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_rows_with_the_key_are_replaced_in_whatever_partition(
    lake: Lake, partitioning: str, key: list[str], version: int
) -> None:
    partition_by, *is_determined = PARTITIONINGS[partitioning]
    table = lake.create_table("t.t", SCHEMA, partition_by=partition_by, format_version=version)
    table.append(rows((1, "a", 0), (2, "a", 0), (3, "b", 0), (12, "c", 0)))
    before = table.spec
    table.upsert(rows((2, "b", 7), (3, "b", 7), (4, "a", 7)), on=key, mode=EQUALITY)
    stays = [] if key == ["id"] else [(2, "a", 0)]
    assert rows_of(table) == sorted([(1, "a", 0), *stays, (12, "c", 0), (2, "b", 7), (3, "b", 7), (4, "a", 7)])
    summary = table.snapshots()[-1].summary
    assert (summary["operation"], summary["added-equality-deletes"]) == ("overwrite", "3")
    assert (table.spec, table.metadata.spec) == (before, before), "new rows are partitioned as before"
    specs = {spec.spec_id: spec for spec in table.metadata.specs}
    of_deletes = {specs[file["spec_id"]] for file in delete_files_of(table)}
    assert {not spec.fields for spec in of_deletes} == {not is_determined[len(key) - 1]}
    assert files_of(lake) >= reachable(table)


def test_the_files_of_the_target_are_not_read(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.create_table("t.t", SCHEMA, partition_by=["p"])
    table.append(rows((1, "a", 0), (2, "b", 0)))
    old = set(table.scan().files()["file_path"].to_pylist())
    read = note_reads(monkeypatch, "read", "read_range", "open_input")
    table.upsert(rows((1, "b", 7)), on=["id"], mode=EQUALITY)
    assert read, "what is read is seen"
    assert not [location for location in read if location in old or location.endswith("-m0.avro")]
    monkeypatch.undo()
    assert rows_of(table) == [(1, "b", 7), (2, "b", 0)]


def note_reads(monkeypatch: pytest.MonkeyPatch, *methods: str) -> list[str]:
    """Return a list that gets the location of every read."""
    noted: list[str] = []
    for name in methods:
        known = getattr(MemoryStore, name)

        def note(self: MemoryStore, at: str, *args: Any, _known: Any = known, **more: Any) -> Any:
            noted.append(at)
            return _known(self, at, *args, **more)

        monkeypatch.setattr(MemoryStore, name, note)
    return noted


def evolve_spec(table: Table, add: Sequence[str] = (), drop: Sequence[str] = ()) -> None:
    with table.evolve() as change:
        for name in drop:
            change.drop_partition_field(name)
        for term in add:
            change.add_partition_field(term)


STEPS: dict[str, Callable[[Table, random.Random], object]] = {
    "append": lambda table, rng: None,
    "bucket": lambda table, rng: evolve_spec(table, add=["bucket(2, id)"], drop=[f.name for f in table.spec.fields]),
    "by p": lambda table, rng: evolve_spec(table, add=["p"], drop=[f.name for f in table.spec.fields]),
    "unpartition": lambda table, rng: evolve_spec(table, drop=[f.name for f in table.spec.fields]),
    "compact": lambda table, rng: table.compact(),
    "rewrite manifests": lambda table, rng: table.rewrite_manifests(),
    "convert": lambda table, rng: table.convert_equality_deletes(),
    "convert some": lambda table, rng: table.convert_equality_deletes(f"id < {rng.randrange(20)}"),
    "upgrade": lambda table, rng: table.upgrade_format_version(3),
}


@pytest.mark.parametrize("version", FORMAT_VERSIONS)
@pytest.mark.parametrize("seed", range(40 if DEEP else 3))
def test_random_histories_have_the_rows_of_a_model(lake: Lake, seed: int, version: int) -> None:
    """Every key has one row at most in the model, by whichever verb and in whichever spec it was written."""
    rng = random.Random(seed)
    properties = {
        "write.delete.mode": rng.choice(["merge-on-read", "copy-on-write"]),
        "write.merge.mode": rng.choice(["merge-on-read", "copy-on-write"]),
        "write.delete.granularity": rng.choice(["file", "partition"]),
    }
    table = lake.create_table("t.t", SCHEMA, partition_by=["p"], properties=properties, format_version=version)
    model: dict[int, Row] = {}
    for number in range(14):
        step = rng.choice(["upsert", "equality", "equality", "delete", *STEPS])
        keys = rng.sample(range(20), rng.randrange(1, 6))
        if step == "append":
            keys = [key for key in keys if key not in model]
        new = [(key, rng.choice("abc"), number) for key in keys]
        if step in STEPS:
            STEPS[step](table, rng)
        if step == "delete":
            table.delete(f"id in ({', '.join(map(str, keys))})")
            model = {key: row for key, row in model.items() if key not in keys}
        elif step in ("upsert", "equality", "append") and new:
            if step == "append":
                table.append(rows(*new))
            else:
                table.upsert(rows(*new), on=["id"], mode=EQUALITY if step == "equality" else None)
            model |= {row[0]: row for row in new}
        assert rows_of(table) == sorted(model.values()), f"after {step}"
    assert files_of(lake) >= reachable(table)


def test_the_manifests_of_many_upserts_are_merged(lake: Lake) -> None:
    properties = {"commit.manifest.min-count-to-merge": "4"}
    table = lake.create_table("t.t", SCHEMA, partition_by=["p"], properties=properties)
    for number in range(7):
        upsert(table, (number % 3, "ab"[number % 2], number))
    assert rows_of(table) == [(0, "a", 6), (1, "a", 4), (2, "b", 5)]
    assert len(table.inspect("manifests").to_arrow().read_all()) < 8
    table.upsert(rows((0, "b", 9)), on=["id"])
    assert rows_of(table) == [(0, "b", 9), (1, "a", 4), (2, "b", 5)]


def test_a_key_is_known_by_its_id_whatever_its_name(lake: Lake) -> None:
    table = lake.create_table("t.t", SCHEMA)
    table.append(rows((1, "a", 0), (2, "a", 0)))
    table.upsert(rows((1, "a", 7)), on=["id"], mode=EQUALITY)
    with table.evolve() as change:
        change.rename_column("id", "key")
        change.add_column("id", "long")
    assert sorted(r["key"] for r in table.scan().to_arrow().read_all().to_pylist()) == [1, 2]
    table.upsert(pa.table({"key": [2], "p": ["a"], "n": [8], "id": [1]}), on=["key"], mode=EQUALITY)
    found = table.scan(select=["key", "n"]).to_arrow().read_all().sort_by("key").to_pylist()
    assert found == [{"key": 1, "n": 7}, {"key": 2, "n": 8}]
    with table.evolve() as change:
        change.drop_column("key")
    assert sorted(r["n"] for r in table.scan(select=["n"]).to_arrow().read_all().to_pylist()) == [7, 8]


def test_the_second_row_has_a_row_id_of_its_own(lake: Lake) -> None:
    table = lake.create_table("t.t", SCHEMA, format_version=3)
    table.append(rows((1, "a", 0)))
    (before,) = table.scan(select=["_row_id"]).to_arrow().read_all().to_pylist()
    table.upsert(rows((1, "a", 7)), on=["id"], mode=EQUALITY)
    (after,) = table.scan(select=["_row_id", "_last_updated_sequence_number"]).to_arrow().read_all().to_pylist()
    assert after["_row_id"] > before["_row_id"]
    assert after["_last_updated_sequence_number"] == 2


REFUSED: dict[str, tuple[pa.Table, object, type[IcefieldError], str]] = {
    "no key": (rows((1, "a", 1)), None, InvalidInput, "needs key columns"),
    "no such key": (rows((1, "a", 1)), ["x"], InvalidInput, "'x' cannot be a key column"),
    "a float": (rows((1, "a", 1)).append_column("f", pa.array([1.0])), ["f"], InvalidInput, "'f' cannot be a key"),
    "a key twice": (rows((1, "a", 1), (1, "b", 2)), ["id"], InvalidInput, r"two rows to upsert have the key"),
    "a null key": (pa.table({"id": pa.nulls(1, pa.int64()), "p": ["a"], "n": [1]}), ["id"], InvalidInput, "no value"),
    "a missing column": (rows((1, "a", 1)).drop_columns(["n"]), ["id"], InvalidInput, "they lack 'n'"),
    "another column": (rows((1, "a", 1)).append_column("y", pa.array([1])), ["id"], SchemaMismatch, "'y'"),
    "another type": (pa.table({"id": ["x"], "p": ["a"], "n": [1]}), ["id"], SchemaMismatch, "'id' is string"),
}


@pytest.mark.parametrize("version", FORMAT_VERSIONS)
@pytest.mark.parametrize("why", REFUSED)
def test_bad_rows_are_refused_and_nothing_changes(lake: Lake, why: str, version: int) -> None:
    given, on, error, message = REFUSED[why]
    table = lake.create_table(
        "t.t", SCHEMA + (", f double" if why == "a float" else ""), partition_by=["p"], format_version=version
    )
    table.append(given.slice(0, 0) if why == "a float" else rows((1, "a", 0)))
    before = (files_of(lake), table.metadata_location)
    with pytest.raises(error, match=message):
        table.upsert(given, on=on, mode=EQUALITY)  # type: ignore[arg-type]
    assert (files_of(lake), table.metadata_location) == before


def test_fields_that_a_struct_lacks_are_refused_too(lake: Lake) -> None:
    table = lake.create_table("t.t", "id long, s struct<x: long, y: long>")
    with pytest.raises(InvalidInput, match="they lack 's' or some of its fields"):
        table.upsert(pa.table({"id": [1], "s": [{"x": 1}]}), on=["id"], mode=EQUALITY)


def test_an_unknown_mode_is_refused(lake: Lake) -> None:
    table = lake.create_table("t.t", SCHEMA)
    with pytest.raises(InvalidInput, match="unknown mode 'blind'"):
        table.upsert(rows((1, "a", 0)), on=["id"], mode="blind")


def test_version_1_has_no_equality_deletes(lake: Lake) -> None:
    table = lake.create_table("t.t", SCHEMA, format_version=1)
    before = files_of(lake)
    with pytest.raises(Unsupported, match="format version 1 does not support equality deletes"):
        table.upsert(rows((1, "a", 0)), on=["id"], mode=EQUALITY)
    assert files_of(lake) == before


def test_no_rows_make_no_snapshot_and_no_spec(lake: Lake) -> None:
    table = lake.create_table("t.t", SCHEMA, partition_by=["p"])
    before = (files_of(lake), table.metadata_location)
    table.upsert(rows(), on=["id"], mode=EQUALITY)
    assert (files_of(lake), table.metadata_location) == before


def test_a_stream_of_batches_is_read_once(lake: Lake) -> None:
    table = lake.create_table("t.t", SCHEMA)
    batches = [rows((key, "a", 0)).to_batches()[0] for key in range(5)]
    table.upsert(pa.RecordBatchReader.from_batches(batches[0].schema, iter(batches)), on=["id"], mode=EQUALITY)
    assert len(rows_of(table)) == 5
    again = pa.RecordBatchReader.from_batches(batches[0].schema, iter([batches[3], batches[3]]))
    with pytest.raises(InvalidInput, match=r"two rows to upsert have the key \{'id': 3\}"):
        table.upsert(again, on=["id"], mode=EQUALITY)


def test_a_stream_is_read_again_after_a_conflict(lake: Lake) -> None:
    table = lake.create_table("t.t", SCHEMA, partition_by=["bucket(2, id)"])
    new = rows((1, "a", 7))

    def other() -> None:
        STEPS["by p"](lake.table("t.t"), random.Random(0))
        lake.table("t.t").append(rows((1, "b", 0)))

    race(
        lake,
        other,
        lambda: table.upsert(new.to_reader(), on=["id"], mode=EQUALITY, retry_conflicts=1),
    )
    assert rows_of(table) == [(1, "a", 7)]


def test_columns_that_only_the_rows_have_are_added_in_the_same_commit(lake: Lake) -> None:
    table = lake.create_table("t.t", SCHEMA, partition_by=["p"])
    table.append(rows((1, "a", 0), (2, "a", 0)))
    new = rows((2, "b", 7)).append_column("more", pa.array(["x"]))
    with pytest.raises(SchemaMismatch, match="'more'"):
        table.upsert(new, on=["id"], mode=EQUALITY)
    table.upsert(new, on=["id"], mode=EQUALITY, merge_schema=True)
    found = table.scan(select=["id", "more"]).to_arrow().read_all().sort_by("id").to_pylist()
    assert found == [{"id": 1, "more": None}, {"id": 2, "more": "x"}]
    assert len(table.snapshots()) == 2


def test_the_rows_may_be_those_of_another_table(lake: Lake) -> None:
    table, source = (lake.create_table(name, SCHEMA) for name in ("t.t", "t.s"))
    table.append(rows((1, "a", 0), (2, "a", 0)))
    source.append(rows((2, "b", 7), (3, "b", 7), (4, "c", 7)))
    table.upsert(source, on=["id"], mode=EQUALITY)
    table.upsert(source.scan(where="id = 4"), on=["id"], mode=EQUALITY)
    assert rows_of(table) == [(1, "a", 0), (2, "b", 7), (3, "b", 7), (4, "c", 7)]


def test_a_key_of_the_same_run_is_written_once(lake: Lake) -> None:
    table = lake.create_table("t.t", SCHEMA)
    for _ in range(2):
        table.upsert(rows((1, "a", 0)), on=["id"], mode=EQUALITY, idempotency_key="x")
    assert len(table.snapshots()) == 1


def test_a_transaction_with_two_of_them_keeps_the_later_row(lake: Lake) -> None:
    lake.create_table("t.t", SCHEMA, partition_by=["p"]).append(rows((1, "a", 0)))
    with lake.transaction() as tx:
        tx.table("t.t").upsert(rows((1, "b", 7)), on=["id"], mode=EQUALITY)
        tx.table("t.t").upsert(rows((1, "c", 8)), on=["id"], mode=EQUALITY)
        assert rows_of(tx.table("t.t")) == [(1, "c", 8)]
    assert rows_of(lake.table("t.t")) == [(1, "c", 8)]


def upsert(table: Table, *given: Row) -> None:
    table.upsert(rows(*given), on=["id"], mode=EQUALITY)


@pytest.mark.parametrize("partition_by", [[], ["p"], ["bucket(2, id)"]], ids=str)
def test_of_two_racing_upserts_of_a_key_one_row_stays(lake: Lake, partition_by: list[str]) -> None:
    table = lake.create_table("t.t", SCHEMA, partition_by=partition_by)
    table.append(rows((1, "a", 0)))
    race(lake, lambda: upsert(lake.table("t.t"), (1, "b", 7), (2, "b", 7)), lambda: upsert(table, (1, "c", 8)))
    # The order of commits decides: the upsert that waited has the higher sequence number.
    assert rows_of(table) in ([(1, "b", 7), (2, "b", 7)], [(1, "c", 8), (2, "b", 7)])
    assert files_of(lake) >= reachable(table)


@pytest.mark.parametrize("spec", ["by p", "unpartition"])
def test_a_file_of_a_spec_that_the_deletes_do_not_reach_is_a_conflict(lake: Lake, spec: str) -> None:
    table = lake.create_table("t.t", SCHEMA, partition_by=["bucket(2, id)"])
    table.append(rows((1, "a", 0)))

    def other() -> None:
        STEPS[spec](lake.table("t.t"), random.Random(0))
        lake.table("t.t").append(rows((2, "b", 0)))

    with pytest.raises(ConcurrentChange, match="data files of partition spec 1 were concurrently added"):
        race(lake, other, lambda: upsert(table, (2, "c", 7)))
    assert rows_of(table) == [(1, "a", 0), (2, "b", 0)]
    upsert(table, (2, "c", 7))
    assert rows_of(table) == [(1, "a", 0), (2, "c", 7)]


def test_a_spec_that_is_only_added_does_not_conflict(lake: Lake) -> None:
    table = lake.create_table("t.t", SCHEMA, partition_by=["bucket(2, id)"])
    table.append(rows((1, "a", 0)))
    race(lake, lambda: STEPS["by p"](lake.table("t.t"), random.Random(0)), lambda: upsert(table, (1, "c", 7)))
    assert rows_of(table) == [(1, "c", 7)]


def test_an_unpartitioned_spec_that_gets_another_id_is_a_conflict(lake: Lake) -> None:
    table = lake.create_table("t.t", SCHEMA, partition_by=["p"])
    table.append(rows((1, "a", 0)))
    with pytest.raises(ConcurrentChange, match="partition spec 1 was concurrently changed"):
        race(lake, lambda: STEPS["bucket"](lake.table("t.t"), random.Random(0)), lambda: upsert(table, (1, "c", 7)))
    upsert(table, (1, "c", 7))
    assert rows_of(table) == [(1, "c", 7)]
    assert files_of(lake) >= reachable(table)


def test_what_the_checks_of_specs_prevent(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without them a row with the key stays: the test above would find it."""
    monkeypatch.setattr(EqualityUpsert, "_check_specs", lambda *_: None)
    table = lake.create_table("t.t", SCHEMA, partition_by=["bucket(2, id)"])

    def other() -> None:
        STEPS["by p"](lake.table("t.t"), random.Random(0))
        lake.table("t.t").append(rows((2, "b", 0)))

    race(lake, other, lambda: upsert(table, (2, "c", 7)))
    assert rows_of(table) == [(2, "b", 0), (2, "c", 7)]


def test_what_the_choice_of_specs_prevents(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """With deletes of the current spec alone, rows of older specs stay."""
    monkeypatch.setattr(equality, "live_spec_ids", lambda *_: set())
    table = lake.create_table("t.t", SCHEMA)
    table.append(rows((2, "b", 0)))
    STEPS["bucket"](table, random.Random(0))
    monkeypatch.setattr(EqualityUpsert, "_check_specs", lambda *_: None)
    upsert(table, (2, "c", 7))
    assert rows_of(table) == [(2, "b", 0), (2, "c", 7)]
