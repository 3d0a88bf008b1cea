"""A store in an object store: S3 and compatible ones; Google Cloud Storage and Azure with the same client.

put_new is one conditional request (If-None-Match: *). Each write stores its own id as metadata of the object, so that
the request can be retried if the response is lost: if the key then exists, the id shows whether this write created it.
The content does not show that, because two writers may write the same bytes. If the response is still lost after a few
attempts, that is a StorageError, and the write may have happened.

open_new creates its key at close; see `object_store.new_file` for its guarantees.

The same store moves pointers (`object_store.conditional`), by the entity tag of the replaced object (If-Match). That
needs a server that checks conditions atomically, as S3 guarantees and as was tested for SeaweedFS.

Only S3 is tested. Keys with an empty component, `.` or `..` are valid in S3, but the client cannot express them: they
are refused. The reading client's own pauses between retries do not use the Ambient.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from itertools import groupby
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast
from urllib.parse import quote

import msgspec
import pyarrow as pa

from icefield.ambient import Ambient, SystemAmbient
from icefield.errors import (
    CommitConflict,
    CommitStateUnknown,
    FileAlreadyExists,
    InvalidInput,
    LocationRefused,
    MissingFile,
    Unsupported,
)
from icefield.secrets import without_secrets
from icefield.storage.location import Location, check_inside, parse_location
from icefield.storage.object_store.client import PREFIX_OF_SCHEME, Clients, obstore
from icefield.storage.object_store.conditional import Versioned
from icefield.storage.object_store.errors import CLIENT_ERRORS, Failure, explain, find_failure
from icefield.storage.object_store.input import RangedFile
from icefield.storage.object_store.listing import list_pages
from icefield.storage.object_store.new_file import PART_BYTES, ObjectNewFile
from icefield.storage.sizes import check_size
from icefield.storage.store import StoredFile

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutMode, UpdateVersion

# Without dashes and underscores: Azure allows no dash in such names, and proxies drop headers with an underscore.
_WRITE_ID = "icefieldwrite"
_TAIL_BYTES = 1 << 16
_CONCURRENT_PARTS = 4
_WRITE_TRIES = 5
_FIRST_PAUSE_SECONDS = 0.1
_WORTH_ANOTHER_TRY = frozenset({Failure.UNKNOWN, Failure.BUSY, Failure.UNREACHABLE})


Returned = TypeVar("Returned")
Arguments = ParamSpec("Arguments")


def _protected(
    method: "Callable[Concatenate[ObjectStore, Arguments], Returned]",
) -> "Callable[Concatenate[ObjectStore, Arguments], Returned]":
    """Redact credentials in messages of the server or the client."""

    @wraps(method)
    def protected(store: "ObjectStore", /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
        with without_secrets(store.secrets):
            return method(store, *args, **kwargs)

    return protected


class ObjectStore:
    """A store of objects.

    properties: of the client, see `object_store.client`. roots: the locations that the store may access; None allows
    all. native_scheme: the scheme with which the Spark cluster reads the same bucket (`s3a` with hadoop-aws); None if
    it cannot.
    """

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        *,
        roots: Iterable[str] | None = None,
        native_scheme: str | None = None,
        ambient: Ambient | None = None,
    ) -> None:
        self._clients = Clients(properties or {})
        self._roots = None if roots is None else tuple(roots)
        self._native_scheme = native_scheme
        self._ambient = ambient or SystemAmbient()

    def check(self, location: str) -> None:
        self._key(location)

    def secrets(self) -> Sequence[str]:
        """Return what no message may show."""
        return self._clients.secrets()

    @_protected
    def read(self, location: str) -> bytes:
        key = self._key(location)
        with _reading(location):
            return bytes(obstore.get(self._clients.reading(location), key).bytes())

    @_protected
    def read_range(self, location: str, offset: int, length: int, *, of_size: int | None = None) -> bytes:
        if offset < 0 or length < 0:
            raise InvalidInput(f"cannot read {length} bytes at {offset} of {location}: both must be 0 or more")
        key = self._key(location)
        if length == 0:
            check_size(location, self.size(location), of_size)
            return b""
        with _reading(location):
            try:
                # The response to a range request has the size of the whole object, too.
                found = obstore.get(self._clients.reading(location), key, options={"range": (offset, offset + length)})
                check_size(location, found.meta["size"], of_size)
                return bytes(found.bytes())
            except CLIENT_ERRORS as error:
                if find_failure(error) is not Failure.OUT_OF_RANGE:
                    raise
                return b""

    @_protected
    def size(self, location: str) -> int:
        key = self._key(location)
        with _reading(location):
            return obstore.head(self._clients.reading(location), key)["size"]

    def put_new(self, location: str, data: bytes) -> None:
        self.put_with_id(location, data, str(self._ambient.random_uuid()))

    @_protected
    def delete(self, location: str) -> None:
        key = self._key(location)
        try:
            obstore.delete(self._clients.reading(location), key)
        except CLIENT_ERRORS as error:
            if find_failure(error) is not Failure.MISSING:
                raise explain(error, "delete", location) from error

    @_protected
    def delete_many(self, locations: Sequence[str]) -> None:
        """Remove files with few requests; missing ones are skipped. After an error, some may be removed."""
        for bucket, some in groupby(locations, lambda location: self._parse(location).authority):
            batch = list(some)
            try:
                obstore.delete(self._clients.reading(batch[0]), [self._key(location) for location in batch])
            except CLIENT_ERRORS as error:
                if find_failure(error) is not Failure.MISSING:
                    raise explain(error, "delete", f"{len(batch)} files in {bucket}") from error
                for location in batch:
                    self.delete(location)

    def list(self, prefix: str) -> Iterator[StoredFile]:
        root = self._parse(prefix.rstrip("/"))
        return self._list(prefix, root, _key_of(root, prefix) if root.path else "")

    @_protected
    def open_input(self, location: str) -> pa.NativeFile:
        key = self._key(location)
        with _reading(location):
            size, tail = self._read_tail(location, key)
        return pa.PythonFile(RangedFile(lambda start, n: self.read_range(location, start, n), size, tail), mode="r")

    def native_uri(self, location: str) -> str:
        parsed = self._parse(location)
        if self._native_scheme is None:
            raise Unsupported(
                f"Spark cannot read {location} by itself",
                hint="Set the scheme that the cluster's file system uses for the bucket, such as s3a",
            )
        return f"{self._native_scheme}://{parsed.authority}{quote(parsed.path)}"

    def native_uris(self, locations: Iterable[str]) -> Iterator[str]:
        return map(self.native_uri, locations)

    def open_new(self, location: str) -> ObjectNewFile:
        target = _Target(self, location, str(self._ambient.random_uuid()))
        target.refuse_taken()
        return ObjectNewFile(target)

    @_protected
    def read_versioned(self, location: str) -> Versioned | None:
        key = self._key(location)
        try:
            with _reading(location):
                found = obstore.get(self._clients.reading(location), key)
                return Versioned(bytes(found.bytes()), _encode_version(found.meta))
        except MissingFile:
            return None

    @_protected
    def put_if_match(self, location: str, data: bytes, version: str | None) -> None:
        error, lost = self._send(location, data, "create" if version is None else _decode_version(version), {})
        if error is None:
            return
        if lost:
            raise CommitStateUnknown(f"the response to writing {location} was lost") from error
        # For a missing object, S3 responds to If-Match with 404, other stores with 412.
        if find_failure(error) in (Failure.TAKEN, Failure.MISSING):
            raise CommitConflict(f"{location} has changed since it was read") from error
        raise explain(error, "write", location) from error

    def list_keys(self, prefix: str) -> Iterator[str]:
        return (found.location for found in self.list(prefix))

    @_protected
    def put_with_id(self, location: str, data: bytes, write_id: str) -> None:
        """Write a new object with a given id; see put_new."""
        error, lost = self._send(location, data, "create", {_WRITE_ID: write_id})
        if error is None:
            return
        if find_failure(error) is not Failure.TAKEN:
            raise explain(error, "write", location) from error
        if not (lost and self.find_write_id(location) == write_id):
            raise FileAlreadyExists(f"cannot write {location}: it already exists") from error

    @_protected
    def put_parts_with_id(self, location: str, parts: Iterator[bytes], write_id: str) -> None:
        """Write an object from parts, replacing any at its key; an error of the iterator aborts the upload."""
        key, client = self._key(location), self._clients.reading(location)
        try:
            obstore.put(
                client,
                key,
                parts,
                attributes={_WRITE_ID: write_id},
                use_multipart=True,
                chunk_size=PART_BYTES,
                max_concurrency=_CONCURRENT_PARTS,
            )
        except CLIENT_ERRORS as error:
            if self.find_write_id(location) != write_id:
                raise explain(error, "write", location) from error

    @_protected
    def find_write_id(self, location: str) -> str | None:
        """Return the id that the object at a key was written with; None if it has none, or does not exist."""
        key = self._key(location)
        try:
            with _reading(location):
                found = obstore.get(self._clients.reading(location), key, options={"head": True})
                return found.attributes.get(_WRITE_ID)
        except MissingFile:
            return None

    def __reduce__(self) -> tuple[Callable[..., "ObjectStore"], tuple[Any, ...]]:
        # Clients and the Ambient are not pickled: they have threads, locks and the random number generator of this
        # process.
        return _restore, (self._clients.properties, self._roots, self._native_scheme)

    def _parse(self, location: str) -> Location:
        parsed = parse_location(location)
        if parsed.scheme not in PREFIX_OF_SCHEME:
            raise LocationRefused(f"{location} is not in an object store: its scheme is {parsed.scheme}")
        if self._roots is not None:
            check_inside(location, self._roots)
        return parsed

    def _key(self, location: str) -> str:
        return _key_of(self._parse(location), location)

    def _send(
        self, location: str, data: bytes, mode: "PutMode", attributes: dict[str, str]
    ) -> tuple[Exception | None, bool]:
        """Send a conditional write until its outcome is certain or no attempts are left.

        Returns the last error, None after a success, and whether the response to any of the requests was lost.
        """
        key, client = self._key(location), self._clients.writing(location)
        last: Exception | None = None
        lost = False
        for attempt in range(_WRITE_TRIES):
            if attempt:
                self._ambient.sleep(self._ambient.uniform(0, _FIRST_PAUSE_SECONDS * 2**attempt))
            try:
                obstore.put(client, key, data, mode=mode, attributes=attributes)
            except CLIENT_ERRORS as error:
                last, failure = error, find_failure(error)
                lost = lost or failure is Failure.UNKNOWN
                if failure not in _WORTH_ANOTHER_TRY:
                    break
            else:
                return None, lost
        return last, lost

    def _list(self, prefix: str, root: Location, key: str) -> Iterator[StoredFile]:
        try:
            for page in list_pages(self._clients.reading(prefix), key):
                for found in page:
                    location = f"{root.scheme}://{root.authority}/{found['path']}"
                    yield StoredFile(location, found["size"], int(found["last_modified"].timestamp() * 1000))
        except CLIENT_ERRORS as error:
            with without_secrets(self.secrets):
                raise explain(error, "list", prefix) from error

    def _read_tail(self, location: str, key: str) -> tuple[int, bytes]:
        """Return the size of an object and its last bytes, where Parquet keeps its footer, in one request."""
        client = self._clients.reading(location)
        try:
            found = obstore.get(client, key, options={"range": {"suffix": _TAIL_BYTES}})
            return found.meta["size"], bytes(found.bytes())
        except obstore.exceptions.NotSupportedError:
            return obstore.head(client, key)["size"], b""  # Azure does not support suffix ranges
        except CLIENT_ERRORS as error:
            if find_failure(error) is Failure.OUT_OF_RANGE:
                return 0, b""
            raise


@dataclass(frozen=True)
class _Target:
    """A key that a sink writes to, with the id of that write."""

    store: ObjectStore
    location: str
    write_id: str

    def refuse_taken(self) -> None:
        try:
            self.store.size(self.location)
        except MissingFile:
            return
        raise FileAlreadyExists(f"cannot write {self.location}: it already exists")

    def put_whole(self, data: bytes) -> None:
        self.store.put_with_id(self.location, data, self.write_id)

    def put_parts(self, parts: Iterator[bytes]) -> None:
        self.store.put_parts_with_id(self.location, parts, self.write_id)

    def remove_if_ours(self) -> None:
        if self.store.find_write_id(self.location) == self.write_id:
            self.store.delete(self.location)


def _restore(properties: Mapping[str, str], roots: Sequence[str] | None, native_scheme: str | None) -> ObjectStore:
    return ObjectStore(properties, roots=roots, native_scheme=native_scheme)


@contextmanager
def _reading(location: str) -> Iterator[None]:
    try:
        yield
    except CLIENT_ERRORS as error:
        if find_failure(error) is Failure.MISSING:
            raise MissingFile(location) from error
        raise explain(error, "read", location) from error


def _key_of(parsed: Location, location: str) -> str:
    key = parsed.path.removeprefix("/")
    if any(name in ("", ".", "..") for name in key.split("/")):
        raise InvalidInput(f"cannot use {location}: its key has an empty component, `.` or `..`")
    return key


def _encode_version(meta: "ObjectMeta") -> str:
    # Which of the two is used depends on the store.
    version = {name: value for name in ("e_tag", "version") if (value := meta[name]) is not None}
    return msgspec.json.encode(version).decode()


def _decode_version(version: str) -> "UpdateVersion":
    return cast("UpdateVersion", msgspec.json.decode(version))
