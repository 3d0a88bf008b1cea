"""Bugs of collectors to switch on, one guard each: the simulation must find every one.

The names of guards are those of docs/proof.md, which also says where the guards without a plant here are tested.
"""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from icefield.catalog.memory import MemoryCatalog
from icefield.commit import loop
from icefield.commit.actions import rewrite
from icefield.commit.open_write import OpenWrite
from icefield.commit.operations import retired_metadata
from icefield.commit.snapshot.moved_rows import MovedRows
from icefield.leases import sample
from icefield.marks import clear, mark
from icefield.marks.files import NO_TABLE_FILES, FileKind
from icefield.table.read_lease import ReadLease
from icefield.upkeep import expire, orphans, owned, reachable, sweep
from icefield.upkeep.dropped import DroppedTables

Plant = Callable[[pytest.MonkeyPatch], None]


def leases_sampled_before_the_pointer_moved(patch: pytest.MonkeyPatch) -> None:
    """The leases are those that the process saw the last time."""
    real, seen = sweep.check_leases, dict[Any, Any]()

    def check_leases(backend: Any, name: Any, *rest: Any, **more: Any) -> Any:
        key = id(backend), name
        found, seen[key] = seen.get(key), real(backend, name, *rest, **more)
        return found or sweep.LeaseCheck([])

    patch.setattr(sweep, "check_leases", check_leases)


def metadata_loaded_before_the_listing(patch: pytest.MonkeyPatch) -> None:
    real = orphans._find

    def find(head: Any, base: Any, *rest: Any, **more: Any) -> Any:
        class Stale:
            backend, name = head.backend, head.name

            def load(self) -> Any:
                return base

        return real(Stale(), base, *rest, **more)  # type: ignore[arg-type]

    patch.setattr(orphans, "_find", find)


def no_second_look_at_the_sweep(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sweep, "find_reachable", lambda *_: NO_TABLE_FILES)


def leases_that_die_by_the_clock_of_a_machine(patch: pytest.MonkeyPatch) -> None:
    for module in (sweep, orphans):
        patch.setattr(module, "store_time_ms", lambda store, folder, ambient: ambient.now_ms())


def readers_that_do_not_look_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReadLease, "_look_again", lambda _: None)


def writers_that_do_not_renew_before_the_swap(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OpenWrite, "before_swap", lambda *_: None)


def lists_deleted_before_data(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(clear, "FileKind", tuple(reversed(FileKind)))


def dropped_tables_known_by_name(patch: pytest.MonkeyPatch) -> None:
    def is_live(tables: DroppedTables, dropped: Any, _: Any) -> bool:
        return any(str(name) == dropped.table for name in tables.backend.catalog.entries())

    patch.setattr(DroppedTables, "_is_live", is_live)


def deletes_that_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = reachable._live_files

    def without_deletes(*arguments: Any) -> Any:
        found = real(*arguments)
        return found.filter(pc.not_equal(found.kind, int(FileKind.DELETES)))

    patch.setattr(reachable, "_live_files", without_deletes)


def marks_that_only_their_writer_sweeps(patch: pytest.MonkeyPatch) -> None:
    """A process that dies between mark and sweep leaves a mark that nobody works off."""
    written: dict[str, str] = {}
    real_write, real_list = mark.write_mark, mark.list_marks

    def write(*arguments: Any) -> str:
        name = real_write(*arguments)
        written[name] = threading.current_thread().name
        return name

    def own(*arguments: Any) -> Any:
        return [each for each in real_list(*arguments) if written[each.name] == threading.current_thread().name]

    for module in (expire, orphans):
        patch.setattr(module, "write_mark", write)
    patch.setattr(sweep, "list_marks", own)


def death_without_winning(patch: pytest.MonkeyPatch) -> None:
    """A lease counts as dead although it was renewed during the sweep, and nobody tells its holder."""
    patch.setattr(sample, "_win", lambda *_: True)


def death_at_first_sight(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sample, "_is_late", lambda *_: True)


def swaps_that_are_not_fenced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryCatalog, "fence", lambda *_: False)


def leases_that_end_with_an_unknown_outcome(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OpenWrite, "abandon", OpenWrite.close)


def proposed_versions_that_are_not_kept(patch: pytest.MonkeyPatch) -> None:
    for module in (sweep, orphans):
        patch.setattr(module, "find_proposed", lambda *_: [])


def collectors_that_give_up_for_others(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sweep, "_LOOKS", 1)


def compactions_without_a_row_map(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rewrite, "encode_row_map", lambda _: None)


def row_maps_that_are_wrong(patch: pytest.MonkeyPatch) -> None:
    """Positions of the old file are taken for those of the new one."""
    patch.setattr(MovedRows, "trace", lambda self, source, at: {self.targets[0]: (np.arange(len(at)), at)})


def compactions_that_bring_deleted_rows_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rewrite.RewriteFiles, "_write_deletes", lambda *_: [])


def readers_that_are_not_asked(patch: pytest.MonkeyPatch) -> None:
    for module in (sweep, orphans):
        patch.setattr(module, "find_pinned", lambda *_: NO_TABLE_FILES)


def open_writes_that_are_not_asked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sweep, "is_of_write", lambda *_: False)


def orphans_without_reachable_files(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(orphans, "find_reachable", lambda *_: NO_TABLE_FILES)


def audits_that_are_not_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(clear, "write_audit", lambda *_: "memory://lake/none.parquet")


def commits_that_do_not_ask_leases(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(retired_metadata, "sample_leases", lambda *_: [])


def metadata_files_that_go_at_once(patch: pytest.MonkeyPatch) -> None:
    """A commit deletes what left the log, without a mark and an audit."""

    def look(backend: Any, _: Any, landed: Any) -> None:
        for location in retired_metadata._find_retired(backend, landed, set()):
            backend.store.delete(location)

    patch.setattr(loop, "look_after_commit", look)


def foreign_files_that_are_not_spared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(owned, "_FROM_OUTSIDE", "^$")


# A seed that finds each, when this was written; the test tries others after it.
PLANTS: dict[Plant, int] = {
    leases_sampled_before_the_pointer_moved: 17,  # G1
    metadata_loaded_before_the_listing: 136,  # G2
    leases_that_die_by_the_clock_of_a_machine: 5,  # G4
    readers_that_do_not_look_again: 932,  # G5
    writers_that_do_not_renew_before_the_swap: 175,  # G6
    lists_deleted_before_data: 11,  # G7
    dropped_tables_known_by_name: 122,  # G8
    deletes_that_are_forgotten: 18,  # G11
    marks_that_only_their_writer_sweeps: 55,  # G13
    audits_that_are_not_written: 2,  # G13
    death_at_first_sight: 5,  # G14
    death_without_winning: 33,  # G14
    leases_that_end_with_an_unknown_outcome: 119,  # G15
    swaps_that_are_not_fenced: 1293,  # G15
    proposed_versions_that_are_not_kept: 3485,  # G9, G15
    compactions_without_a_row_map: 59,  # G19
    row_maps_that_are_wrong: 59,  # G19
    compactions_that_bring_deleted_rows_back: 98,  # G19
    readers_that_are_not_asked: 17,
    open_writes_that_are_not_asked: 73,
    orphans_without_reachable_files: 5,
    collectors_that_give_up_for_others: 65,  # G18
    foreign_files_that_are_not_spared: 8,
    metadata_files_that_go_at_once: 7,
    commits_that_do_not_ask_leases: 35,
}
