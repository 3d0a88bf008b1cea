"""What the statements of a lake share: the current namespace, an open transaction, and what names refer to.

A `SqlSession` belongs to a `Lake` handle, not to a Spark session, so that two lakes in one Spark session do not
interfere. A `Run` is one statement: its text, its parameters and DataFrames, and the engine of its queries.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from icefield.catalog.catalog import Kind
from icefield.dml.subqueries import find_relation
from icefield.engine.choose import LOCAL, EngineName
from icefield.engine.queries.probe import ProbedPlan
from icefield.engine.rows import has_session, load_spark_engine
from icefield.errors import IcefieldError, InvalidInput, NoSuchTable, Unsupported
from icefield.inspect.metadata_tables import METADATA_TABLES
from icefield.lake import Lake
from icefield.model.names import Namespace, TableName
from icefield.sql.syntax.cursor import Name, Parameters
from icefield.sql.syntax.place import Place, pointing_at
from icefield.storage.store import StaysInProcess
from icefield.table.table import Table
from icefield.table.transaction import Transaction

BRANCH, TAG = "branch_", "tag_"
GLOBAL = "global_temp"
CHANGES = "changes"  # what each snapshot of a table changed; only queries read it


@dataclass(frozen=True)
class Relation:
    """What a name refers to: a table or view, and of a table possibly a branch, a tag or a metadata table."""

    name: TableName
    kind: Kind
    ref: str | None = None
    is_tag: bool = False
    inspects: str | None = None


@dataclass
class SqlSession(StaysInProcess):
    """What lasts from one statement to the next.

    cached: DataFrames whose rows Spark keeps, by what they read. pinned: tables that are read at these versions.
    """

    lake: Lake
    namespace: Namespace = ()
    transaction: Transaction | None = None
    temporary_views: dict[str, str] = field(default_factory=dict)
    cached: dict[str, Any] = field(default_factory=dict)
    probed: dict[Hashable, ProbedPlan] = field(default_factory=dict)
    pinned: Mapping[TableName, Table] = field(default_factory=dict)


@dataclass(frozen=True)
class Rows:
    """The result of a statement that is not a query: few rows, in this process."""

    table: pa.Table

    @classmethod
    def of(cls, schema: pa.Schema, rows: Sequence[Sequence[object]]) -> "Rows":
        """Build a result from rows."""
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
        return cls(pa.Table.from_arrays(arrays, schema=schema))


NOTHING = Rows(pa.table({}))


@dataclass(frozen=True)
class Run:
    """One statement in execution: its session, parameters, DataFrames by name, and the engine of queries.

    common: queries that WITH names before a change of rows, by name in lower case. text: the statement as written.
    """

    session: SqlSession
    parameters: Parameters = field(default_factory=Parameters)
    frames: Mapping[str, Any] = field(default_factory=dict)
    engine: EngineName | None = None
    is_dry_run: bool = False
    common: Mapping[str, Place] = field(default_factory=dict)
    text: str = ""

    @property
    def lake(self) -> Lake:
        """The lake."""
        return self.session.lake

    def find(self, name: Name) -> Relation | None:
        """Return what a name refers to; None if it is not in the lake."""
        catalog, namespace = self.lake.catalog, self.session.namespace
        found = self._find_named(name.parts)
        if found is not None:
            return found
        *owner, last = name.parts
        table = find_relation(catalog, tuple(owner), namespace) if owner else None
        known = None if table is None else catalog.find(table)
        if table is None or known is None or known.kind is not Kind.TABLE:
            return None
        if last.lower() in METADATA_TABLES or last.lower() == CHANGES:
            return Relation(table, Kind.TABLE, inspects=last.lower())
        for prefix in (BRANCH, TAG):
            if last.lower().startswith(prefix):
                return Relation(table, Kind.TABLE, ref=last[len(prefix) :], is_tag=prefix == TAG)
        return None

    def find_temporary(self, parts: tuple[str, ...]) -> str | None:
        """Return the key of the lake's temporary view that a name refers to."""
        key = ".".join(parts).lower()
        is_possible = len(parts) == 1 or (len(parts) == 2 and parts[0].lower() == GLOBAL)
        return key if is_possible and key in self.session.temporary_views else None

    def is_hidden(self, name: Name) -> bool:
        """Return whether a temporary view, of the lake or of an active Spark session, has a name of one part."""
        if len(name.parts) > 1:
            return False
        if self.find_temporary(name.parts) is not None:
            return True
        if self.engine == LOCAL or not has_session(self.lake.source.sessions.session):
            return False
        return load_spark_engine().sql(self.lake.spark).has_temporary_view(name.parts[0])

    def find_changed(self, name: Name, verb: str) -> Relation | None:
        """Return what a name refers to that a statement changes. Temporary views, which hide tables, are refused."""
        found = self.find(name)
        if self.is_hidden(name):
            hint = (
                "Change the tables that it reads" if found is None else f"Write {found.name} for the {found.kind.value}"
            )
            raise name.place.error(f"cannot {verb} {name}: it is a temporary view", hint=hint, kind=Unsupported)
        return found

    def table(self, name: Name, verb: str = "change") -> Table:
        """Open a table to change it, possibly at a branch; in a transaction, as the transaction sees it."""
        with pointing_at(name.place):
            found = self.find_changed(name, verb)
            if found is None:
                raise self.missing(name)
            if found.kind is Kind.VIEW:
                raise Unsupported(f"cannot {verb} {found.name}: it is a view", hint="Change the tables that it reads")
            if found.inspects is not None:
                raise Unsupported(f"cannot {verb} {name}: it is a metadata table")
            if found.is_tag:
                raise Unsupported(f"cannot {verb} {name}: tags do not change", hint="Create a branch at the tag")
            table = self.open(found.name)
            return table if found.ref is None else table.at(found.ref)

    def open(self, name: TableName) -> Table:
        """Open a table; in a transaction, as the transaction sees it."""
        transaction = self.session.transaction
        return self.lake.table(str(name)) if transaction is None else transaction.table(str(name))

    def new_name(self, name: Name) -> TableName:
        """Return the full name of a table or view that may not exist yet."""
        parts = name.parts if len(name.parts) > 1 else (*self.session.namespace, *name.parts)
        if len(parts) > 2 and parts[0] == self.lake.catalog.name:
            parts = parts[1:]
        with pointing_at(name.place):
            if len(parts) == 1:
                raise NoSuchTable(f"{parts[0]!r} has no namespace", hint="Write it as <namespace>.<name>, or USE one")
            if any("." in part for part in parts):
                raise InvalidInput(
                    f"a part of the name {name.place.text} has a dot in it", hint="Choose a name without dots"
                )
            return TableName(tuple(parts[:-1]), parts[-1])

    def missing(self, name: Name, kind: str = "table or view") -> IcefieldError:
        """Return the error of a name that does not exist, with names that are near."""
        known = [*self.lake.tables(), *self.lake.views()]
        near = get_close_matches(str(name).lower(), [each.lower() for each in known], n=3)
        exact = [each for each in known if each.lower() in near]
        hint = f"Did you mean {' or '.join(exact)}?" if exact else f"There is: {', '.join(known[:10]) or 'none'}"
        return name.place.error(f"no {kind} {name} in the lake", hint=hint, kind=NoSuchTable)

    def _find_named(self, parts: tuple[str, ...]) -> Relation | None:
        name = find_relation(self.lake.catalog, parts, self.session.namespace)
        found = None if name is None else self.lake.catalog.find(name)
        return None if name is None or found is None else Relation(name, found.kind)


class Statement(Protocol):
    """A parsed statement."""

    def run(self, run: Run) -> Rows | Any:
        """Execute it; return rows, or a Spark DataFrame that is not read yet."""
        ...


@runtime_checkable
class Explained(Protocol):
    """A statement that EXPLAIN takes."""

    def explain(self, run: Run, mode: str) -> str:
        """Return what it would do, without doing it. mode: `simple`, `extended`, `codegen`, `cost`, `formatted`."""
        ...
