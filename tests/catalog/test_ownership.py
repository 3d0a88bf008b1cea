"""A table has one name in a catalog, a directory has one table, and nobody removes what is not theirs."""

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.zookeeper import ZOOKEEPER

import icefield
from icefield.backend import Backend
from icefield.catalog.catalog import PointerSwap
from icefield.catalog.object_store.catalog import ObjectStoreCatalog
from icefield.commit.operations.retired_metadata import LEAST_COMMITS
from icefield.errors import AlreadyExists, IcefieldError, InvalidInput, LocationRefused
from icefield.lake import Lake
from icefield.model.names import parse_table_name
from icefield.storage.location import local_path
from icefield.storage.roots import Roots, resolve_location
from icefield.table.table import Table

SHORT_LOG = {
    "write.metadata.previous-versions-max": "1",
    "icefield.gc.grace-ms": "0",
    "icefield.gc.foreign-readers": "false",
}
LOOKS = 2 * LEAST_COMMITS  # as many commits look twice for metadata files that left the log, and delete them at once
ROWS = pa.table({"id": [1]})


@pytest.fixture(params=["memory", "sqlite", "files", "postgres", pytest.param("zookeeper", marks=ZOOKEEPER)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Lake]]:
    """Open the same lake again and again; what a test leaves open is closed."""
    connect = _connecting(request, tmp_path)
    with ExitStack() as opened:
        yield lambda: opened.enter_context(connect())


def _connecting(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Lake]:
    if request.param == "memory":
        made = icefield.connect("memory:")
        return lambda: made
    if request.param in ("postgres", "zookeeper"):
        url = request.getfixturevalue(f"{request.param}_url")
        return lambda: icefield.connect(url, warehouse=tmp_path / "lake", durable=False)
    target = f"{'files:' if request.param == 'files' else ''}{tmp_path / 'lake'}"
    return lambda: icefield.connect(target, durable=False)


@pytest.fixture
def lake_of(place: Callable[[], Lake]) -> Iterator[Lake]:
    with place() as lake:
        yield lake


def all_files(lake: Lake) -> set[str]:
    return {file.location for file in lake.store.list(lake.warehouse) if "catalog." not in file.location}


def test_a_table_cannot_be_registered_twice(lake_of: Lake) -> None:
    table = lake_of.create_table("a.t", "id long")
    old = table.metadata_location
    table.append(ROWS)
    before = all_files(lake_of)
    for location in (old, table.metadata_location):
        with pytest.raises(AlreadyExists, match=r"the same table as a\.t"):
            lake_of.register_table("b.u", location)
    assert lake_of.tables() == ["a.t"]
    assert all_files(lake_of) == before
    lake_of.drop_table("a.t")
    assert lake_of.register_table("b.u", old).count() == 0


SPELLINGS = ("{0}", "{0}/", "{0}/inner", "{0}/../t", "{0}//.", "{parent}", "{parent}/x%2F..%2Ft")
VERBS = ("create", "register", "set_location", "view", "write.data.path", "write.metadata.path")


@pytest.mark.parametrize("verb", VERBS)
def test_locations_that_overlap_are_refused(lake_of: Lake, verb: str) -> None:
    first = f"{lake_of.warehouse}/space/t"
    lake_of.create_table("a.t", "id long", location=first)
    mover = lake_of.create_table("a.mover", "id long")
    before, names = all_files(lake_of), lake_of.tables()
    for spelling in SPELLINGS:
        other = spelling.format(first, parent=f"{lake_of.warehouse}/space")
        # A memory store takes `..` for a name, and refuses it.
        with pytest.raises(InvalidInput, match=r"a\.t is at|is outside"):
            make_overlap(lake_of, mover, verb, other)
        assert (all_files(lake_of), lake_of.tables(), lake_of.views()) == (before, names, []), spelling
    assert mover.refresh() == lake_of.table("a.mover").metadata


def make_overlap(lake: Lake, mover: Table, verb: str, location: str) -> None:
    if verb == "create":
        lake.create_table("a.second", "id long", location=location)
    elif verb == "set_location":
        mover.set_location(location)
    elif verb == "register":
        outsider = icefield.connect("memory:").create_table("a.t", "id long")
        document = {**json.loads(_read(outsider)), "location": location}
        lake.store.put_new(f"{lake.warehouse}/r.metadata.json", json.dumps(document).encode())
        try:
            lake.register_table("a.second", f"{lake.warehouse}/r.metadata.json")
        finally:
            lake.store.delete(f"{lake.warehouse}/r.metadata.json")
    elif verb == "view":
        properties = {"write.metadata.path": location}
        lake.create_view("a.v", "SELECT 1 AS a", schema="a int", properties=properties)
    else:
        mover.set_properties({verb: location})


def _read(table: Table) -> bytes:
    return table._context.store.read(table.metadata_location)


def test_a_table_inside_its_own_directories_is_fine(lake_of: Lake) -> None:
    table = lake_of.create_table("a.t", "id long")
    table.set_properties({"write.metadata.path": f"{table.location}/other"})
    table.append(ROWS)
    table.set_location(f"{table.location}/inner")
    assert lake_of.table("a.t").count() == 1


def test_tables_that_overlap_already_stay_usable(lake_of: Lake) -> None:
    table = lake_of.create_table("a.t", "id long")
    for name in ("b.same", "b.again"):
        lake_of.create_namespace("b") if not lake_of.namespaces().count("b") else None
        lake_of.catalog.swap([PointerSwap(parse_table_name(name), None, table.metadata_location)])
    lake_of.table("b.same").append(ROWS)
    lake_of.table("a.t").append(ROWS)
    assert [lake_of.table(name).count() for name in lake_of.tables()] == [1, 0, 1]
    assert lake_of.create_table("c.new", "id long").count() == 0


def test_one_of_those_who_register_a_table_at_once_gets_it(place: Callable[[], Lake]) -> None:
    lake = place()
    location = lake.create_table("a.t", "id long").metadata_location
    lake.drop_table("a.t")
    start = threading.Barrier(4)
    outcomes: list[object] = []

    def register(at: int) -> None:
        other = place()
        other.namespaces()
        start.wait()
        try:
            outcomes.append(other.register_table(f"a.t{at}", location))
        except IcefieldError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=register, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done = [each for each in outcomes if isinstance(each, Table)]
    assert len(lake.tables()) == len(done) <= 1
    assert all(isinstance(each, Table | AlreadyExists) for each in outcomes), outcomes
    # Without transactions two who see each other both step back.
    assert len(done) == 1 or isinstance(lake.catalog, ObjectStoreCatalog)


def test_whoever_comes_in_between_is_seen_by_the_swap(lake_of: Lake) -> None:
    """Between the first look and the swap somebody else registers the same table."""
    location = lake_of.create_table("a.t", "id long").metadata_location
    lake_of.drop_table("a.t")
    rival = InBetween(lake_of.catalog, lambda: lake_of.register_table("a.rival", location))
    with pytest.raises(AlreadyExists, match=r"a\.rival"):
        Lake(Backend(rival, lake_of.store, lake_of.ambient), lake_of.warehouse).register_table("a.late", location)
    assert lake_of.tables() == ["a.rival"]


class InBetween:
    """A catalog where somebody else acts just before the first swap."""

    def __init__(self, real: Any, act: Callable[[], object]) -> None:
        self._real, self._act = real, act

    def swap(self, changes: Any) -> None:
        act, self._act = self._act, lambda: None
        act()
        self._real.swap(changes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def test_a_log_that_names_files_of_others_removes_none(lake_of: Lake) -> None:
    """Another table's metadata, manifests and data files, and those of a table with a copied uuid."""
    victim = lake_of.create_table("a.victim", "id long")
    victim.append(ROWS)
    table = lake_of.create_table("a.t", "id long", properties=SHORT_LOG)
    theirs = sorted(all_files(lake_of) - {table.metadata_location})
    copied = f"{table.location}/metadata/copied.metadata.json"
    lake_of.store.put_new(copied, _read(victim))
    document = json.loads(_read(table))
    named = [*theirs, copied, f"{table.location}/metadata/../../{victim.location.rsplit('/', 1)[1]}/metadata/x.json"]
    document["metadata-log"] = [{"timestamp-ms": 1, "metadata-file": each} for each in named]
    hostile = f"{table.location}/metadata/hostile.metadata.json"
    lake_of.store.put_new(hostile, json.dumps(document).encode())
    pointer = lake_of.catalog.pointer(parse_table_name("a.t"))
    lake_of.catalog.swap([PointerSwap(parse_table_name("a.t"), pointer, hostile)])
    before = all_files(lake_of)
    hurt = lake_of.table("a.t")
    for _ in range(LOOKS):
        hurt.append(ROWS)
    hurt.sweep()
    assert before <= all_files(lake_of) | {hostile}
    assert (victim.count(), hurt.count()) == (1, LOOKS)


def test_a_table_removes_what_it_wrote_itself(lake_of: Lake) -> None:
    table = lake_of.create_table("a.t", "id long", properties=SHORT_LOG)
    for _ in range(LOOKS):
        table.append(ROWS)
    left = {each for each in all_files(lake_of) if each.endswith(".metadata.json")}
    assert left == {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}


def test_a_registered_table_keeps_what_its_log_had(lake_of: Lake) -> None:
    table = lake_of.create_table("a.t", "id long", properties=SHORT_LOG)
    table.append(ROWS)
    location = table.metadata_location
    lake_of.drop_table("a.t")
    again = lake_of.register_table("b.u", location)
    before = {each for each in all_files(lake_of) if each.endswith(".metadata.json")}
    for _ in range(LOOKS):
        again.append(ROWS)
    again.sweep()
    after = {each for each in all_files(lake_of) if each.endswith(".metadata.json")}
    assert before <= after
    assert len(after) == len(before) + 2


def test_a_table_in_two_catalogs_destroys_neither(tmp_path: Path) -> None:
    lakes = [icefield.connect(f"sqlite:///{tmp_path}/{name}.db", warehouse=tmp_path / "lake") for name in "ab"]
    table = lakes[0].create_table("a.t", "id long", properties=SHORT_LOG)
    table.append(ROWS)
    other = lakes[1].register_table("a.t", table.metadata_location)
    for _ in range(LOOKS):
        other.append(ROWS)
    assert lakes[0].table("a.t").count() == 1
    for _ in range(LOOKS):
        table.append(ROWS)
    assert [lake.table("a.t").count() for lake in lakes] == [LOOKS + 1, LOOKS + 1]
    for lake in lakes:
        lake.close()


def test_a_copied_catalog_removes_nothing_of_the_first(tmp_path: Path) -> None:
    with icefield.connect(f"sqlite:///{tmp_path}/a.db", warehouse=tmp_path / "lake") as lake:
        lake.create_table("a.t", "id long", properties=SHORT_LOG).append(ROWS)
    shutil.copy(tmp_path / "a.db", tmp_path / "b.db")
    with icefield.connect(f"sqlite:///{tmp_path}/b.db", warehouse=tmp_path / "lake") as copy:
        for _ in range(LOOKS):
            copy.table("a.t").append(ROWS)
    with icefield.connect(f"sqlite:///{tmp_path}/a.db", warehouse=tmp_path / "lake") as lake:
        assert lake.table("a.t").count() == 1


def test_what_another_name_points_at_is_not_removed(tmp_path: Path) -> None:
    """Others, such as PyIceberg, write names into the database that no guard saw."""
    with icefield.connect(tmp_path / "lake") as lake:
        table = lake.create_table("a.t", "id long", properties=SHORT_LOG)
        table.append(ROWS)
        lake.catalog.swap([PointerSwap(parse_table_name("a.theirs"), None, table.metadata_location)])
        for _ in range(LOOKS):
            table.append(ROWS)
        assert [lake.table("a.theirs").count(), table.count()] == [1, LOOKS + 1]


@pytest.mark.parametrize("key", ["manifest-list", "statistics-path"])
@pytest.mark.parametrize("hostile", ["file:///etc/passwd", "/etc/passwd", "{0}/../../../etc/passwd", "s3://b/x", "x"])
def test_what_lies_outside_the_lake_is_refused_before_it_is_committed(lake: Lake, key: str, hostile: str) -> None:
    table = lake.create_table("a.t", "id long")
    table.append(ROWS)
    document = json.loads(_read(table))
    place = hostile.format(table.location)
    if key == "manifest-list":
        document["snapshots"][0][key] = place
    else:
        snapshot = document["current-snapshot-id"]
        document["statistics"] = [
            {"snapshot-id": snapshot, key: place, "file-size-in-bytes": 1, "file-footer-size-in-bytes": 1,
             "blob-metadata": []}
        ]  # fmt: skip
    location = f"{table.location}/metadata/hostile.metadata.json"
    lake.store.put_new(location, json.dumps(document).encode())
    pointer = lake.catalog.pointer(parse_table_name("a.t"))
    lake.drop_table("a.t")
    with pytest.raises(LocationRefused, match="must not be at"):
        lake.register_table("a.t", location)
    assert lake.tables() == []
    if key == "manifest-list":
        # Another client may have put it there.
        lake.catalog.swap([PointerSwap(parse_table_name("a.t"), None, location)])
        with pytest.raises(LocationRefused, match="must not be at"):
            lake.table("a.t").set_properties({"a": "b"})
        assert lake.catalog.pointer(parse_table_name("a.t")) == location != pointer


def test_links_lead_to_one_directory(tmp_path: Path) -> None:
    with icefield.connect(tmp_path / "lake") as lake:
        table = lake.create_table("a.t", "id long")
        link = tmp_path / "lake" / "link"
        link.symlink_to(local_path(table.location))
        for location in (f"file://{link}", f"file:{link}/inner", f"FILE://{link}"):
            with pytest.raises(InvalidInput, match=r"a\.t is at"):
                lake.create_table("a.u", "id long", location=location)


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        ("s3://b/lake/t", "s3a://b/lake/t/", True),
        ("s3n://b/lake", "S3://b/lake/t", True),
        ("s3://b/lake/t", "s3://b/lake//t", True),
        ("s3://b/lake/t", "s3://c/lake/t", False),
        ("s3://b/lake/t", "s3://b/lake/t2", False),
        ("gs://b/lake/t", "s3://b/lake/t", False),
        ("file:/x/t", "file:///x/t", True),
        ("/x/t", "file:///x/./t/", True),
        ("file:///x/a b", "file:///x/a%20b/c", True),
        ("file:///x/t", "file:///x/t%2Fu", True),
        ("file:///x/t", "file:///x/t1", False),
        ("file:///x/T", "file:///x/t", False),
        ("memory://lake/t", "memory://lake/t/u", True),
    ],
)
def test_overlap_whatever_the_spelling(one: str, other: str, overlap: bool) -> None:
    assert (Roots([one]).find_overlap(Roots([other])) is not None) is overlap
    assert (Roots([other]).find_overlap(Roots(["s3://z/z", one])) is not None) is overlap
    assert (Roots([one, "s3://z/z"]).hold(other) or Roots([other]).hold(one)) is overlap


def test_a_directory_is_not_in_one_below_it() -> None:
    assert [Roots(["s3://b/lake/t"]).hold(each) for each in ("s3a://b/lake//t/u", "s3://b/lake")] == [True, False]


def test_a_location_has_one_spelling(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    spellings = [f"file:{tmp_path}/link/x", f"{tmp_path}/real//x/", f"FILE://{tmp_path}/real/y/../x"]
    assert {resolve_location(each) for each in spellings} == {f"file://{tmp_path.resolve()}/real/x"}
