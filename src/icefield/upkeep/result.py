"""What upkeep did, as text for people and as values for programs; a dry run returns the same."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from icefield.showing import ShownAsText

MOST_LOCATIONS = 1_000  # of orphan files that a result lists


def silent(_: str) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class HeldBack:
    """Files that are not deleted yet, and why. marked: why they are to be deleted: expired, orphan, or retired."""

    reason: str
    files: int
    bytes: int
    marked: str


@dataclass(frozen=True, repr=False)
class SweepResult(ShownAsText):
    """What `sweep` deleted; with `dry_run`, what it would delete.

    Attributes:
        table: The name of the table.
        is_dry_run: Nothing was deleted.
        files_deleted: How many files were deleted.
        bytes_deleted: Their size, where it is known.
        kinds: How many files of each kind.
        marks_done: Marks all of whose files are gone, or needed again.
        waiting: Files that are kept for now: within the grace period, or held by a lease.
        leases: Leases that are held.
        leases_lost: Leases that were not renewed and were declared dead.
        unfinished: Why the files of a dropped table cannot be deleted, or not all of them. Those that are left stay.
    """

    table: str
    is_dry_run: bool = False
    files_deleted: int = 0
    bytes_deleted: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)
    marks_done: int = 0
    waiting: tuple[HeldBack, ...] = ()
    leases: int = 0
    leases_lost: int = 0
    unfinished: str | None = None

    def as_dict(self) -> dict[str, object]:
        """Return plain values."""
        return _plain(asdict(self))

    def __str__(self) -> str:
        verb = "would delete" if self.is_dry_run else "deleted"
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.kinds.items())
        lines = [f"{verb} {self.files_deleted:,} files ({size_text(self.bytes_deleted)}){': ' if kinds else ''}{kinds}"]
        lines += [f"  waiting  {held.files:,} files ({size_text(held.bytes)}): {held.reason}" for held in self.waiting]
        if self.leases or self.leases_lost:
            lines.append(f"  leases   {self.leases:,} held, {self.leases_lost:,} declared dead")
        if self.unfinished is not None:
            lines.append(f"  unfinished: {self.unfinished}")
        return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class ExpiryResult(ShownAsText):
    """What `expire_snapshots` removed; with `dry_run`, what it would remove.

    Attributes:
        table: The name of the table.
        is_dry_run: Nothing was changed.
        snapshot_ids: The snapshots, in ascending order.
        refs: Branches and tags past their maximum age.
        files_marked: Files that no snapshot needs any more, to be deleted after the grace period.
        bytes_marked: Their size, where it is known.
        kinds: How many files of each kind.
        mark: The name of the mark that lists them; None if there are none.
        swept: What was deleted of earlier marks whose grace period is over; None for a dry run.
        unfinished: What failed after the snapshots were removed. The files are kept; `sweep` deletes those that are
            marked, and `remove_orphans` finds those that are not.
    """

    table: str
    is_dry_run: bool = False
    snapshot_ids: tuple[int, ...] = ()
    refs: tuple[str, ...] = ()
    files_marked: int = 0
    bytes_marked: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)
    mark: str | None = None
    swept: SweepResult | None = None
    unfinished: str | None = None

    def as_dict(self) -> dict[str, object]:
        """Return plain values; snapshot ids are strings, because JSON readers round large integers."""
        return _plain({**asdict(self), "snapshot_ids": [str(each) for each in self.snapshot_ids]})

    def __str__(self) -> str:
        verb = "would expire" if self.is_dry_run else "expired"
        refs = f", and the refs {', '.join(self.refs)}" if self.refs else ""
        lines = [f"{verb} {len(self.snapshot_ids):,} snapshots{refs}"]
        if self.files_marked:
            marked = "would be marked" if self.is_dry_run else "marked"
            lines.append(f"  {marked}  {self.files_marked:,} files ({size_text(self.bytes_marked)}) for deletion")
        if self.unfinished is not None:
            lines.append(f"  unfinished: {self.unfinished}")
        if self.swept is not None and (self.swept.files_deleted or self.swept.waiting):
            lines.append(str(self.swept))
        return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class OrphanResult(ShownAsText):
    """What `remove_orphans` found; with `dry_run`, nothing was marked.

    Attributes:
        table: The name of the table.
        is_dry_run: Nothing was marked or deleted.
        files_listed: How many files are below the table's directories.
        files_reachable: How many of them the table needs.
        files_marked: Files that nothing refers to, to be deleted after the grace period.
        bytes_marked: Their size.
        kinds: How many files of each kind.
        young: Unreferenced files that are younger than the age that was asked for.
        foreign: Unreferenced files without a name that a writer of tables gives; they are never deleted.
        mark: The name of the mark that lists them; None if there are none.
        locations: The files; at most 1,000, unless the call says otherwise.
        swept: What was deleted of earlier marks whose grace period is over; None for a dry run.
    """

    table: str
    is_dry_run: bool = False
    files_listed: int = 0
    files_reachable: int = 0
    files_marked: int = 0
    bytes_marked: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)
    young: int = 0
    foreign: int = 0
    mark: str | None = None
    locations: tuple[str, ...] = ()
    swept: SweepResult | None = None

    def as_dict(self) -> dict[str, object]:
        """Return plain values."""
        return _plain(asdict(self))

    def __str__(self) -> str:
        verb = "would mark" if self.is_dry_run else "marked"
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.kinds.items())
        lines = [
            f"{verb} {self.files_marked:,} orphan files ({size_text(self.bytes_marked)}){': ' if kinds else ''}{kinds}",
            (
                f"  listed   {self.files_listed:,} files, {self.files_reachable:,} in use, {self.young:,} too young, "
                f"{self.foreign:,} of no known kind"
            ),
        ]
        if self.swept is not None and (self.swept.files_deleted or self.swept.waiting):
            lines.append(str(self.swept))
        return "\n".join(lines)


def _plain(value: object) -> dict[str, object]:
    plain = _kebab(value)
    assert isinstance(plain, dict)
    return plain


def _kebab(value: object) -> object:
    if isinstance(value, dict):
        return {str(key).replace("_", "-"): _kebab(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_kebab(inner) for inner in value]
    return value


def size_text(count: int) -> str:
    """Format a size for people."""
    size = float(count)
    for unit in ("bytes", "KB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1000
    raise AssertionError("unreachable")
