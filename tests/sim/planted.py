"""Bugs to switch on: each is a way in which others lost or doubled commits, and the simulation must find it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.sim.scheduler import Operation
from tests.sim.simulation import Simulation

from icefield.catalog.catalog import Entry, PointerSwap
from icefield.catalog.memory import MemoryCatalog
from icefield.commit.actions import append
from icefield.commit.replay.branches import RebaseBranch
from icefield.commit.replay.sources import OfVersion
from icefield.commit.retry import Outcome, ResolvedSwap
from icefield.commit.snapshot.merge_manifests import merge_manifests
from icefield.commit.validate.read_set import ReadSet
from icefield.commit.validate.transaction_reads import Reads
from icefield.dml import merge
from icefield.errors import CommitStateUnknown
from icefield.history import lake_refs
from icefield.model.snapshot import Snapshot
from icefield.table.lakes.refs import LakeVersion

Plant = Callable[[pytest.MonkeyPatch], None]


def swap_without_compare(patch: pytest.MonkeyPatch) -> None:
    def swap(catalog: Any, changes: Sequence[PointerSwap]) -> None:
        for change in changes:
            catalog._entries[change.table] = Entry(change.kind, str(change.new))

    patch.setattr(MemoryCatalog, "swap", swap)


def no_check_of_what_was_added(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReadSet, "check_added_rows", lambda *_: None)


def keys_of_a_merge_that_nobody_reads(patch: pytest.MonkeyPatch) -> None:
    read_set_of = merge._read_set

    def without_keys(*arguments: Any) -> ReadSet:
        return replace(read_set_of(*arguments), keys=None, isolation="snapshot")

    patch.setattr(merge, "_read_set", without_keys)


def check_of_the_last_snapshot_only(patch: pytest.MonkeyPatch) -> None:
    snapshots_since = ReadSet.snapshots_since

    def last(read_set: ReadSet, base: Any) -> Iterator[Snapshot]:
        yield from list(snapshots_since(read_set, base))[:1]

    patch.setattr(ReadSet, "snapshots_since", last)


def cleaning_in_doubt(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CommitStateUnknown, "cleanable", True)


def landed_taken_for_lost(patch: pytest.MonkeyPatch) -> None:
    _mistake(patch, Outcome.LANDED, Outcome.LOST)


def lost_taken_for_landed(patch: pytest.MonkeyPatch) -> None:
    _mistake(patch, Outcome.LOST, Outcome.LANDED)


def doubt_taken_for_conflict(patch: pytest.MonkeyPatch) -> None:
    _mistake(patch, Outcome.UNKNOWN, Outcome.LOST)


def one_table_after_the_other(patch: pytest.MonkeyPatch) -> None:
    def make_swap(simulation: Any, changes: Sequence[PointerSwap], intent: Any) -> None:
        for number, change in enumerate(changes):
            if number and simulation.scheduler.current is not None:
                simulation.reach(Operation("between two tables"))
            simulation.catalog.swap([change])
        simulation.judge.swapped(changes, intent)

    patch.setattr(Simulation, "_make_swap", make_swap)


def merge_that_drops_a_manifest(patch: pytest.MonkeyPatch) -> None:
    def merge(*arguments: Any) -> Any:
        merged = merge_manifests(*arguments)
        return merged and replace(merged, manifests=merged.manifests[1:])

    patch.setattr(append, "merge_manifests", merge)


def reads_that_nobody_checks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Reads, "check", lambda *_: None)


def keys_that_nobody_looks_for(patch: pytest.MonkeyPatch) -> None:
    for module in ("commit.actions.append", "commit.actions.snapshot_update"):
        patch.setattr(f"icefield.{module}.was_made", lambda *_: False)
    patch.setattr("icefield.dml.write.find_landed", lambda *_: None)


def a_rebase_that_forgets_the_last_snapshot(patch: pytest.MonkeyPatch) -> None:
    line_of = RebaseBranch._line
    patch.setattr(RebaseBranch, "_line", lambda *arguments: line_of(*arguments)[:-1])


def a_rebase_of_all_rows(patch: pytest.MonkeyPatch) -> None:
    """What the branch has, not what it changed, comes after main."""
    resolve = OfVersion.resolve

    def mistaken(source: OfVersion, base: Any, ref: str) -> Any:
        request = resolve(source, base, ref)
        return request and replace(request, before=None)

    patch.setattr(OfVersion, "resolve", mistaken)


def collisions_that_nobody_looks_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("icefield.commit.replay.apply._Proposal._check", lambda *_: None)


def tables_named_one_after_the_other(patch: pytest.MonkeyPatch) -> None:
    change = lake_refs._change

    def change_each(backend: Any, tables: Sequence[Any], make: Any, *, dry_run: bool) -> dict[Any, Any]:
        made = (change(backend, [table], make, dry_run=dry_run) for table in tables)
        return {name: at for each in made for name, at in each.items()}

    patch.setattr(lake_refs, "_change", change_each)


def tables_published_one_after_the_other(patch: pytest.MonkeyPatch) -> None:
    def publish(version: LakeVersion) -> None:
        for name in version.tables():
            version._lake.table(name).publish(version.name)

    patch.setattr(LakeVersion, "publish", publish)


def a_table_that_is_not_published_with_the_others(patch: pytest.MonkeyPatch) -> None:
    publish = LakeVersion.publish

    def publish_some(version: LakeVersion) -> Any:
        return publish(LakeVersion(version._lake, version.name, sorted(version._uuids)[:1]))

    patch.setattr(LakeVersion, "publish", publish_some)


def _mistake(patch: pytest.MonkeyPatch, one: Outcome, other: Outcome) -> None:
    look = ResolvedSwap._look

    def mistaken(swap: ResolvedSwap, change: PointerSwap) -> Outcome:
        found = look(swap, change)
        return other if found is one else found

    patch.setattr(ResolvedSwap, "_look", mistaken)


PLANTS: tuple[Plant, ...] = (
    swap_without_compare,
    no_check_of_what_was_added,
    keys_of_a_merge_that_nobody_reads,
    check_of_the_last_snapshot_only,
    cleaning_in_doubt,
    landed_taken_for_lost,
    lost_taken_for_landed,
    doubt_taken_for_conflict,
    one_table_after_the_other,
    merge_that_drops_a_manifest,
    reads_that_nobody_checks,
    keys_that_nobody_looks_for,
)
# Of branches; they are looked for in seeds that are about these.
PLANTS_OF_BRANCHES: tuple[Plant, ...] = (
    a_rebase_that_forgets_the_last_snapshot,
    a_rebase_of_all_rows,
    collisions_that_nobody_looks_for,
    tables_named_one_after_the_other,
    tables_published_one_after_the_other,
    a_table_that_is_not_published_with_the_others,
)
