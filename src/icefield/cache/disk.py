"""A cache of decoded manifests in a directory, one file each, shared by processes.

A file is a header and sections of columns (those that all plans need, the statistics of one column, the strings) in
Arrow IPC with lz4, so that a plan reads only the columns it needs. The header identifies the manifest and
its lake, and every section has a checksum: a file that is truncated, corrupt or foreign counts as missing and is
rewritten.

Files are created atomically, by rename, and may be removed at any time; losing a race only costs time. An empty file
records that a manifest was used once. Above the size limit, the least recently used files are removed.
Disk errors are not raised: a cache that cannot be used behaves as an empty one.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import msgspec

from icefield.deferred import deferred_imports

with deferred_imports(__name__):
    import pyarrow as pa

    from icefield.cache.manifests import Key, wanted_names
    from icefield.codec.manifest.columns import ManifestColumns
    from icefield.codec.manifest.decode import STRINGS
    from icefield.codec.manifest.rows import ManifestEntries

MAX_BYTES = 4 * 1024 * 1024 * 1024
# Decoding a small manifest costs less than opening another file.
SMALLEST_MANIFEST_BYTES = 64 * 1024
MAGIC = b"icefield manifest 1\n"
SUFFIX = ".manifest"
_SIZE_BYTES = 8
_KEEP_OF_MAX = 0.9
_LOOK_EVERY = 16
# Measured on 10,000 entries: zstd takes half the bytes of lz4, and twice the time to read.


class Section(msgspec.Struct, frozen=True):
    """Some columns: their names, the range of their bytes (relative to the end of the header), and the checksum."""

    names: list[str]
    begin: int
    size: int
    checksum: int


class Head(msgspec.Struct, frozen=True):
    """The header: which manifest a file belongs to, and its sections."""

    scope: str
    location: str
    length: int
    sections: dict[str, Section]


@dataclass
class SidecarDirectory:
    """The files of one lake in a directory; scope: distinguishes lakes whose locations could be the same."""

    folder: Path
    scope: str
    max_bytes: int = MAX_BYTES
    smallest_manifest_bytes: int = SMALLEST_MANIFEST_BYTES
    _unseen_bytes: int | None = field(default=None, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def holds(self, key: Key) -> bool:
        with suppress(OSError):
            return key.length >= self.smallest_manifest_bytes and self._path(key).stat().st_size > 0
        return False

    def find(self, key: Key) -> SidecarFile | None:
        if key.length < self.smallest_manifest_bytes:
            return None
        path = self._path(key)
        head = _read_head(path)
        if head is None or (head[0].scope, head[0].location, head[0].length) != (self.scope, *key):
            return None
        with suppress(OSError):
            os.utime(path)
        return SidecarFile(path, *head)

    def note(self, key: Key) -> bool:
        if key.length < self.smallest_manifest_bytes:
            return False
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(exist_ok=False)
        except FileExistsError:
            return True
        except OSError:
            return False
        return False

    def keep(self, key: Key, columns: ManifestEntries) -> None:
        if key.length < self.smallest_manifest_bytes:
            return
        old = self.find(key)
        known = old.all_columns() if old else None
        if known is not None and known.num_rows == columns.num_rows:
            more = sorted(set(known.column_names) - set(columns.column_names))
            columns = columns.extended({name: known[name] for name in more})
        data = _encode(self.scope, key, columns.table)
        path = self._path(key)
        temporary = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(data)
            temporary.replace(path)
            self._make_room(len(data))

    def _path(self, key: Key) -> Path:
        text = f"{self.scope}\0{key.location}\0{key.length}"
        return self.folder / f"{blake2b(text.encode(), digest_size=20).hexdigest()}{SUFFIX}"

    def _make_room(self, written: int) -> None:
        """Check the whole directory from time to time, and remove the least recently used files."""
        with self._lock:
            if self._unseen_bytes is not None:
                self._unseen_bytes += written
                if self._unseen_bytes < self.max_bytes // _LOOK_EVERY:
                    return
            self._unseen_bytes = 0
        files = sorted(_files(self.folder))
        total = sum(size for _, size, _ in files)
        if total <= self.max_bytes:
            return
        for _, size, path in files:
            with suppress(OSError):
                path.unlink()
            total -= size
            if total <= self.max_bytes * _KEEP_OF_MAX:
                return


@dataclass(frozen=True)
class SidecarFile:
    """The file of one manifest."""

    path: Path
    head: Head
    begin: int

    @cached_property
    def _places(self) -> Mapping[str, Section]:
        return {name: section for section in self.head.sections.values() for name in section.names}

    def has(self, want: ManifestColumns) -> bool:
        return wanted_names(want, self._places) is not None

    def table(self, want: ManifestColumns) -> ManifestEntries | None:
        names = wanted_names(want, self._places)
        return None if names is None else self._load(names)

    def strings(self, names: tuple[str, ...]) -> ManifestEntries | None:
        return self._load(list(names))

    def all_columns(self) -> ManifestEntries | None:
        """Return every column; None if the file is damaged."""
        return self._load(list(self._places))

    def _load(self, names: list[str]) -> ManifestEntries | None:
        try:
            found: dict[str, pa.ChunkedArray] = {}
            with self.path.open("rb", buffering=0) as file:
                for section in {self._places[name].begin: self._places[name] for name in names}.values():
                    file.seek(self.begin + section.begin)
                    data = file.read(section.size)
                    if zlib.crc32(data) != section.checksum:
                        return None
                    columns = pa.ipc.open_stream(data, options=pa.ipc.IpcReadOptions(use_threads=False)).read_all()
                    found.update(zip(columns.column_names, columns.columns, strict=True))
            return ManifestEntries(pa.table({name: found[name] for name in names}))
        except (OSError, KeyError, pa.ArrowInvalid):
            return None


def _encode(scope: str, key: Key, columns: pa.Table) -> bytes:
    sections: dict[str, list[str]] = {}
    for name in columns.column_names:
        sections.setdefault(_section_of(name), []).append(name)
    described, parts, begin = {}, [], 0
    for section, names in sections.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(
            sink, columns.select(names).schema, options=pa.ipc.IpcWriteOptions(compression="lz4")
        ) as writer:
            writer.write_table(columns.select(names).combine_chunks())
        data = sink.getvalue().to_pybytes()
        described[section] = Section(names, begin, len(data), zlib.crc32(data))
        parts.append(data)
        begin += len(data)
    head = msgspec.msgpack.encode(Head(scope, *key, described))
    check = zlib.crc32(head).to_bytes(_SIZE_BYTES, "little")
    return b"".join([MAGIC, len(head).to_bytes(_SIZE_BYTES, "little"), check, head, *parts])


def _read_head(path: Path) -> tuple[Head, int] | None:
    """Read the header of a file: (header, where it ends); None if it is invalid."""
    start = len(MAGIC) + 2 * _SIZE_BYTES
    try:
        with path.open("rb", buffering=0) as file:
            first = file.read(start)
            if len(first) < start or not first.startswith(MAGIC):
                return None
            size, check = (int.from_bytes(first[at : at + _SIZE_BYTES], "little") for at in (len(MAGIC), start - 8))
            data = file.read(min(size, path.stat().st_size))
        if len(data) != size or zlib.crc32(data) != check:
            return None
        return msgspec.msgpack.decode(data, type=Head), start + size
    except (OSError, msgspec.DecodeError):
        return None


def _section_of(name: str) -> str:
    if name in STRINGS:
        return "strings"
    kind, _, field_id = name.rpartition(".")
    if kind in ("lower", "upper", "value_count", "null_count", "nan_count"):
        return f"statistics.{field_id}"
    return name if kind == "column_size" else "fields"


def _files(folder: Path) -> Iterator[tuple[int, int, Path]]:
    """Yield the files of the cache: (last use, size, path). Foreign files in the directory are left alone."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if SUFFIX in entry.name and entry.is_file(follow_symlinks=False):
                    status = entry.stat()
                    yield status.st_mtime_ns, status.st_size, Path(entry.path)
