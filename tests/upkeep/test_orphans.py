"""Orphan files: what nothing refers to goes, however files are named; what a writer is about to commit stays."""

import datetime
import uuid
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from tests.upkeep.fixtures import AT_ONCE, FUTURE, Yard, ids, make_yard, rows

from icefield.errors import CatalogError, InvalidInput, LeaseLost
from icefield.leases.lease import MARGIN_S
from icefield.marks.files import FileKind, fold_one
from icefield.storage.store import StoredFile
from icefield.table.table import Table
from icefield.upkeep.owned import Ownership

SOME = uuid.UUID(int=0x1234 << 100)


@pytest.fixture
def yard() -> Yard:
    return make_yard()


def put(yard: Yard, location: str) -> str:
    yard.store.put_new(location, b"x" * 10)
    return location


NAMES = {
    f"data/00000-0-{SOME}-00001.parquet": FileKind.DATA,
    f"data/p=1/{SOME.hex}.orc": FileKind.DATA,
    f"data/{SOME.hex}-deletes.puffin": FileKind.DELETES,
    f"metadata/{SOME}-m0.avro": FileKind.MANIFEST,
    f"metadata/optimized-m-{SOME}.avro": FileKind.MANIFEST,
    f"metadata/snap-12-1-{SOME}.avro": FileKind.MANIFEST_LIST,
    f"metadata/00000-{SOME}.metadata.json": FileKind.METADATA,
    f"metadata/00000-{SOME}.gz.metadata.json": FileKind.METADATA,
    f"metadata/20240101-{SOME}.stats": FileKind.STATISTICS,
    f"metadata/{SOME}.puffin": FileKind.STATISTICS,
    f"metadata/partition-stats-7-{SOME}.parquet": FileKind.STATISTICS,
    "data/.icefield-12-34-0.tmp": FileKind.TEMPORARY,
    "metadata/.icefield-12-34-0.tmp": FileKind.TEMPORARY,
    # Not the table's own.
    "metadata/version-hint.text": None,
    "data/_SUCCESS": None,
    "data/notes.parquet": None,
    f"data/part-00000-{SOME}-c000.snappy.parquet": None,
    "README.md": None,
    f"metadata/gc/leases/{SOME.hex}.000001.json": None,
    f"metadata/gc/marks/orphan-{SOME.hex}.parquet": None,
    f"metadata/other/metadata/00001-{SOME}.metadata.json": None,
}


@pytest.mark.parametrize("name", NAMES)
def test_the_kind_of_a_file_is_known_by_its_name(yard: Yard, name: str) -> None:
    table = yard.table()
    owned = Ownership(table.metadata)
    assert owned.kind(f"{table.location}/{name}") == NAMES[name]
    assert owned.kind(f"{table.location}x/{name}") is None
    assert owned.kind(f"memory://lake/{name}") is None


def test_every_kind_of_orphan_is_removed_and_nothing_else(yard: Yard) -> None:
    table = yard.table()
    table.append(rows(1))
    kept = yard.files()
    wrong = {
        put(yard, f"{table.location}/{name}") for name, kind in NAMES.items() if kind is not None and "/gc/" not in name
    }
    strange = [name for name, kind in NAMES.items() if kind is None and "/gc/" not in name]
    other = {put(yard, f"{table.location}/{name}") for name in strange}
    yard.ambient.sleep(3601)  # temporary files are kept for an hour
    plan = table.remove_orphans(unsafe=True, dry_run=True)
    assert set(plan.locations) == wrong
    assert yard.files() == kept | wrong | other
    done = table.remove_orphans(unsafe=True)
    assert (done.files_marked, done.foreign >= len(other)) == (len(wrong), True)
    assert yard.files() == kept | other
    assert ids(table) == [1]


def test_every_file_that_a_writer_leaves_is_known(yard: Yard) -> None:
    """What a table of each format version writes is of a known kind: else it would never be removed."""
    for version in (1, 2, 3):
        mode = "merge-on-read" if version > 1 else "copy-on-write"
        table = yard.table(f"t.v{version}", version=version, write__delete__mode=mode)
        table.append(rows(1, 2, 3))
        table.delete("id = 2")
        table.compact()
        owned = Ownership(table.metadata)
        for file in yard.files(table.location):
            assert owned.kind(file) is not None, file


def test_young_files_stay(yard: Yard) -> None:
    table = yard.table(icefield__gc__orphan_age_ms="259200000")
    table.append(rows(1))
    orphan = put(yard, f"{table.location}/data/00000-{SOME}.parquet")
    assert table.remove_orphans().young == 1
    yard.ambient.sleep(3 * 24 * 3600 - 10)
    assert table.remove_orphans(dry_run=True).files_marked == 0
    yard.ambient.sleep(10)
    assert table.remove_orphans(dry_run=True).locations == (orphan,)
    with pytest.raises(InvalidInput, match="writers of the table rely"):
        table.remove_orphans(older_than=datetime.timedelta(days=1))
    assert table.remove_orphans(older_than=datetime.timedelta(days=4)).files_marked == 0


def test_an_age_that_no_file_reaches_keeps_them_all(yard: Yard) -> None:
    table = yard.table(icefield__gc__orphan_age_ms=str(2**63 - 1))
    table.append(rows(1, 2))
    put(yard, f"{table.location}/data/00000-{SOME}.parquet")
    yard.ambient.sleep(1000 * 24 * 3600)
    assert (table.remove_orphans(dry_run=True).young, table.remove_orphans().files_marked) == (1, 0)
    assert (table.report().young.files, table.report().orphans.files) == (1, 0)
    assert not yard.lake.upkeep().is_failed
    assert table.forget("id = 1").rows_deleted == {"main": 1}


def test_an_age_below_a_day_is_refused_unless_it_is_asked_for(yard: Yard) -> None:
    with pytest.raises(InvalidInput, match="another engine may be writing"):
        yard.table().remove_orphans()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3a://bucket/t/a", "s3://bucket/t/a"),
        ("s3n://bucket/t//a", "s3://bucket/t/a"),
        ("file:/t/a", "file:///t/a"),
        ("/t/a", "file:///t/a"),
        ("file:///t///a", "/t/a"),
        ("FILE:/t/./a", "/t/a"),
        ("gcs://bucket/a", "gs://bucket/a"),
        ("abfss://c@h/a", "wasb://c@h/a"),
    ],
)
def test_spellings_of_one_file_are_one(one: str, other: str) -> None:
    assert fold_one(one) == fold_one(other)


@pytest.mark.parametrize(("one", "other"), [("s3://b/a%2Fb", "s3://b/a/b"), ("/t/a%20b", "/t/a b"), ("/t/A", "/t/a")])
def test_other_files_are_others(one: str, other: str) -> None:
    assert fold_one(one) != fold_one(other)


def test_a_commit_during_the_listing_is_no_reason_to_refuse(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    table = yard.table()
    table.append(rows(1))
    orphan = f"{table.location}/data/00000-{SOME}.parquet"
    put(yard, orphan)
    other, real = yard.lake_again().table("t.t"), yard.store.list

    def listing(prefix: str) -> Iterator[StoredFile]:
        found = list(real(prefix))
        if prefix == table.location:
            other.append(rows(2))
        return iter(found)

    monkeypatch.setattr(yard.store, "list", listing)
    assert table.remove_orphans(unsafe=True).locations == (orphan,)
    assert ids(table) == [1, 2]


def test_a_table_whose_files_are_not_listed_is_refused(yard: Yard) -> None:
    table = yard.table()
    table.append(rows(1))
    (file,) = table.scan().files()["file_path"].to_pylist()
    yard.store.delete(file)
    put(yard, f"{table.location}/data/00000-{SOME}.parquet")
    before = yard.files()
    with pytest.raises(CatalogError, match="are not in the listing"):
        table.remove_orphans(unsafe=True)
    assert yard.files() == before


def test_a_file_that_may_be_the_tables_under_another_name_is_refused(yard: Yard) -> None:
    table, other = yard.table(), yard.table("t.other", gc__enabled="false")
    other.append(rows(1))
    (file,) = other.scan().files()["file_path"].to_pylist()
    table.add_files([file])
    put(yard, f"{table.location}/data/{file.rpartition('/')[2]}")
    with pytest.raises(CatalogError, match="has the name of a file"):
        table.remove_orphans(unsafe=True)


def test_files_added_from_outside_are_kept(yard: Yard) -> None:
    table, other = yard.table(), yard.table("t.other", gc__enabled="false")
    other.append(rows(1))
    (file,) = other.scan().files()["file_path"].to_pylist()
    table.add_files([file])
    table.delete("id = 1")
    table.expire_snapshots(FUTURE)
    table.remove_orphans(unsafe=True)
    assert ids(other) == [1]


def test_two_names_for_one_table_are_refused(yard: Yard) -> None:
    table = yard.table()
    table.append(rows(1))
    entries = yard.lake.catalog._entries  # type: ignore[attr-defined]
    (name,) = entries
    entries[type(name)(name.namespace, "again")] = entries[name]
    for verb in (lambda: table.remove_orphans(unsafe=True), lambda: expire(table)):
        with pytest.raises(CatalogError, match="not their only owner"):
            verb()


def expire(table: Table) -> None:
    table.overwrite(rows(2))
    table.expire_snapshots(FUTURE)


def between(yard: Yard, monkeypatch: pytest.MonkeyPatch, what: Callable[[], None]) -> None:
    """Do something after all files of the next commit are written, immediately before its swap."""
    catalog = yard.lake.catalog
    real, is_done = catalog.swap, list[bool]()

    def swap(changes: object) -> None:
        if not is_done:
            is_done.append(True)
            what()
        real(changes)  # type: ignore[arg-type]

    monkeypatch.setattr(catalog, "swap", swap)


VERBS: dict[str, Callable[[Table], object]] = {
    "append": lambda t: t.append(rows(9)),
    "overwrite": lambda t: t.overwrite(rows(9)),
    "delete": lambda t: t.delete("id = 1"),
    "upsert": lambda t: t.upsert(rows(1, 9), ["id"]),
    "equality upsert": lambda t: t.upsert(rows(1, 9), ["id"], mode="equality"),
    "update": lambda t: t.update({"n": "n + 1"}, "id = 1"),
    "merge": lambda t: t.merge(rows(1, 9), on=["id"]).when_matched().delete().when_not_matched().insert_all().execute(),
    "merge schema": lambda t: t.append(rows(9).append_column("more", rows(9)["n"]), merge_schema=True),
    "overwrite partitions": lambda t: t.overwrite_partitions(rows(9)),
    "roll back": lambda t: t.rollback(t.snapshots()[0].snapshot_id),
    "compact": lambda t: t.compact(),
    "rewrite_manifests": lambda t: t.rewrite_manifests(),
    "set_properties": lambda t: t.set_properties({"a": "b"}),
    "create_tag": lambda t: t.create_tag("x"),
}


@pytest.mark.every_case
@pytest.mark.parametrize("verb", VERBS)
def test_orphan_removal_before_the_swap_takes_nothing_of_a_writer(
    yard: Yard, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = yard.table(write__delete__mode="merge-on-read")
    for n in range(3):
        table.append(rows(n))
    collector = yard.lake_again().table("t.t")
    found = []
    between(yard, monkeypatch, lambda: found.append(collector.remove_orphans(unsafe=True)))
    VERBS[verb](table)
    assert found[0].files_marked == 0
    expected = ids(table)
    assert table.leases() == []
    collector.remove_orphans(unsafe=True)
    assert ids(yard.lake_again().table("t.t")) == expected
    assert collector.remove_orphans(unsafe=True, dry_run=True).files_marked == 0


def test_compaction_in_several_commits_is_protected_in_each(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    table = yard.lake.create_table(
        "t.t",
        "id long, n long",
        partition_by=["id"],
        properties={
            **AT_ONCE,
            "icefield.compaction.commit-size-bytes": "1",
            "icefield.compaction.min-input-files": "2",
        },
    )
    for n in range(3):
        for key in range(3):
            table.append(pa.table({"id": [key], "n": [n]}))
    collector, real = yard.lake_again().table("t.t"), yard.lake.catalog.swap
    rounds, is_collecting = list[object](), list[bool]()

    def swap(changes: object) -> None:
        if not is_collecting:  # not for the collector's own
            is_collecting.append(True)
            rounds.append(collector.remove_orphans(unsafe=True))
            if len(rounds) == 2:
                collector.expire_snapshots(FUTURE)
            is_collecting.clear()
        real(changes)  # type: ignore[arg-type]

    monkeypatch.setattr(yard.lake.catalog, "swap", swap)
    table.compact()
    monkeypatch.undo()
    assert len(rounds) > 2
    assert ids(yard.lake_again().table("t.t")) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert len(table.scan().files()) == 3
    assert table.leases() == []


def test_a_writer_that_was_stopped_past_its_lease_does_not_commit(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    table = yard.table(icefield__gc__lease_ttl_ms="60000")
    table.append(rows(1))
    collector = yard.lake_again().table("t.t")

    def stop() -> None:
        collector.remove_orphans(unsafe=True)
        yard.ambient.sleep(60 + MARGIN_S)
        collector.remove_orphans(unsafe=True)

    from icefield.commit.operations import tables  # noqa: PLC0415

    real, is_done = tables.write_metadata, list[bool]()

    def write_metadata(*args: object) -> str:
        if not is_done:
            is_done.append(True)
            stop()
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(tables, "write_metadata", write_metadata)
    with pytest.raises(LeaseLost, match="declared dead"):
        table.append(rows(2))
    assert ids(table) == [1]
    assert collector.remove_orphans(unsafe=True, dry_run=True).files_marked == 0


def test_a_writer_without_a_lease_that_takes_too_long_does_not_commit(yard: Yard) -> None:
    day = str(24 * 3600 * 1000)
    table = yard.table(icefield__gc__orphan_age_ms=day, icefield__gc__grace_ms=day)
    table.append(rows(1))

    def slow() -> Iterator[pa.RecordBatch]:
        yield from rows(2).to_batches()
        yard.ambient.sleep(13 * 3600)

    reader = pa.RecordBatchReader.from_batches(rows().schema, slow())
    with pytest.raises(LeaseLost, match="more than half of the age"):
        table.append(reader)
    assert ids(table) == [1]


@pytest.mark.parametrize("missing", [None, "data", "manifest", "list"])
def test_a_writer_that_crashed_before_its_swap_keeps_nobody_from_collecting(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, missing: str | None
) -> None:
    table = yard.table(icefield__gc__lease_ttl_ms="60000")
    table.overwrite(rows(0))
    table.overwrite(rows(1))
    before = yard.files()

    def crash(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(yard.lake.catalog, "swap", crash)
        with pytest.raises(KeyboardInterrupt):
            table.append(rows(2))
    left = yard.files() - before
    kinds = {"data": ".parquet", "manifest": "-m0.avro", "list": "/snap-"}
    if missing is not None:
        # It removed some of its files before it stopped.
        yard.store.delete(next(file for file in sorted(left) if kinds[missing] in file))
    yard.ambient.sleep(60 + MARGIN_S)
    for _ in range(2):
        assert table.remove_orphans(unsafe=True).swept is not None
        yard.ambient.sleep(60 + MARGIN_S)
    result = table.expire_snapshots(FUTURE)
    assert (len(result.snapshot_ids), result.unfinished) == (1, None)
    table.append(rows(3))
    for _ in range(2):
        table.remove_orphans(unsafe=True)
    assert ids(table) == [1, 3]
    assert yard.files() & left == set()


def test_a_crashed_writer_leaves_nothing_for_good(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    table = yard.table(icefield__gc__lease_ttl_ms="60000")
    table.append(rows(1))
    kept = yard.files()

    class Crash(BaseException):
        pass

    def crash(_: object) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(yard.lake.catalog, "swap", crash)
        patch.setattr(yard.store, "delete", lambda location: None)
        with pytest.raises(Crash):
            table.append(rows(2))
    assert len(table.leases()) == 1
    table.append(rows(3))
    assert table.remove_orphans(unsafe=True).files_marked == 0
    yard.ambient.sleep(60 + MARGIN_S)
    table.remove_orphans(unsafe=True)
    assert table.remove_orphans(unsafe=True).files_marked == 0
    assert table.leases() == []
    data = [file for file in yard.files() - kept if file.endswith(".parquet")]
    assert len(data) == 1
    assert ids(table) == [1, 3]


CHANGES_WITH_DELETE_FILES: dict[str, Callable[[Table], object]] = {
    "delete": lambda t: t.delete("id = 3", mode="merge-on-read"),
    "rewrite deletes": lambda t: t.rewrite_deletes(),
    "convert": lambda t: t.convert_equality_deletes(),
}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("change", CHANGES_WITH_DELETE_FILES)
def test_delete_files_of_an_open_change_stay(yard: Yard, change: str, version: int) -> None:
    """They have the lease in their names, as data files have."""
    table = yard.table(version=version)
    table.append(rows(1, 2, 3, 4))
    table.append(rows(5, 6))
    for key in (1, 2, 5):
        table.delete(f"id = {key}", mode="merge-on-read")
    table.upsert(rows(4), on=["id"], mode="equality")
    swap = yard.lake.catalog.swap

    def collect_first(changes: object) -> None:
        yard.lake.catalog.swap = swap  # type: ignore[method-assign]
        assert yard.lake.table("t.t").remove_orphans(unsafe=True).files_marked == 0
        swap(changes)  # type: ignore[arg-type]

    yard.lake.catalog.swap = collect_first  # type: ignore[method-assign]
    CHANGES_WITH_DELETE_FILES[change](table)
    assert ids(table) == ([4, 6] if change == "delete" else [3, 4, 6])
