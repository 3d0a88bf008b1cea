"""What a check of tables found, as text for people and as values for programs.

Each kind of damage belongs to one check, so that a finding says what is wrong, not only where.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from icefield.showing import ShownAsText

MOST_OF_A_CHECK = 1_000  # findings that are kept; more are only counted


class Check(StrEnum):
    """What is checked; the name of a check is the name of the fault."""

    POINTER = "pointer"
    REFS = "refs"
    HISTORY = "history"
    SEQUENCE_NUMBERS = "sequence-numbers"
    ROW_IDS = "row-ids"
    SCHEMAS = "schemas"
    MISSING_FILES = "missing-files"
    SIZES = "sizes"
    UNREADABLE_FILES = "unreadable-files"
    COUNTS = "counts"
    DUPLICATES = "duplicates"
    DELETES = "deletes"
    DANGLING_DELETES = "dangling-deletes"
    SUMMARIES = "summaries"
    FOOTERS = "footers"
    OWNERS = "owners"
    HALF_CHANGED = "half-changed"


QUESTIONS = {
    Check.POINTER: "the catalog points at the newest committed version, and it can be read",
    Check.REFS: "branches and tags point at snapshots of the table",
    Check.HISTORY: "snapshot ids are unique, no snapshot is its own ancestor, and the log names snapshots in order",
    Check.SEQUENCE_NUMBERS: "sequence numbers ascend from parent to child, and no entry is newer than its manifest",
    Check.ROW_IDS: "row ids are assigned once, and below the table's next one",
    Check.SCHEMAS: "snapshots and manifests name schemas and partition specs of the table",
    Check.MISSING_FILES: "every file that a snapshot leads to exists",
    Check.SIZES: "files have the size that metadata says",
    Check.UNREADABLE_FILES: "manifest lists, manifests and entries of statistics can be decoded",
    Check.COUNTS: "manifest lists say how many files and rows their manifests have",
    Check.DUPLICATES: "no snapshot has a file twice",
    Check.DELETES: "a data file has one deletion vector at most, of its own partition and not older than the file",
    Check.DANGLING_DELETES: "every delete file applies to a data file",
    Check.SUMMARIES: "the totals in snapshot summaries are true",
    Check.FOOTERS: "files have the rows that metadata says",
    Check.OWNERS: "a table has one name, and its directories to itself",
    Check.HALF_CHANGED: "tables that are changed together have the same changes",
}
# They cost time or space, but no row is wrong.
HARMLESS = frozenset({Check.DANGLING_DELETES})


@dataclass(frozen=True, repr=False)
class Finding(ShownAsText):
    """One fault of a table.

    Attributes:
        check: The check that found it.
        message: What is wrong, and what to do where that is known.
        location: The file, if it is about one.
        snapshot_id: The snapshot, if it is about one.
    """

    check: Check
    message: str
    location: str | None = None
    snapshot_id: int | None = None

    @property
    def is_harmless(self) -> bool:
        """Whether all rows can be read correctly nevertheless."""
        return self.check in HARMLESS

    def as_dict(self) -> dict[str, object]:
        """Return plain values; the snapshot id is a string, because JSON readers round large integers."""
        return {
            "check": self.check.value,
            "message": self.message,
            "location": self.location,
            "snapshot-id": None if self.snapshot_id is None else str(self.snapshot_id),
            "harmless": self.is_harmless,
        }

    def __str__(self) -> str:
        place = f" [{self.location}]" if self.location and self.location not in self.message else ""
        return f"{self.check}: {self.message}{place}"


class Findings:
    """Collects findings; of each check so many are kept that memory stays bounded."""

    def __init__(self) -> None:
        self._kept: list[Finding] = []
        self.counts: Counter[Check] = Counter()

    def add(self, check: Check, message: str, *, location: str | None = None, snapshot_id: int | None = None) -> None:
        """Add a finding."""
        self.counts[check] += 1
        if self.counts[check] <= MOST_OF_A_CHECK:
            self._kept.append(Finding(check, message, location, snapshot_id))

    def by_name(self) -> dict[str, int]:
        """Return how many findings each check has, by its name."""
        return {check.value: count for check, count in self.counts.items()}

    def __iter__(self) -> Iterator[Finding]:
        order = list(Check)
        return iter(sorted(self._kept, key=lambda found: order.index(found.check)))


@dataclass(frozen=True)
class Repair:
    """A repair: what was done, or would be done, and for which finding."""

    check: Check
    action: str

    def as_dict(self) -> dict[str, object]:
        """Return plain values."""
        return {"check": self.check.value, "action": self.action}


@dataclass(frozen=True, repr=False)
class TableFsck(ShownAsText):
    """What `fsck` found in one table.

    Attributes:
        table: The name of the table.
        metadata_location: The version that was checked; None if the catalog's pointer could not be read.
        findings: What is wrong, at most 1,000 of each check.
        counts: How many findings each check has in total.
        snapshots: How many snapshots were checked.
        manifests: How many manifests.
        files: How many data and delete files.
        bytes: Their size by metadata.
        repairs: What was repaired; with `dry_run`, what would be.
        is_dry_run: Nothing was changed.
    """

    table: str
    metadata_location: str | None = None
    findings: tuple[Finding, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    snapshots: int = 0
    manifests: int = 0
    files: int = 0
    bytes: int = 0
    repairs: tuple[Repair, ...] = ()
    is_dry_run: bool = False

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is wrong, except for what is harmless."""
        return all(finding.is_harmless for finding in self.findings)

    def as_dict(self) -> dict[str, object]:
        """Return plain values."""
        return {
            "table": self.table,
            "metadata-file": self.metadata_location,
            "healthy": self.is_healthy,
            "snapshots": self.snapshots,
            "manifests": self.manifests,
            "files": self.files,
            "bytes": self.bytes,
            "counts": dict(self.counts),
            "findings": [finding.as_dict() for finding in self.findings],
            "repairs": [repair.as_dict() for repair in self.repairs],
            "dry-run": self.is_dry_run,
        }

    def __str__(self) -> str:
        verdict = "healthy" if self.is_healthy else f"{sum(self.counts.values()):,} findings"
        sizes = f"{self.snapshots:,} snapshots, {self.manifests:,} manifests, {self.files:,} files"
        lines = [f"{self.table}: {verdict} ({sizes})"]
        lines += [f"  {finding}" for finding in self.findings]
        kept = Counter(finding.check.value for finding in self.findings)
        lines += [
            f"  {check}: and {count - kept[check]:,} more"
            for check, count in self.counts.items()
            if count > kept[check]
        ]
        verb = "would repair" if self.is_dry_run else "repaired"
        return "\n".join([*lines, *(f"  {verb}: {repair.action}" for repair in self.repairs)])


@dataclass(frozen=True, repr=False)
class LakeFsck(ShownAsText):
    """What `fsck` found in several tables.

    Attributes:
        tables: The result of each table.
        findings: What concerns several of them.
    """

    tables: Sequence[TableFsck]
    findings: tuple[Finding, ...] = ()

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is wrong, except for what is harmless."""
        return not self.findings and all(table.is_healthy for table in self.tables)

    def as_dict(self) -> dict[str, object]:
        """Return plain values."""
        return {
            "healthy": self.is_healthy,
            "tables": [table.as_dict() for table in self.tables],
            "findings": [finding.as_dict() for finding in self.findings],
        }

    def __str__(self) -> str:
        return "\n".join([*map(str, self.tables), *map(str, self.findings)])
