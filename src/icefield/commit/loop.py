"""Commit to one table or several: load, propose, publish; in the one loop that `retry` holds.

Invariants:
- Publishing is the only step that others can see. Everything before it writes new files that nobody refers to.
- A lost race removes the files of that attempt alone, and proposes again on the new base.
- If the reply to a swap is lost, nothing is removed until a look at the catalog tells what happened.

Raises ConcurrentChange (a concurrent commit contradicts this one), CommitConflict (still losing after all retries),
CommitStateUnknown (it may have landed: look before doing it again), NoSuchTable.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from uuid import UUID

from icefield.ambient import Ambient
from icefield.catalog.catalog import Catalog
from icefield.catalog.lane import NO_LANES, Lanes
from icefield.commit.action import Action, Change, Workshop
from icefield.commit.named_locations import check_proposed_locations
from icefield.commit.publish import Committed, Proposal, Publisher
from icefield.commit.publishers import publisher_of
from icefield.commit.retry import retry
from icefield.errors import ConcurrentChange, IcefieldError, NoSuchTable
from icefield.model.apply import apply, check
from icefield.model.metadata import TableMetadata
from icefield.model.names import TableName
from icefield.storage.store import Store


@dataclass(frozen=True)
class Part:
    """What a commit does to one table."""

    table: TableName
    actions: Sequence[Action]
    expected_uuid: UUID
    known: Committed | None = None  # a version that was loaded before; it is not loaded again while it is the newest


@dataclass(frozen=True)
class Committer:
    """Commits actions to one table, or to several at once."""

    catalog: Catalog
    store: Store
    ambient: Ambient
    lanes: Lanes = NO_LANES

    def commit(self, parts: Sequence[Part], unmoved: Mapping[TableName, str] | None = None) -> list[Committed]:
        """Make all actions in one swap, trying again when others come first.

        unmoved: pointers of tables that were only read, and must still stand where they did.
        """
        unmoved = unmoved or {}
        try:
            return retry(
                self.ambient,
                parts[0].table,
                lambda: self._load(parts, unmoved),
                lambda _, bases: self._attempt(parts, bases, unmoved),
                lambda: self._turn(parts),
            )
        except IcefieldError as error:
            if error.cleanable:
                self._remove([f for part in parts for action in part.actions for f in action.reusable_files()])
            raise

    @contextmanager
    def _turn(self, parts: Sequence[Part]) -> Iterator[None]:
        with ExitStack() as turns:
            # In one order, so that no two transactions wait for each other.
            for table in sorted({part.table for part in parts}, key=str):
                turns.enter_context(self.lanes.turn(table))
            yield

    @property
    def _publisher(self) -> Publisher:
        return publisher_of(self.catalog, self.store, self.ambient)

    def _load(self, parts: Sequence[Part], unmoved: Mapping[TableName, str]) -> tuple[str, "_Bases"]:
        for table, pointer in unmoved.items():
            if self.catalog.pointer(table) != pointer:
                raise ConcurrentChange(
                    f"cannot commit: {table}, which the transaction read, was changed meanwhile",
                    hint="Nothing was changed; run the transaction again",
                )
        bases = _Bases([self._load_base(part) for part in parts])
        return bases.tables[0].location, bases

    def _load_base(self, part: Part) -> Committed:
        base = self._publisher.load(part.table, part.known)
        if not base.metadata.is_table(part.expected_uuid):
            raise NoSuchTable(f"table {part.table} was dropped and made anew since it was opened", hint="Open it again")
        return base

    def _attempt(self, parts: Sequence[Part], bases: "_Bases", unmoved: Mapping[TableName, str]) -> list[Committed]:
        written: list[str] = []
        try:
            proposals = [self._propose(part, base, written) for part, base in zip(parts, bases.tables, strict=True)]
            moved = [proposal for proposal in proposals if proposal.updates]
            if not moved:
                return list(bases.tables)
            for proposal in moved:
                check_proposed_locations(self.store, proposal)
            still = {p.table: p.base.location for p in proposals if not p.updates}
            published = self._publisher.publish(moved, {**still, **unmoved}, written)
        except IcefieldError as error:
            if error.cleanable:
                self._remove(written)
            raise
        self._remove([*published.obsolete, *(f for p in proposals for change in p.changes for f in change.unused)])
        made = {proposal.table: new for proposal, new in zip(moved, published.tables, strict=True)}
        return [made.get(proposal.table, proposal.base) for proposal in proposals]

    def _propose(self, part: Part, base: Committed, written: list[str]) -> Proposal:
        changes: list[Change] = []
        workshop = Workshop(self.store, self.ambient)
        metadata = propose_all(part.actions, base.metadata, workshop, written, changes)
        return Proposal(part.table, base, changes, metadata)

    def _remove(self, locations: Sequence[str]) -> None:
        remove_quietly(self.store, locations)


def propose_all(
    actions: Sequence[Action],
    base: TableMetadata,
    workshop: Workshop,
    written: list[str],
    changes: list[Change] | None = None,
) -> TableMetadata:
    """Propose actions, each on the table as the previous one left it.

    written: learns of the files for this base. changes: learns of what was proposed, in order.
    """
    for action in actions:
        change = action.propose(base, workshop)
        written.extend(change.files)
        check(base, change.requirements)
        if change.updates:
            base = apply(base, change.updates, workshop.ambient.now_ms())
            if changes is not None:
                changes.append(change)
    return base


@dataclass(frozen=True)
class _Bases:
    """The tables as an attempt finds them; the first one's properties say how often to try."""

    tables: Sequence[Committed]

    @property
    def properties(self) -> Mapping[str, str]:
        return self.tables[0].metadata.properties


def remove_quietly(store: Store, locations: Sequence[str]) -> None:
    """Remove files that nobody refers to; one that cannot be removed is left to the collector."""
    for location in locations:
        try:
            store.delete(location)
        except IcefieldError:
            continue
