"""What only the local store promises: roots, links, durability, and how it fails."""

import errno
import os
import pickle
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from icefield.errors import FileAlreadyExists, LocationRefused, MissingFile, StorageError
from icefield.storage import local
from icefield.storage.local import LocalStore, is_temporary
from icefield.storage.location import location_of_path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "secret").write_bytes(b"secret")
    return tmp_path / "root"


@pytest.fixture
def guarded(root: Path) -> LocalStore:
    return LocalStore(roots=[location_of_path(str(root))])


@pytest.mark.parametrize(
    "spelling", ["{root}/../beside/secret", "file:{root}/../beside/secret", "file:///etc/passwd", "{root}x/k"]
)
def test_no_spelling_leads_out_of_the_roots(guarded: LocalStore, root: Path, spelling: str) -> None:
    location = spelling.format(root=root)
    for call in (guarded.read, guarded.size, guarded.open_input, guarded.delete, guarded.open_new, guarded.list):
        with pytest.raises(LocationRefused, match="is outside"):
            call(location)
    with pytest.raises(LocationRefused):
        guarded.put_new(location, b"")


def test_a_link_does_not_lead_out_of_the_roots(guarded: LocalStore, root: Path) -> None:
    (root / "link").symlink_to(root.parent / "beside")
    (root / "file").symlink_to(root.parent / "beside" / "secret")
    for location in (f"{root}/link/secret", f"{root}/file", f"{root}/link/../beside/secret"):
        with pytest.raises(LocationRefused):
            guarded.read(location)
    with pytest.raises(LocationRefused):
        guarded.delete(f"{root}/file")


def test_a_root_may_itself_be_reached_through_a_link(root: Path) -> None:
    (root.parent / "alias").symlink_to(root)
    store = LocalStore(roots=[f"{root.parent}/alias"])
    store.put_new(f"{root.parent}/alias/k", b"x")
    assert store.read(f"{root}/k") == b"x"
    assert [file.location for file in store.list(f"{root.parent}/alias")] == [f"file://{root.parent}/alias/k"]


def test_a_listing_neither_follows_nor_shows_links(root: Path) -> None:
    (root / "link").symlink_to(root.parent / "beside")
    (root / "file").symlink_to(root.parent / "beside" / "secret")
    assert list(LocalStore().list(str(root))) == []


def test_it_travels_to_another_process_with_its_roots(guarded: LocalStore, root: Path) -> None:
    copy = pickle.loads(pickle.dumps(guarded))
    copy.put_new(f"{root}/k", b"x")
    assert guarded.read(f"{root}/k") == b"x"
    with pytest.raises(LocationRefused):
        copy.read("/etc/passwd")


def test_put_new_leaves_no_temporary_file(root: Path) -> None:
    LocalStore().put_new(f"{root}/k", b"x")
    with pytest.raises(FileAlreadyExists):
        LocalStore().put_new(f"{root}/k", b"y")
    assert names_in(root) == ["k"]


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP])
def test_without_hard_links_the_key_is_created_exclusively(
    root: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(os, "link", failing(number))
    store = LocalStore()
    store.put_new(f"{root}/d/k", b"x")
    with pytest.raises(FileAlreadyExists):
        store.put_new(f"{root}/d/k", b"y")
    assert store.read(f"{root}/d/k") == b"x"
    assert names_in(root / "d") == ["k"]


def test_a_failed_link_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", failing(errno.EIO))
    with pytest.raises(StorageError, match="Input/output error") as failed:
        LocalStore().put_new(f"{root}/k", b"x")
    assert not failed.value.cleanable
    assert names_in(root) == []


def test_a_link_whose_reply_was_lost_counts_as_made(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.link

    def link_twice(source: Path, target: Path) -> None:
        real(source, target)
        real(source, target)

    monkeypatch.setattr(os, "link", link_twice)
    LocalStore().put_new(f"{root}/k", b"x")
    assert (root / "k").read_bytes() == b"x"


@pytest.mark.parametrize("links", [True, False])
def test_a_full_disk_leaves_no_key(root: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if is_temporary(str(Path(f"/proc/self/fd/{descriptor}").readlink())) is links:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    if not links:
        monkeypatch.setattr(os, "link", failing(errno.EPERM))
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(StorageError, match="No space left"):
        LocalStore().put_new(f"{root}/k", b"x")
    assert names_in(root) == []


def test_a_durable_write_syncs_the_file_and_every_directory_made_for_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = record_syncs(monkeypatch)
    LocalStore().put_new(f"{root}/a/b/k", b"x")
    assert synced.pop(0) == root
    assert synced.pop(0) == root / "a"
    assert is_temporary(str(synced.pop(0)))
    assert synced == [root / "a" / "b"]
    synced.clear()
    with LocalStore().open_new(f"{root}/a/b/sink") as sink:
        sink.write(b"x")
        assert synced == []
    assert synced == [root / "a" / "b" / "sink", root / "a" / "b"]


def test_a_store_told_not_to_wait_syncs_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = record_syncs(monkeypatch)
    store = LocalStore(durable=False)
    store.put_new(f"{root}/a/b/k", b"x")
    with store.open_new(f"{root}/a/b/sink") as sink:
        sink.write(b"x")
    assert synced == []


def test_a_sink_that_cannot_be_synced_is_not_complete_and_may_be_aborted(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = LocalStore().open_new(f"{root}/k")
    sink.write(b"x")
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    with pytest.raises(StorageError, match="Input/output error"):
        sink.close()
    assert sink.closed
    sink.abort()
    assert names_in(root) == []


def test_a_directory_in_the_place_of_a_file_is_an_error_of_the_store(root: Path) -> None:
    store = LocalStore()
    for call in (store.read, store.open_input, store.delete):
        with pytest.raises(StorageError):
            call(str(root))
    (root / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="Not a directory"):
        store.put_new(f"{root}/file/below", b"")


def names_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def failing(number: int) -> object:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def record_syncs(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    real, synced = os.fsync, list[Path]()

    def fsync(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return synced


def test_other_programs_are_led_through_no_link_out_of_the_roots(root: Path) -> None:
    store = LocalStore(roots=[location_of_path(str(root))])
    (root / "link").symlink_to(root.parent / "beside")
    (root / "file").symlink_to(root.parent / "beside" / "secret")
    (root / "kept").write_bytes(b"")
    (root / "inside").symlink_to(root / "kept")
    assert len(list(store.native_uris(location_of_path(str(root / name)) for name in ("kept", "inside", "new")))) == 3
    (root.parent / "beside" / "back").symlink_to(root / "kept")
    with pytest.raises(LocationRefused):
        list(store.native_uris(location_of_path(f"{root}/link/{name}") for name in ("back", "secret")))
    for name in ("link/secret", "file", "link/../../beside/secret", "link"):
        with pytest.raises(LocationRefused):
            store.native_uri(location_of_path(f"{root}/{name}"))


@pytest.mark.parametrize(
    "read",
    [
        LocalStore.read,
        lambda store, location: store.read_range(location, 0, 1),
        lambda store, location: store.open_input(location).read(),
    ],
    ids=["read", "read_range", "open_input"],
)
def test_a_pipe_is_an_error_and_nobody_waits_for_it(read: Callable[[LocalStore, str], bytes], tmp_path: Path) -> None:
    pipe = tmp_path / "list.avro"
    os.mkfifo(pipe)

    def write() -> None:
        with suppress(OSError):
            pipe.write_bytes(b"x")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with pytest.raises(StorageError, match="not a regular file"):
            read(LocalStore(), pipe.as_uri())
    finally:
        # A reader lets the writer go on, whether the pipe was read above or not.
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        writer.join()
        os.close(reader)


def test_files_are_described_as_a_listing_shows_them(tmp_path: Path) -> None:
    store = LocalStore(roots=[location_of_path(str(tmp_path))])
    places = [f"file://{tmp_path}/{name}" for name in ("a", "d/b", "missing", "link", "d")]
    for place in places[:2]:
        store.put_new(place, b"123")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    listed = {file.location: file for file in store.list(f"file://{tmp_path}")}
    assert list(store.describe(places)) == [listed.get(place) for place in places]
    assert len(listed) == 2
    with pytest.raises(LocationRefused):
        list(store.describe(["file:///etc/hostname"]))


def test_only_files_inside_the_roots_are_opened(tmp_path: Path) -> None:
    inside, outside = tmp_path / "lake", tmp_path / "elsewhere"
    for folder in (inside / "data", outside):
        folder.mkdir(parents=True)
    (inside / "data" / "a").write_bytes(b"own")
    (outside / "b").write_bytes(b"other")
    (inside / "link").symlink_to(outside / "b")
    (inside / "folder").symlink_to(outside)
    (inside / "again").symlink_to(inside / "data")
    (tmp_path / "lake2").mkdir()
    (tmp_path / "lake2" / "c").write_bytes(b"neighbour")
    (tmp_path / "alias").symlink_to(inside)
    os.mkfifo(inside / "pipe")
    store = LocalStore(roots=[f"file://{inside}"])
    for path in ("lake/data/a", "lake/again/a", "alias/data/a", "lake/data/../data/a"):
        assert store.open_input(f"file://{tmp_path}/{path}").read() == b"own", path
    for path in ("lake/link", "lake/folder/b", "elsewhere/b", "lake2/c", "lake/../elsewhere/b", "lake/folder/none"):
        with pytest.raises(LocationRefused):
            store.open_input(f"file://{tmp_path}/{path}")
    with pytest.raises(MissingFile):
        store.open_input(f"file://{inside}/none")
    with pytest.raises(StorageError, match="pipe"):
        store.open_input(f"file://{inside}/pipe")


def test_files_are_opened_where_the_kernel_does_not_name_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_name_of_open", lambda descriptor: "")
    test_only_files_inside_the_roots_are_opened(tmp_path)


def test_directories_are_removed_only_without_files(tmp_path: Path) -> None:
    store = LocalStore()
    root = location_of_path(str(tmp_path))
    for name in ("a/b/c/1", "a/2", "d%20e/f/3"):
        store.put_new(f"{root}/{name}", b"x")
    store.delete(f"{root}/a/b/c/1")
    store.delete(f"{root}/d%20e/f/3")
    store.remove_empty_directories(root)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["2", "a"]
    store.remove_empty_directories(f"{root}/none")


def test_a_writer_creates_a_directory_that_is_removed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, root = LocalStore(durable=False), location_of_path(str(tmp_path))
    make = Path.mkdir
    removed: list[Path] = []

    def make_and_lose(path: Path) -> None:
        make(path)
        if len(removed) < 3:
            removed.append(path)
            store.remove_empty_directories(root)

    monkeypatch.setattr(Path, "mkdir", make_and_lose)
    store.put_new(f"{root}/a/b/1", b"x")
    assert (store.read(f"{root}/a/b/1"), len(removed)) == (b"x", 3)
