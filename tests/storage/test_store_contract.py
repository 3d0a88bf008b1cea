"""The contract of every store, run by each implementation. (Races: test_put_race.py.)"""

import io
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.s3_server import s3_server

from icefield.errors import FileAlreadyExists, InvalidInput, LocationRefused, MissingFile, Unsupported
from icefield.storage.local import LocalStore
from icefield.storage.location import join_location, location_of_path
from icefield.storage.memory import MemoryStore
from icefield.storage.object_store.store import ObjectStore
from icefield.storage.store import Store

ODD_NAMES = ("plain", "with blank", "100%25", "k=a%2Fb", "ü", "what?#", "a'b\"c", "d.e~f")


@dataclass(frozen=True)
class Place:
    """A store and an empty root inside it."""

    store: Store
    root: str

    def at(self, *parts: str) -> str:
        return join_location(self.root, *parts)


def local_place(path: Path) -> Place:
    return Place(LocalStore(), location_of_path(str(path)))


def guarded_place(path: Path) -> Place:
    root = location_of_path(str(path))
    return Place(LocalStore(roots=[root], durable=False), root)


def memory_place(path: Path) -> Place:
    return Place(MemoryStore(), "memory://lake/here")


def s3_place(path: Path) -> Place:
    return Place(ObjectStore(s3_server().properties), s3_server().new_root())


@pytest.fixture(params=[local_place, guarded_place, memory_place, pytest.param(s3_place, marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    make: Callable[[Path], Place] = request.param
    return make(tmp_path / "root")


@pytest.mark.parametrize("name", ODD_NAMES)
def test_what_is_put_is_read_back_under_its_raw_name(place: Place, name: str) -> None:
    location = place.at("deep", name, name)
    place.store.put_new(location, b"bytes")
    assert place.store.read(location) == b"bytes"
    assert place.store.size(location) == 5
    assert [file.location for file in place.store.list(place.root)] == [location]


def test_a_taken_key_is_refused_and_keeps_its_bytes(place: Place) -> None:
    place.store.put_new(place.at("k"), b"first")
    with pytest.raises(FileAlreadyExists) as refused:
        place.store.put_new(place.at("k"), b"second")
    with pytest.raises(FileAlreadyExists):
        place.store.open_new(place.at("k"))
    assert refused.value.cleanable
    assert place.store.read(place.at("k")) == b"first"
    assert len(list(place.store.list(place.root))) == 1


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)) * 40_000])
def test_bytes_of_any_size_come_back(place: Place, data: bytes) -> None:
    place.store.put_new(place.at("k"), data)
    assert place.store.read(place.at("k")) == data


@pytest.mark.parametrize(
    ("offset", "length", "found"),
    [(0, 4, b"0123"), (3, 2, b"34"), (8, 9, b"89"), (10, 1, b""), (99, 1, b""), (4, 0, b"")],
)
def test_a_range_is_cut_only_by_the_end_of_the_file(place: Place, offset: int, length: int, found: bytes) -> None:
    place.store.put_new(place.at("k"), b"0123456789")
    assert place.store.read_range(place.at("k"), offset, length) == found


@pytest.mark.parametrize(("offset", "length"), [(-1, 2), (0, -1)])
def test_a_negative_range_is_refused(place: Place, offset: int, length: int) -> None:
    place.store.put_new(place.at("k"), b"0123456789")
    with pytest.raises(InvalidInput):
        place.store.read_range(place.at("k"), offset, length)


def test_a_missing_file_is_named_by_every_read(place: Place) -> None:
    place.store.put_new(place.at("file"), b"")
    for location in (place.at("none"), place.at("no", "directory"), place.at("file", "below")):
        for read in (
            place.store.read,
            place.store.size,
            place.store.open_input,
            lambda missing: place.store.read_range(missing, 0, 1),
        ):
            with pytest.raises(MissingFile, match="no file at") as missing:
                read(location)
            assert missing.value.location == location


def test_deleting_twice_is_deleting_once(place: Place) -> None:
    place.store.put_new(place.at("k"), b"x")
    for location in (place.at("k"), place.at("k"), place.at("never", "there"), place.at("k", "below")):
        place.store.delete(location)
    assert list(place.store.list(place.root)) == []
    place.store.put_new(place.at("k"), b"again")


def test_a_listing_shows_everything_below_a_directory_and_nothing_beside_it(place: Place) -> None:
    for parts in (("a", "1"), ("a", "b", "2"), ("ab", "3"), ("4",)):
        place.store.put_new(place.at(*parts), b"x" * len(parts))
    found = {file.location: file.size_bytes for file in place.store.list(place.at("a"))}
    assert found == {place.at("a", "1"): 2, place.at("a", "b", "2"): 3}
    assert all(file.modified_ms > 1_700_000_000_000 for file in place.store.list(place.root))
    assert list(place.store.list(place.at("absent"))) == []


def test_a_key_being_written_belongs_to_the_sink_or_in_object_stores_to_whoever_completes_it_first(
    place: Place,
) -> None:
    sink = place.store.open_new(place.at("k"))
    sink.write(b"sink")
    if isinstance(place.store, ObjectStore):
        place.store.put_new(place.at("k"), b"mine")
        with pytest.raises(FileAlreadyExists):
            sink.close()
        sink.abort()
        assert place.store.read(place.at("k")) == b"mine"
        return
    with pytest.raises(FileAlreadyExists):
        place.store.put_new(place.at("k"), b"mine")
    sink.close()
    assert place.store.read(place.at("k")) == b"sink"


def test_a_written_sink_becomes_the_file_when_closed(place: Place) -> None:
    sink = place.store.open_new(place.at("d", "k"))
    assert sink.write(b"one") == 3
    sink.flush()
    assert (sink.tell(), sink.closed) == (3, False)
    sink.write(b"two")
    sink.close()
    sink.close()
    sink.abort()
    assert sink.closed
    assert place.store.read(place.at("d", "k")) == b"onetwo"


def test_an_aborted_sink_leaves_nothing_and_frees_its_key(place: Place) -> None:
    sink = place.store.open_new(place.at("k"))
    sink.write(b"half")
    sink.abort()
    sink.abort()
    sink.close()
    assert sink.closed
    assert list(place.store.list(place.root)) == []
    place.store.put_new(place.at("k"), b"whole")
    assert place.store.read(place.at("k")) == b"whole"


def test_a_sink_used_as_a_context_aborts_on_error(place: Place) -> None:
    with place.store.open_new(place.at("good")) as sink:
        sink.write(b"x")
    with pytest.raises(TypeError), place.store.open_new(place.at("bad")) as sink:
        sink.write("no bytes")  # type: ignore[arg-type]
    assert [file.location for file in place.store.list(place.root)] == [place.at("good")]


def test_parquet_travels_through_sink_and_input(place: Place) -> None:
    table = pa.table({"id": range(100_000), "name": [f"n{i}" for i in range(100_000)]})
    with place.store.open_new(place.at("t.parquet")) as sink, pq.ParquetWriter(sink, table.schema) as writer:
        for batch in table.to_batches(max_chunksize=30_000):
            writer.write_batch(batch)
    with place.store.open_input(place.at("t.parquet")) as file:
        assert file.seekable()
        assert file.size() == place.store.size(place.at("t.parquet"))
        assert pq.ParquetFile(file).read(columns=["id"]) == table.select(["id"])
    with place.store.open_input(place.at("t.parquet")) as file:
        assert file.read(4) == b"PAR1"
        file.seek(-4, io.SEEK_END)
        assert file.read() == b"PAR1"


def test_other_schemes_and_relative_locations_are_refused(place: Place) -> None:
    reads = (
        place.store.read,
        place.store.size,
        place.store.open_input,
        place.store.delete,
        place.store.open_new,
        place.store.list,
    )
    for call, location in itertools.product(reads, ("relative/path", "file://host/x")):
        with pytest.raises(InvalidInput):
            call(location)


def test_a_location_of_a_store_that_is_not_here_is_refused(place: Place) -> None:
    with pytest.raises((LocationRefused, Unsupported), match="scheme"):
        place.store.put_new("ftp://bucket/key", b"")


def test_native_uri_names_the_file_for_other_programs_or_says_that_none_can(place: Place) -> None:
    location = place.at("with blank", "100%25")
    place.store.put_new(location, b"x")
    if isinstance(place.store, (MemoryStore, ObjectStore)):
        with pytest.raises(Unsupported, match="no other process|Spark cannot read"):
            place.store.native_uri(location)
        return
    uri = place.store.native_uri(location)
    assert Path(unquote(uri.removeprefix("file://"))).read_bytes() == b"x"


def test_native_uri_leads_nowhere_outside_the_roots(tmp_path: Path) -> None:
    guarded = guarded_place(tmp_path / "root")
    with pytest.raises(LocationRefused):
        guarded.store.native_uri(location_of_path(str(tmp_path / "elsewhere")))
