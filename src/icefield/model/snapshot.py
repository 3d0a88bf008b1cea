"""Snapshots and refs: the versions of a table and the names that point to them. (spec: Snapshots, Snapshot References)

A table may have tens of thousands of snapshots, and a commit adds one. So the entries of `Snapshots` may be undecoded
(`CarriedSnapshot`); one can be found without decoding the rest, and adding one does not copy the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Protocol

from icefield.arguments import is_utf8
from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput
from icefield.showing import html_table

with deferred_imports(__name__):
    from icefield.types.unknown_keys import UnknownKeys

MAIN = "main"
_SHOWN = 80
MESSAGE, AUTHOR = "icefield.message", "icefield.author"  # in the summary of a snapshot


def note_keys(*, message: str | None = None, author: str | None = None) -> dict[str, str]:
    """Return the keys of a summary that say why and by whom a snapshot was made."""
    given = {key: text for key, text in ((MESSAGE, message), (AUTHOR, author)) if text is not None}
    for key, text in given.items():
        if not is_utf8(text):
            raise InvalidInput(f"{key} is not text: {text[:_SHOWN]!r} has an unpaired surrogate")
    return given


class Operation(StrEnum):
    """The operation of a snapshot, as named in the spec."""

    APPEND = "append"
    REPLACE = "replace"
    OVERWRITE = "overwrite"
    DELETE = "delete"


@dataclass(frozen=True)
class Snapshot:
    """One version of the table's contents.

    Attributes:
        snapshot_id: A unique id.
        sequence_number: The order of commits; 0 in format version 1.
        timestamp_ms: When it was committed, in milliseconds since the epoch.
        manifest_list: The location of its manifest list; empty for old snapshots that list their manifests themselves.
        parent_snapshot_id: The snapshot that it was made from.
        schema_id: The schema that was current.
        summary: The operation, counts of what was added and removed, and totals.
        first_row_id: The first row id that it may assign (format version 3).
        added_rows: How many row ids it may assign (format version 3).
        key_id: The encryption key of its manifest list.
        manifests: Manifests that are listed without a manifest list (format version 1).
        engine: Which engine moved the rows and why, on the snapshot that a write returns. It is not stored.
    """

    snapshot_id: int
    sequence_number: int
    timestamp_ms: int
    manifest_list: str
    parent_snapshot_id: int | None = None
    schema_id: int | None = None
    summary: Mapping[str, str] = field(default_factory=dict)
    first_row_id: int | None = None
    added_rows: int | None = None
    key_id: str | None = None
    manifests: tuple[str, ...] = ()
    engine: str | None = field(default=None, compare=False)

    def _repr_html_(self) -> str:
        facts = [(each.name, getattr(self, each.name)) for each in fields(self) if each.name != "summary"]
        shown = [(name, value) for name, value in facts if value not in (None, "", ())]
        return html_table(f"snapshot {self.snapshot_id}", ["", ""], [*shown, *self.summary.items()])

    @property
    def operation(self) -> str | None:
        """What the snapshot did; append, replace, overwrite or delete."""
        return self.summary.get("operation")


class CarriedSnapshot(Protocol):
    """A snapshot in its stored form, decoded on demand."""

    @property
    def snapshot_id(self) -> int:
        """Its id, which is known without decoding the rest."""
        ...

    def holds(self, text: bytes) -> bool:
        """Return False only if the decoded snapshot certainly does not contain this ASCII text."""
        ...

    def load(self) -> Snapshot:
        """Decode it."""
        ...


SnapshotEntry = Snapshot | CarriedSnapshot


class Snapshots:
    """An immutable list of snapshots, oldest first.

    positions: those of the entries from `indexed` on, by id; the index grows as it is asked, from the newest down.
    """

    def __init__(
        self, entries: tuple[SnapshotEntry, ...] = (), positions: Mapping[int, int] | None = None, indexed: int = 0
    ) -> None:
        self.entries = entries
        self._loaded: dict[int, Snapshot] = {}
        self._positions = {} if positions is None else dict(positions)
        self._indexed = len(entries) if positions is None else indexed

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Snapshot]:
        return (self._load(at) for at in range(len(self.entries)))

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Snapshots) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def find(self, snapshot_id: int) -> Snapshot | None:
        """Find a snapshot by id; of two with one id the newest."""
        at = self._find_position(snapshot_id)
        return None if at is None else self._load(at)

    def find_all_by_summary(self, key: str, value: str) -> Iterator[Snapshot]:
        """Yield the snapshots whose summary has an ASCII value under a key, newest first."""
        text = value.encode()
        for at in range(len(self.entries) - 1, -1, -1):
            entry = self.entries[at]
            may_be = isinstance(entry, Snapshot) or entry.holds(text)
            if may_be and self._load(at).summary.get(key) == value:
                yield self._load(at)

    def added_since(self, earlier: Snapshots | None) -> Iterator[Snapshot]:
        """Yield the snapshots, newest first, up to the first that an earlier list contains; all of them for None."""
        for at in range(len(self.entries) - 1, -1, -1):
            snapshot = self._load(at)
            if earlier is not None and earlier.find(snapshot.snapshot_id) is not None:
                return
            yield snapshot

    def ancestors(self, snapshot: Snapshot) -> Iterator[Snapshot]:
        """Yield a snapshot and its ancestors, as far as they are retained; a cycle ends where it began."""
        seen = {snapshot.snapshot_id}
        yield snapshot
        while (parent := snapshot.parent_snapshot_id) is not None and parent not in seen:
            found = self.find(parent)
            if found is None:
                return
            snapshot = found
            seen.add(parent)
            yield snapshot

    def with_added(self, snapshot: Snapshot) -> Snapshots:
        """Return the list with a snapshot added at the end."""
        indexed = self._indexed  # read first: another thread may extend the index
        positions = {**self._positions.copy(), snapshot.snapshot_id: len(self.entries)}
        return Snapshots((*self.entries, snapshot), positions, indexed)

    def without(self, snapshot_ids: Collection[int]) -> Snapshots:
        """Return the list without some snapshots."""
        gone = set(snapshot_ids)
        kept = (e for at, e in enumerate(self.entries) if self._load(at).snapshot_id not in gone)
        return Snapshots(tuple(kept))

    def _find_position(self, snapshot_id: int) -> int | None:
        at = self._indexed
        while snapshot_id not in self._positions and at > 0:
            at -= 1
            self._positions.setdefault(self.entries[at].snapshot_id, at)
            self._indexed = at  # only now: another thread begins where everything is recorded
        return self._positions.get(snapshot_id)

    def _load(self, at: int) -> Snapshot:
        if at not in self._loaded:
            entry = self.entries[at]
            self._loaded[at] = entry if isinstance(entry, Snapshot) else entry.load()
        return self._loaded[at]


class RefKind(StrEnum):
    BRANCH = "branch"
    TAG = "tag"


@dataclass(frozen=True)
class SnapshotRef:
    """A branch or tag: the snapshot that it points to, and its retention policy."""

    snapshot_id: int
    kind: RefKind = RefKind.BRANCH
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None
    unknown_keys: UnknownKeys = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class SnapshotLogEntry:
    """A time at which `main` began to point to a snapshot."""

    timestamp_ms: int
    snapshot_id: int


@dataclass(frozen=True)
class MetadataLogEntry:
    """A metadata file, and the time at which it became current."""

    timestamp_ms: int
    metadata_file: str
