"""A report on storage, as text for people and as values for programs.

    stored = live + history + waiting + young + orphans + foreign

Live is what the heads of branches and tags need; deleted rows are a part of it. History is what only older snapshots
need, waiting what upkeep has marked for deletion, young what nothing refers to but may belong to a running write, an
orphan what nothing refers to, foreign what is in the table's directories without being a file of a table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from icefield.showing import ShownAsText
from icefield.upkeep.result import size_text

GB = 1_000_000_000


@dataclass(frozen=True)
class Share:
    """A part of what is stored."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: "Share") -> "Share":
        return Share(self.files + other.files, self.bytes + other.bytes)


@dataclass(frozen=True)
class Debt:
    """What makes reads slower or dearer than they need to be.

    Attributes:
        data_files: How many data files the heads of branches and tags have.
        small_files: How many of them are smaller than compaction leaves as they are, if there are enough of them.
        small_bytes: Their size.
        files_to_rewrite: How many of them compaction would rewrite now, for whatever reason.
        bytes_to_rewrite: Their size.
        files_after: About how many data files there would be after that.
        delete_files: How many delete files and deletion vectors apply to them.
        deleted_rows: How many rows position deletes remove.
        deleted_bytes: An estimate of what these rows take in data files.
        equality_deletes: How many keys equality deletes have; how many rows that removes is not known.
        equality_delete_files: How many of the delete files are equality deletes.
        snapshots: How many snapshots there are.
        expired_snapshots: How many of them the table's retention would let expire now.
    """

    data_files: int = 0
    small_files: int = 0
    small_bytes: int = 0
    files_to_rewrite: int = 0
    bytes_to_rewrite: int = 0
    files_after: int = 0
    delete_files: int = 0
    deleted_rows: int = 0
    deleted_bytes: int = 0
    equality_deletes: int = 0
    equality_delete_files: int = 0
    snapshots: int = 0
    expired_snapshots: int = 0

    def __add__(self, other: "Debt") -> "Debt":
        return Debt(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Debt)))


@dataclass(frozen=True)
class Retention:
    """What a table keeps for safety, by its properties.

    Attributes:
        max_snapshot_age_ms: How long snapshots are kept.
        min_snapshots: How many are kept, however old they are.
        grace_ms: How long files are kept after that.
    """

    max_snapshot_age_ms: int
    min_snapshots: int
    grace_ms: int

    def __str__(self) -> str:
        least = "a snapshot" if self.min_snapshots == 1 else f"{self.min_snapshots:,} snapshots"
        return f"{_days(self.max_snapshot_age_ms)} of history, at least {least}, and {_days(self.grace_ms)} of grace"


@dataclass(frozen=True, repr=False)
class StorageReport(ShownAsText):
    """What a table, or a lake, stores.

    Attributes:
        table: The name of the table, or of the lake.
        live: What the heads of branches and tags need, with their metadata.
        history: What only older snapshots need.
        expirable: The part of the history that the table's retention would let expire now.
        waiting: What is marked for deletion.
        young: What nothing refers to, but is younger than the age of orphan files, or of a write with a lease.
        orphans: What nothing refers to.
        foreign: Other files in the table's directories.
        debt: Small files, deletes and snapshots.
        retention: The retention that the table has; None for a lake, whose tables may differ.
        price: The price of storing a gigabyte (10^9 bytes) for a month, if it was given.
        tables: The reports of the tables of a lake.
        error: Why the table cannot be measured, if so; then nothing of it is counted.
    """

    table: str
    live: Share = Share()
    history: Share = Share()
    expirable: Share = Share()
    waiting: Share = Share()
    young: Share = Share()
    orphans: Share = Share()
    foreign: Share = Share()
    debt: Debt = Debt()
    retention: Retention | None = None
    price: float | None = None
    tables: Sequence["StorageReport"] = ()
    error: str | None = None

    @property
    def failed(self) -> Sequence["StorageReport"]:
        """The tables that cannot be measured; the sums are without them."""
        return [table for table in self.tables if table.error is not None]

    @property
    def stored(self) -> Share:
        """Everything in the table's directories, and what it needs elsewhere."""
        return self.live + self.history + self.waiting + self.young + self.orphans + self.foreign

    @property
    def overhead(self) -> float:
        """What is stored beside what is live, as a share of it: 0.2 means that a fifth more is paid for."""
        return (self.stored.bytes - self.live.bytes) / self.live.bytes if self.live.bytes else 0.0

    @property
    def kept(self) -> Share:
        """What the retention keeps: the history, and what waits for the end of the grace period."""
        return self.history + self.waiting

    @property
    def kept_share(self) -> float:
        """What the retention keeps, as a share of what is live: 0.2 means that safety costs a fifth more."""
        return self.kept.bytes / self.live.bytes if self.live.bytes else 0.0

    @property
    def gains(self) -> Mapping[str, int]:
        """What each step of upkeep would free, in bytes, when its grace period is over."""
        return {
            "compact": self.debt.deleted_bytes,
            "expire": self.expirable.bytes,
            "sweep": self.waiting.bytes,
            "orphans": self.orphans.bytes,
        }

    def cost(self, size_bytes: int) -> float | None:
        """What so many bytes cost in a month; None without a price."""
        return None if self.price is None else size_bytes / GB * self.price

    def as_dict(self) -> dict[str, object]:
        """Return plain values."""
        plain = {key: value for key, value in asdict(self).items() if key != "tables"}
        plain |= {"stored": asdict(self.stored), "overhead": round(self.overhead, 4), "gains": dict(self.gains)}
        plain |= {"kept": asdict(self.kept), "kept_share": round(self.kept_share, 4)}
        if self.price is not None:
            plain["cost"] = {
                name: self.cost(share.bytes)
                for name, share in (
                    *(("stored", self.stored), ("live", self.live), ("history", self.history)),
                    *(("waiting", self.waiting), ("kept", self.kept), ("orphans", self.orphans)),
                )
            }
            plain["savings"] = {step: self.cost(size) for step, size in self.gains.items()}
        if self.tables:
            plain["tables"] = [table.as_dict() for table in self.tables]
        return plain

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.table}: cannot be measured: {self.error}"
        without = f", without {len(self.failed):,} that cannot be measured" if self.failed else ""
        stored = f"{self.table}: {self._size(self.stored.bytes)} stored{without}"
        lines = [*(str(table) for table in self.tables), stored]
        lines += [
            self._line("live", self.live, self._deleted()),
            self._line("history", self.history, f"{self.debt.snapshots:,} snapshots"),
            self._line("waiting", self.waiting, "marked for deletion"),
            self._line("young", self.young, "may belong to running writes"),
            self._line("orphans", self.orphans, "nothing refers to them"),
            self._line("foreign", self.foreign, "not files of a table"),
        ]
        lines += [f"  {self.overhead:.0%} is stored beside what is live"] if self.live.bytes else []
        if self.live.bytes:
            chosen = "" if self.retention is None else f" ({self.retention})"
            kept = f"{self._size(self.kept.bytes)}: {self.kept_share:.0%} of what is live"
            lines.append(f"  retention{chosen} keeps {kept}")
        debt = self.debt
        if debt.files_to_rewrite or debt.delete_files:
            lines.append(
                f"  {debt.small_files:,} of {debt.data_files:,} data files are small, {debt.delete_files:,} delete"
                f" files; compaction would rewrite {debt.files_to_rewrite:,}, and leave {debt.files_after:,}"
            )
        gains = [f"{step} {self._size(size)}" for step, size in self.gains.items() if size]
        return "\n".join([*lines, f"  to gain: {', '.join(gains) or 'nothing'}"])

    def _deleted(self) -> str:
        if not self.debt.deleted_rows:
            return ""
        return f"{self._size(self.debt.deleted_bytes)} of it for {self.debt.deleted_rows:,} deleted rows"

    def _line(self, name: str, share: Share, note: str) -> str:
        text = f"  {name:<8}{share.files:>9,} files  {self._size(share.bytes)}"
        return f"{text}  {note}".rstrip()

    def _size(self, size_bytes: int) -> str:
        cost = self.cost(size_bytes)
        return size_text(size_bytes) + ("" if cost is None else f" ({cost:,.2f} a month)")


def _days(duration_ms: int) -> str:
    """Format a duration in days, or in hours if it is short."""
    hours = duration_ms / 3_600_000
    amount, unit = (hours / 24, "day") if hours >= 24 else (hours, "hour")
    return f"{amount:,.4g} {unit}{'' if amount == 1 else 's'}"


def sum_up(name: str, tables: Sequence[StorageReport], price: float | None) -> StorageReport:
    """Return the report on a lake."""
    sums: dict[str, Any] = {
        part: sum((getattr(table, part) for table in tables), Share())
        for part in ("live", "history", "expirable", "waiting", "young", "orphans", "foreign")
    }
    debt = sum((table.debt for table in tables), Debt())
    return StorageReport(name, **sums, debt=debt, price=price, tables=tuple(tables), error=None)
