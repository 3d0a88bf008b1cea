"""A row-level change in the terms that both engines share: its clauses, its settings, and its result.

    DELETE   one clause for the rows that match a filter
    UPDATE   the same, with assignments
    MERGE    source rows matched with rows of the table, and clauses in order: the first that applies counts

A row of the table is identified by its data file and its position. A changed row is written to a new data file, and
its old position is deleted: by a delete file, or by rewriting or dropping its data file (`FileEnds`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pyarrow as pa

from icefield.codec.manifest.rows import DataFiles
from icefield.commit.validate.read_set import KeyRows
from icefield.expr.bind.bound import Bound
from icefield.expr.values.scope import SOURCE, TARGET, Moment
from icefield.model.metadata import TableMetadata
from icefield.model.names import TableName
from icefield.model.snapshot import MAIN
from icefield.parquet.write.delete_files import DeleteEntry, delete_locations
from icefield.parquet.write.plan import WritePlan
from icefield.plan.plan import ScanPlan
from icefield.types.arrow_keys import KeyIndex
from icefield.types.datatypes import NestedField
from icefield.types.schema import Schema

SHOWN_CHARACTERS = 500  # of a row in an error


class When(StrEnum):
    """The rows that a clause is for."""

    MATCHED = "when matched"
    NOT_MATCHED = "when not matched"
    NOT_MATCHED_BY_SOURCE = "when not matched by source"


class Effect(StrEnum):
    """What a clause does with a row."""

    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"


@dataclass(frozen=True)
class SourceColumn:
    """The value of a column of the source, or of a field inside a struct, by exact names."""

    path: tuple[str, ...]


@dataclass(frozen=True)
class Assignment:
    """A new value for a column of the table, or for a field inside a struct.

    path: exact names. value: SQL text, a literal (`icefield.lit`), a Spark Column, or a `SourceColumn`.
    """

    path: tuple[str, ...]
    value: object


@dataclass(frozen=True)
class Clause:
    """One clause. condition: SQL text or a Spark Column; None for all rows that the clause is for.

    An update leaves columns and fields that it does not assign as they are; an insert gives them their default.
    """

    when: When
    effect: Effect
    condition: object | None = None
    assignments: tuple[Assignment, ...] = ()


@dataclass(frozen=True)
class KeyPair:
    """Columns that ON compares by `=`: one of the table and one of the source, by their exact names."""

    target: str
    source: str


@dataclass(frozen=True)
class Merge:
    """What a MERGE does.

    on: the whole condition, as SQL text or a Spark Column; None if `keys` are all of it. keys: those parts of it that
    compare a column of the table with one of the source. rest: SQL text that pairs with equal keys must match too; None
    if there is none, or if `on` is not text. target_name, source_name: how expressions refer to the two sides.
    has_unique_keys: a null in a key column of the source, or two source rows with one key, is an error.
    """

    on: object | None
    keys: tuple[KeyPair, ...]
    rest: str | None
    clauses: tuple[Clause, ...]
    target_name: str = TARGET
    source_name: str = SOURCE
    has_unique_keys: bool = False

    def has(self, when: When) -> bool:
        """Return whether there is a clause of a kind."""
        return any(clause.when is when for clause in self.clauses)

    @property
    def refuses_double_matches(self) -> bool:
        """Whether a row of the table that matches two source rows is an error; deleting it twice is not."""
        matched = [clause for clause in self.clauses if clause.when is When.MATCHED]
        deletes_all = len(matched) == 1 and matched[0].effect is Effect.DELETE and matched[0].condition is None
        return bool(matched) and not deletes_all


@dataclass(frozen=True)
class MergeSource:
    """The source rows of a MERGE. rows: an Arrow table, or a DataFrame that returns the same rows each time.

    incoming: their columns, with their own types. row_count: how many there are, if that is known. key_index: of the
    keys of rows without a null key, if it was made. fetched: the rows as an Arrow table, if they are few.
    """

    rows: Any
    incoming: Schema
    row_count: int | None = None
    key_index: KeyIndex | None = None
    fetched: pa.Table | None = None


@dataclass(frozen=True)
class SourceKeys:
    """What the source rows say about the rows of the table that they can match.

    where: a filter that all those rows match, as far as the keys tell. keys: the distinct keys as columns of the table;
    None if there are too many for this process, or if ON has none. rows: how many source rows there are. fetched: all
    source rows, if they are few.
    """

    where: Bound
    keys: KeyRows | None
    rows: int
    fetched: pa.Table | None = None


@dataclass(frozen=True)
class ChangeSettings:
    """The settings of a change, for the tasks that run it; picklable.

    mode: copy-on-write, merge-on-read or auto (`icefield.properties.table`). rows: of new data files; they keep row
    lineage. deletes: of new delete files; None if the format has none. has_vectors: these are deletion vectors, which
    include the positions that were deleted before. is_dry_run: nothing is written, only counted. moment: the time that
    expressions see, the same for all rows. has_order: the table has a sort order.
    """

    mode: str
    rows: WritePlan
    deletes: WritePlan | None
    has_vectors: bool
    is_dry_run: bool = False
    moment: Moment | None = None
    has_order: bool = False


@dataclass(frozen=True)
class Relations:
    """The tables and views of the lake that the subqueries of a change read.

    names: by the name that expressions have for each. head: the `TableHead` of the changed table, from which the others
    are opened. base, ref: the version of the changed table that its own name refers to.
    """

    names: Mapping[str, TableName] = field(default_factory=dict)
    head: Any = None
    base: TableMetadata | None = None
    ref: str = MAIN


@dataclass(frozen=True)
class ChangePlan:
    """The inputs of a change.

    scan: the files that may hold rows to change. relations: what subqueries read. metadata_columns: those that the
    filter uses. target_name: how the expressions of a change without a source refer to the table.
    """

    scan: ScanPlan
    settings: ChangeSettings
    relations: Relations = field(default_factory=Relations)
    metadata_columns: tuple[NestedField, ...] = ()
    target_name: str = TARGET


@dataclass(frozen=True)
class RowCounts:
    """How many rows a change handled. copied: rows that only moved to a new file."""

    matched: int = 0
    updated: int = 0
    deleted: int = 0
    inserted: int = 0
    copied: int = 0

    def __add__(self, other: "RowCounts") -> "RowCounts":
        return RowCounts(
            self.matched + other.matched,
            self.updated + other.updated,
            self.deleted + other.deleted,
            self.inserted + other.inserted,
            self.copied + other.copied,
        )


@dataclass(frozen=True)
class Changed:
    """The result of a change, or of one task of it.

    files: new data files. deletes: delete files for touched data files that stay. rewritten: data files whose other
    rows were copied to new ones. dropped: data files without other rows. delete_files: the number of deletes; in a dry
    run, which writes none, of those that would be written. reads_whole_table: a subquery read the changed table.
    """

    files: Sequence[DataFiles] = ()
    deletes: Sequence[DeleteEntry] = ()
    rewritten: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    counts: RowCounts = field(default_factory=RowCounts)
    delete_files: int = 0
    reads_whole_table: bool = False

    @property
    def locations(self) -> list[str]:
        """All files that were written."""
        return [
            *(path for files in self.files for path in files.file_path.to_pylist()),
            *delete_locations(self.deletes),
        ]

    @property
    def changes_nothing(self) -> bool:
        """Whether no row was changed."""
        return self.counts.updated + self.counts.deleted + self.counts.inserted == 0

    @classmethod
    def total(cls, parts: Iterable["Changed"]) -> "Changed":
        """Combine the results of tasks."""
        held = list(parts)
        return cls(
            [files for part in held for files in part.files],
            [entry for part in held for entry in part.deletes],
            frozenset().union(*(part.rewritten for part in held)),
            frozenset().union(*(part.dropped for part in held)),
            sum((part.counts for part in held), RowCounts()),
            sum(part.delete_files for part in held),
        )


def show_row(row: Mapping[str, object]) -> str:
    """Return a row as text for an error."""
    text = str(dict(row))
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"
