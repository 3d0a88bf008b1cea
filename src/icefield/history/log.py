"""The snapshots of a table as a graph, newest first: which branch each is on, what was published where.

    * s4   main        published staging
    |\\
    | * s3  staging
    * | s2
    |/
    * s1
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from icefield.commit.validate.ancestry import MERGED, MERGED_BRANCH, PICKED, REVERTED, summary_id
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import AUTHOR, MESSAGE, Snapshot


@dataclass(frozen=True)
class LogEntry:
    """A snapshot in the graph.

    Attributes:
        snapshot: The snapshot.
        refs: The branches and tags that point at it.
        track: The column of the graph that it is in.
        before: The snapshots that the columns lead to, above it; None for a column that is not used.
        after: The same below it.
    """

    snapshot: Snapshot
    refs: tuple[str, ...]
    track: int
    before: tuple[int | None, ...]
    after: tuple[int | None, ...]

    @property
    def note(self) -> str:
        """What was picked, reverted or published, the message and the author."""
        summary = self.snapshot.summary
        branch = summary.get(MERGED_BRANCH)
        parts = [
            f"published {branch}" if branch else f"rebased {summary[MERGED]}" if MERGED in summary else "",
            f"cherry-pick of {summary[PICKED]}" if PICKED in summary else "",
            f"revert of {summary[REVERTED]}" if REVERTED in summary else "",
            summary.get(MESSAGE, ""),
        ]
        author = f"({summary[AUTHOR]})" if AUTHOR in summary else ""
        return " ".join(part for part in (": ".join(part for part in parts if part), author) if part)

    def graph(self) -> str:
        """Draw the line of the snapshot."""
        cells = ["|" if each is not None else " " for each in self.before]
        cells += [" "] * (self.track + 1 - len(cells))
        cells[self.track] = "*"
        return " ".join(cells).rstrip()

    def edges(self) -> str | None:
        """Draw the line below it, where a column begins or ends; None if none does."""
        was, now = _used(self.before) | {self.track}, _used(self.after)
        begun, ended = now - was, was - now
        if not begun and not (ended - {self.track} or (ended and self._leads_on)):
            return None
        cells = ["|" if track in now else " " for track in range(max(was | now) + 1)]
        text = list(" ".join(cells))
        for track in begun | ended:
            at = 2 * track - 1
            if at > 0:
                text[at] = "\\" if track in begun else "/"
                text[at + 1] = " "
        return "".join(text).rstrip()

    @property
    def _leads_on(self) -> bool:
        return self.snapshot.parent_snapshot_id in self.after

    def as_dict(self) -> dict[str, object]:
        """Return plain values; ids as strings."""
        snapshot = self.snapshot
        merged = summary_id(snapshot, MERGED)
        return {
            "snapshot-id": str(snapshot.snapshot_id),
            "parent-snapshot-id": None if snapshot.parent_snapshot_id is None else str(snapshot.parent_snapshot_id),
            "merged-snapshot-id": None if merged is None else str(merged),
            "timestamp-ms": snapshot.timestamp_ms,
            "operation": snapshot.operation,
            "refs": list(self.refs),
            "author": snapshot.summary.get(AUTHOR),
            "message": snapshot.summary.get(MESSAGE),
            "note": self.note,
            "track": self.track,
            "summary": dict(snapshot.summary),
        }


def published_id(snapshot: Snapshot) -> int | None:
    """Return the head of the branch that a snapshot has published, not of one that it has rebased."""
    return summary_id(snapshot, MERGED) if MERGED_BRANCH in snapshot.summary else None


def list_log(metadata: TableMetadata, ref: str | None = None) -> list[LogEntry]:
    """List all snapshots, or the ancestors of a ref, as a graph, newest first; children come before their parents."""
    found = metadata.snapshots if ref is None else list(metadata.ancestors(metadata.ref_head(ref)))[::-1]
    return list(_place(list(found)[::-1], metadata))


def _place(snapshots: Sequence[Snapshot], metadata: TableMetadata) -> Iterator[LogEntry]:
    known = {snapshot.snapshot_id for snapshot in snapshots}
    tracks: list[int | None] = []
    for snapshot in snapshots:
        own = snapshot.snapshot_id
        before = tuple(tracks)
        track = tracks.index(own) if own in tracks else _free(tracks)
        if track == len(tracks):
            tracks.append(None)
        tracks[track] = None
        parents = (snapshot.parent_snapshot_id, published_id(snapshot))
        for number, parent in enumerate(each for each in parents if each in known):
            if parent in tracks:
                if number == 0 and tracks.index(parent) > track:  # the other column joins this one, which is older
                    tracks[tracks.index(parent)], tracks[track] = None, parent
                continue
            at = track if number == 0 else _free(tracks)
            if at == len(tracks):
                tracks.append(None)
            tracks[at] = parent
        while tracks and tracks[-1] is None:
            tracks.pop()
        refs = tuple(sorted(name for name, ref in metadata.refs.items() if ref.snapshot_id == own))
        yield LogEntry(snapshot, refs, track, before, tuple(tracks))


def _free(tracks: Sequence[int | None]) -> int:
    return tracks.index(None) if None in tracks else len(tracks)


def _used(tracks: Sequence[int | None]) -> set[int]:
    return {at for at, each in enumerate(tracks) if each is not None}
