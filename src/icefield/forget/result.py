"""What `forget` did and what is left, as text for people and as values for programs; a dry run returns the same.

It contains neither the filter nor the terms of the search, so that it can be kept when the rows are gone.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from icefield.showing import ShownAsText
from icefield.upkeep.result import SweepResult, size_text

SHOWN = 20


@dataclass(frozen=True)
class Trace:
    """A term of the search that was found.

    Attributes:
        term: Which of the terms, from 1; 0 for a row that matches the filter.
        location: The file.
        place: Where in it: its name, raw bytes, a column, decoded bytes.
        is_certain: False if only the beginning of the term was found, as in bounds that are cut off.
    """

    term: int
    location: str
    place: str
    is_certain: bool = True


@dataclass(frozen=True)
class SearchResult:
    """What was searched, and what was found.

    Attributes:
        files: How many files below the table's directories were read.
        bytes: Their size.
        kinds: How many files of each kind.
        terms: How many terms were searched for, besides rows that match the filter.
        traces: What was found; at most 1,000.
        unreadable: Files that could not be decoded; only their raw bytes were searched.
        audits_removed: Records of deleted files that named a term, such as the value of a partition; they were removed.
    """

    files: int = 0
    bytes: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)
    terms: int = 0
    traces: tuple[Trace, ...] = ()
    unreadable: tuple[str, ...] = ()
    audits_removed: int = 0

    @property
    def is_clean(self) -> bool:
        """Nothing was found for certain, and every file could be decoded."""
        return not self.unreadable and not any(trace.is_certain for trace in self.traces)


@dataclass(frozen=True, repr=False)
class ForgetResult(ShownAsText):
    """What `forget` did; with `dry_run`, what it would do.

    Attributes:
        table: The name of the table.
        is_dry_run: Nothing was changed.
        rows_deleted: How many rows each branch had.
        files: Data files that held the rows, in any snapshot, also rows that were deleted before.
        bytes: Their size.
        delete_files: Equality delete files that hold their keys, or may.
        branches: Branches that were rewritten.
        tags: Tags that hold the rows; they were dropped.
        snapshot_ids: Snapshots that were removed, because they lead to one of the files or to its statistics.
        outside: Data files outside the table's directories, which are not deleted.
        left: Branches and tags that hold such rows again, because other writers added some.
        swept: What was deleted, and what waits: for the grace period, or for leases.
        unfinished: What failed after the rows were deleted. Call it again.
        search: What the search found; None as long as files wait.
    """

    table: str
    is_dry_run: bool = False
    rows_deleted: Mapping[str, int] = field(default_factory=dict)
    files: int = 0
    bytes: int = 0
    delete_files: int = 0
    branches: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    snapshot_ids: tuple[int, ...] = ()
    outside: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    swept: SweepResult | None = None
    unfinished: str | None = None
    search: SearchResult | None = None

    @property
    def is_finished(self) -> bool:
        """Nothing waits and nothing is left: the search has found no trace."""
        is_left = bool(self.left or self.outside or self.unfinished)
        return not is_left and self.search is not None and self.search.is_clean

    def as_dict(self) -> dict[str, object]:
        """Return plain values; snapshot ids are strings, because JSON readers round large integers."""
        own = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in ("swept", "search")}
        own |= {"snapshot_ids": [str(each) for each in self.snapshot_ids], "is_finished": self.is_finished}
        found = {name.replace("_", "-"): list(v) if isinstance(v, tuple) else v for name, v in own.items()}
        search = None if self.search is None else asdict(self.search) | {"is_clean": self.search.is_clean}
        found["swept"] = None if self.swept is None else self.swept.as_dict()
        found["search"] = None if search is None else {name.replace("_", "-"): v for name, v in search.items()}
        return found

    def __str__(self) -> str:
        verb = "would forget" if self.is_dry_run else "forgot"
        lines = [
            f"{verb} {sum(self.rows_deleted.values()):,} rows of {self.table}",
            f"  files      {self.files:,} data files ({size_text(self.bytes)}), {self.delete_files:,} with keys",
            f"  branches   {', '.join(self.branches) or 'none'}",
            f"  tags       {', '.join(self.tags) or 'none'}",
            f"  snapshots  {len(self.snapshot_ids):,}",
        ]
        lines += [f"  outside    {location}" for location in self.outside[:SHOWN]]
        if self.left:
            lines.append(f"  left       {', '.join(self.left)}: other writers added such rows; run it again")
        if self.unfinished is not None:
            lines.append(f"  unfinished: {self.unfinished}")
        if self.swept is not None:
            lines.append(str(self.swept))
        if self.search is not None:
            lines += _search_lines(self.search)
        elif not self.is_dry_run:
            lines.append("not finished: run it again when no file waits any more")
        return "\n".join(lines)


def _search_lines(search: SearchResult) -> list[str]:
    verdict = "nothing was found" if search.is_clean else "the rows are not gone"
    what = f"{search.files:,} files ({size_text(search.bytes)}) for matching rows and {search.terms:,} terms"
    lines = [f"searched {what}: {verdict}"]
    for trace in search.traces[:SHOWN]:
        what = f"term {trace.term}" if trace.term else "a matching row"
        how = "" if trace.is_certain else ", perhaps: the beginning of it"
        lines.append(f"  {what}  {trace.location} ({trace.place}{how})")
    lines += [f"  unreadable  {location}" for location in search.unreadable[:SHOWN]]
    return lines
