"""Under serializable isolation a transaction lands only if it would read the same rows at that moment."""

import datetime
from collections.abc import Callable

import pyarrow as pa
import pytest
from tests.effort import DEEP

import icefield
from icefield.commit.validate import transaction_reads as reads
from icefield.commit.validate.transaction_reads import Reads
from icefield.errors import ConcurrentChange
from icefield.lake import Lake
from icefield.table.table import Table

NAME = "t.t"
LATER = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)
Verb = Callable[[Table], object]
MODES = [(2, "copy-on-write"), (2, "merge-on-read"), (3, "merge-on-read")]


def rows(*pairs: tuple[int, int]) -> pa.Table:
    return pa.table({name: pa.array([pair[at] for pair in pairs], pa.int64()) for at, name in enumerate(("id", "n"))})


def contents(table: Table) -> list[tuple[int, int]]:
    read = table.scan().to_arrow().read_all()
    return sorted(zip(read["id"].to_pylist(), read["n"].to_pylist(), strict=True))


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:")


@pytest.fixture(params=MODES if DEEP else MODES[:1], ids=str)
def table(request: pytest.FixtureRequest, lake: Lake) -> Table:
    return make_table(lake, *request.param)


def make_table(lake: Lake, version: int, mode: str) -> Table:
    properties = {"write.delete.mode": mode, "write.merge.mode": mode}
    made = lake.create_table(NAME, "id long, n long", properties=properties, format_version=version)
    made.append(rows((1, 10), (2, 10), (3, 10)))
    return made


READS: dict[str, Verb] = {
    "scan": lambda t: t.scan().to_arrow().read_all(),
    "count": lambda t: t.count(),
    "max": lambda t: t.scan().max("n"),
    "min": lambda t: t.scan().min("n"),
    "files": lambda t: t.scan().files(),
    "by partition": lambda t: t.scan().count_by_partition(),
    "scan of main": lambda t: t.scan(as_of="main").count(),
    "scan by time": lambda t: t.scan(as_of=LATER).count(),
    "metadata column": lambda t: t.scan("_pos >= 0").count(),
    "inspect": lambda t: t.inspect("partitions").count(),
    "refs": lambda t: t.refs(),
    "scan_appends": lambda t: t.scan_appends(None).count(),
    "changed_files": lambda t: t.changed_files(None),
    "metadata": lambda t: t.metadata.current_snapshot,
    "refresh": lambda t: t.refresh().current_snapshot,
    "metadata location": lambda t: t.metadata_location,
    "statistics": lambda t: t.statistics(),
    "expire, dry run": lambda t: t.expire_snapshots("2100-01-01", dry_run=True),
    "snapshots": lambda t: t.snapshots(),
}
CHANGES: dict[str, Callable[[Table, int], object]] = {
    "append": lambda t, key: t.append(rows((key + 10, key))),
    "upsert": lambda t, key: t.upsert(rows((key, 0)), on=["id"]),
    "delete": lambda t, key: t.delete(f"id = {key}"),
    "overwrite": lambda t, key: t.overwrite(rows((key, 0)), where=f"id = {key}"),
}


def run(lake: Lake, read: Verb, change: Verb, rival: Callable[[], object], **how: str) -> None:
    with lake.transaction(**how) as tx:
        inside = tx.table(NAME)
        read(inside)
        change(inside)
        rival()


@pytest.mark.parametrize("read", READS)
def test_every_way_to_read_counts(lake: Lake, table: Table, read: str) -> None:
    before = contents(table)
    with pytest.raises(ConcurrentChange, match="which the transaction read"):
        run(lake, READS[read], lambda t: t.append(rows((9, 9))), lambda: table.append(rows((4, 4))))
    assert contents(table) == sorted([*before, (4, 4)])


@pytest.mark.parametrize("second", CHANGES)
@pytest.mark.parametrize("first", CHANGES)
def test_of_two_that_read_all_and_change_different_rows_one_lands(
    lake: Lake, table: Table, first: str, second: str
) -> None:
    def rival() -> None:
        run(lake, READS["scan"], lambda t: CHANGES[second](t, 2), lambda: None)

    with pytest.raises(ConcurrentChange):
        run(lake, READS["scan"], lambda t: CHANGES[first](t, 1), rival)
    alone = contents(table)
    expected = icefield.connect("memory:").create_table(NAME, "id long, n long")
    expected.append(rows((1, 10), (2, 10), (3, 10)))
    CHANGES[second](expected, 2)
    assert alone == contents(expected)


@pytest.mark.parametrize("first", CHANGES)
def test_under_snapshot_isolation_both_land(lake: Lake, table: Table, first: str) -> None:
    rival = lambda: run(lake, READS["scan"], lambda t: t.append(rows((9, 9))), lambda: None)  # noqa: E731
    run(lake, READS["scan"], lambda t: CHANGES[first](t, 1), rival, isolation="snapshot")
    assert (9, 9) in contents(table)


def test_lost_updates_of_a_counter_are_refused(lake: Lake) -> None:
    table = lake.create_table(NAME, "id long, n long")
    landed = 0
    for _ in range(5):

        def next_number(t: Table) -> object:
            highest = t.scan().max("n").as_py() or 0
            return t.append(rows((0, highest + 1)))

        rival = lambda: run(lake, lambda _: None, next_number, lambda: None)  # noqa: E731
        with pytest.raises(ConcurrentChange):
            run(lake, lambda _: None, next_number, rival)
        landed += 1
    assert [n for _, n in contents(table)] == list(range(1, landed + 1))


@pytest.mark.parametrize(
    ("where", "rival", "lands"),
    [
        ("id = 1", lambda t: t.delete("id = 1"), False),
        ("id = 1", lambda t: t.delete("id = 2"), True),
        ("id = 1", lambda t: t.upsert(rows((2, 0)), on=["id"]), True),
        ("id = 1", lambda t: t.upsert(rows((1, 0)), on=["id"]), False),
        ("id = 1", lambda t: t.overwrite(rows((2, 5)), where="id = 2"), True),
        ("id = 1", lambda t: t.overwrite(rows((1, 5)), where="id = 2", check_rows=False), False),
        ("id = 1", lambda t: t.append(rows((4, 4))), True),
        ("id = 1", lambda t: t.append(rows((1, 4))), False),
        ("id = 9", lambda t: t.append(rows((1, 4), (10, 4))), True),
        ("id = 9", lambda t: t.delete("id = 1"), True),
        ("n > 10", lambda t: t.upsert(rows((1, 11)), on=["id"]), False),
        ("n > 10", lambda t: t.upsert(rows((1, 9)), on=["id"]), True),
        ("id = 1", lambda t: (t.append(rows((1, 4))), t.delete("n = 4")), True),
        ("id = 1", lambda t: t.overwrite(rows((1, 10))), True),
        (None, lambda t: (t.append(rows((4, 4))), t.rollback(t.snapshots()[0].snapshot_id)), True),
        (None, lambda t: (t.compact(), t.rewrite_manifests()), True),
        (None, lambda t: t.set_properties({"k": "v"}), True),
        (None, lambda t: t.create_tag("x"), True),
    ],
)
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_only_changes_of_rows_that_match_are_in_the_way(
    lake: Lake, mode: tuple[int, str], where: str | None, rival: Verb, lands: bool
) -> None:
    table = make_table(lake, *mode)

    def change() -> None:
        run(
            lake,
            lambda t: t.scan(where).to_arrow().read_all(),
            lambda t: t.append(rows((99, 99))),
            lambda: rival(lake.table(NAME)),
        )

    if lands:
        change()
    else:
        with pytest.raises(ConcurrentChange):
            change()
    assert ((99, 99) in contents(table)) is lands


def test_compaction_never_conflicts_with_reads_however_large_the_files_are(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads, "MAX_BYTES_TO_COMPARE", 0)
    table.append(rows((4, 4)))
    run(lake, READS["scan"], lambda t: t.append(rows((5, 5))), lambda: (table.compact(), table.rewrite_manifests()))
    assert (5, 5) in contents(table)


def test_too_many_rows_to_compare_count_as_changed(lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "MAX_BYTES_TO_COMPARE", 0)
    with pytest.raises(ConcurrentChange):
        run(lake, lambda t: t.scan("id = 1").count(), lambda t: t.append(rows((5, 5))), lambda: table.delete("id = 2"))


def test_a_version_by_its_id_is_the_same_for_ever(lake: Lake, table: Table) -> None:
    first = table.snapshots()[0].snapshot_id
    table.append(rows((4, 4)))
    run(
        lake,
        lambda t: t.scan(as_of=first).count(),
        lambda t: t.append(rows((5, 5))),
        lambda: table.append(rows((6, 6))),
    )
    assert len(contents(table)) == 6


@pytest.mark.parametrize("ref", ["main", "b"])
def test_what_is_read_of_one_branch_is_not_disturbed_by_writers_of_another(lake: Lake, table: Table, ref: str) -> None:
    table.create_branch("b")

    def change() -> None:
        run(
            lake,
            lambda t: t.at("b").scan().count(),
            lambda t: t.append(rows((5, 5))),
            lambda: table.at(ref).append(rows((6, 6))),
        )

    if ref == "main":
        change()
    else:
        with pytest.raises(ConcurrentChange):
            change()


def test_own_changes_do_not_count_as_those_of_others(lake: Lake, table: Table) -> None:
    with lake.transaction() as tx:
        inside = tx.table(NAME)
        for number in range(4, 7):
            assert inside.count() == number - 1
            inside.append(rows((number, number)))
        inside.delete("id = 4")
        assert inside.scan("id = 4").count() == 0
    assert len(contents(table)) == 5


def test_the_same_rows_in_other_files_are_the_same_whatever_their_types(lake: Lake) -> None:
    schema = "id long, s struct<a: int, b: list<string>>, m map<string, long>, f double, d decimal(9,2), b binary"
    table = lake.create_table("t.u", schema)
    values = {
        "id": [1, 2, 2],
        "s": [{"a": 1, "b": ["x", None]}, None, {"a": None, "b": []}],
        "m": [[("k", 1)], None, []],
        "f": [float("nan"), -0.0, None],
        "d": [None, None, None],
        "b": [b"\x00", None, b""],
    }
    data = pa.table(
        values,
        schema=pa.schema(
            [
                ("id", pa.int64()),
                ("s", pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])),
                ("m", pa.map_(pa.string(), pa.int64())),
                ("f", pa.float64()),
                ("d", pa.decimal128(9, 2)),
                ("b", pa.binary()),
            ]
        ),
    )
    table.append(data)
    reversed_rows = data.take(pa.array([2, 1, 0]))
    structs = pa.array([{"a": None, "b": []}, None, {"a": 1, "b": ["x", "y"]}], data["s"].type)
    changed = reversed_rows.set_column(1, "s", structs)
    for rewrite, lands in ((reversed_rows, True), (changed, False)):
        try:
            with lake.transaction() as tx:
                tx.table("t.u").count()
                tx.table("t.u").append(data)
                lake.table("t.u").overwrite(rewrite)
            assert lands
        except ConcurrentChange:
            assert not lands


def test_the_check_is_what_keeps_them_apart(lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reads, "check", lambda *_: None)
    run(lake, READS["scan"], lambda t: t.append(rows((9, 9))), lambda: table.append(rows((4, 4))))
    assert len(contents(table)) == 5


LINEAGE_READS: dict[str, Verb] = {
    "least": lambda t: t.scan().min("_last_updated_sequence_number"),
    "greatest": lambda t: t.scan().max("_row_id"),
    "filter": lambda t: t.scan("_last_updated_sequence_number <= 1").count(),
    "column": lambda t: t.scan(select=["id", "_last_updated_sequence_number"]).to_arrow().read_all(),
    "row id": lambda t: t.scan("_row_id = 0").to_arrow().read_all(),
}


@pytest.mark.parametrize("read", LINEAGE_READS)
def test_who_reads_lineage_is_disturbed_by_rows_that_were_written_again_as_they_were(lake: Lake, read: str) -> None:
    table = make_table(lake, 3, "copy-on-write")

    def run(change: Verb, verb: Verb) -> None:
        with lake.transaction() as tx:
            verb(tx.table(NAME))
            tx.table(NAME).append(rows((9, 9)))
            change(table)

    run(lambda t: t.upsert(rows((1, 10)), on=["id"]), lambda t: t.count())
    run(lambda t: t.compact(), LINEAGE_READS[read])
    again: Verb = lambda t: (t.delete("id = 1"), t.append(rows((1, 10))))  # noqa: E731
    with pytest.raises(ConcurrentChange, match="changed concurrently"):
        run(again, LINEAGE_READS[read])
