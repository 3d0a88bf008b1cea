"""Where rows went when files were rewritten in order: the row map of a rewrite.

Rows keep their order within a group, so a map is ranges, not rows. For example, a has 5 rows, of which row 2 was
deleted before, and b has 2. Their 6 rows are written to x and y, 3 to each:

    row of a     0    1    2    3    4         row of b     0    1
    read as      0    1    -    2    3                      4    5
    written to   x:0  x:1  -    x:2  y:0                    y:1  y:2

    >>> moved = MovedRows({"a": 0, "b": 4}, {"a": np.array([2])}, ["x", "y"], np.array([3, 6]))
    >>> moved.find("a", np.array([1, 4]))
    {'x': array([1]), 'y': array([0])}

A rewrite stores its map in the header of its manifest list, where other readers ignore it: a change that was planned on
the old files finds its rows in the new ones, and need not fail. A map that is too large is not stored.
"""

import base64
import binascii
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from icefield.codec.manifest.list import list_property
from icefield.errors import MissingFile
from icefield.model.snapshot import Operation, Snapshot
from icefield.parquet.read.deletes import Positions
from icefield.plan.manifest_list import read_manifest_list
from icefield.storage.store import Store

ROW_MAP = "icefield.row-map"  # in the header of a manifest list
MOST_STORED = 512 * 1024  # characters
MOST_DECODED = 64 * 1024 * 1024
NO_POSITIONS: Positions = np.zeros(0, np.int64)


@dataclass(frozen=True)
class MovedRows:
    """The new positions of rows: files were read in order, without their deleted rows, and written in that order.

    starts: the number of each source's first row among all that were read. left_out: the positions of sources that were
    not read, because they were deleted. targets: the new files in order; ends: the number of the row after each one's
    last.
    """

    starts: Mapping[str, int]
    left_out: Mapping[str, Positions]
    targets: Sequence[str]
    ends: npt.NDArray[np.int64]

    def find(self, source: str, positions: Positions) -> dict[str, Positions]:
        """Return the positions of rows in the new files, by file; those that were not read are nowhere."""
        return {target: new for target, (_, new) in self.trace(source, positions).items()}

    def trace(self, source: str, positions: Positions) -> "Places":
        """Return the same, with the number of each row among the given ones."""
        left_out = self.left_out.get(source, NO_POSITIONS)
        rows = np.flatnonzero(~np.isin(positions, left_out))
        numbers = self.starts[source] + positions[rows] - np.searchsorted(left_out, positions[rows])
        files = np.searchsorted(self.ends, numbers, "right")
        begins = np.concatenate([[0], self.ends[:-1]])
        return {
            self.targets[at]: (rows[files == at], numbers[files == at] - begins[at]) for at in np.unique(files).tolist()
        }


# Where rows are: by file, the numbers of rows among some, and their positions there.
Places = dict[str, tuple[Positions, Positions]]


class RowMaps:
    """The row maps of some snapshots, oldest first."""

    def __init__(self, maps: Iterable[Iterable[MovedRows]]) -> None:
        self._maps = [{source: moved for moved in groups for source in moved.starts} for groups in maps]

    def find(self, source: str, positions: Positions) -> dict[str, Positions]:
        """Return where rows of a file are now, as far as is known; rows that a rewrite left out are nowhere."""
        return {file: new for file, (_, new) in self.trace(source, positions).items()}

    def trace(self, source: str, positions: Positions) -> Places:
        """Return the same, with the number of each row among the given ones."""
        places: Places = {source: (np.arange(len(positions)), positions)}
        for moves in self._maps:
            found: dict[str, list[tuple[Positions, Positions]]] = {}
            for file, (rows, at) in places.items():
                moved = moves[file].trace(file, at) if file in moves else {file: (np.arange(len(at)), at)}
                for target, (chosen, new) in moved.items():
                    found.setdefault(target, []).append((rows[chosen], new))
            places = {
                file: (np.concatenate([rows for rows, _ in parts]), np.concatenate([new for _, new in parts]))
                for file, parts in found.items()
            }
        return places


def load_row_maps(store: Store, snapshots: Iterable[Snapshot]) -> RowMaps:
    """Load the row maps of snapshots, newest first; those that have none are skipped."""
    maps = []
    for snapshot in snapshots:
        if snapshot.operation == Operation.REPLACE and snapshot.manifest_list:
            try:
                data = read_manifest_list(store, snapshot)
            except MissingFile:  # expired
                continue
            text = list_property(data, snapshot.manifest_list, ROW_MAP)
            maps.append(decode_row_map(text) if text else [])
    return RowMaps(reversed(maps))


def encode_row_map(groups: Iterable[MovedRows]) -> str | None:
    """Encode a row map as text; None if it is too large to store."""
    plain = [
        {
            "starts": dict(moved.starts),
            "left-out": {path: np.diff(gone, prepend=0).tolist() for path, gone in moved.left_out.items() if len(gone)},
            "targets": list(moved.targets),
            "ends": moved.ends.tolist(),
        }
        for moved in groups
    ]
    text = base64.b64encode(zlib.compress(msgspec.json.encode(plain))).decode()
    return text if plain and len(text) <= MOST_STORED else None


class _Stored(msgspec.Struct, rename="kebab"):
    starts: dict[str, int]
    left_out: dict[str, list[int]]
    targets: list[str]
    ends: list[int]


def decode_row_map(text: str) -> list[MovedRows]:
    """Decode a row map; nothing if it is not one: then the rows count as lost."""
    try:
        raw = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), MOST_DECODED)
        stored = msgspec.json.decode(raw, type=list[_Stored])
    except (zlib.error, binascii.Error, msgspec.MsgspecError, ValueError):
        return []
    return [
        MovedRows(
            each.starts,
            {path: np.cumsum(np.array(gone, np.int64)) for path, gone in each.left_out.items()},
            each.targets,
            np.array(each.ends, np.int64),
        )
        for each in stored
    ]
