"""Bugs of collectors to switch on: each is a way in which others deleted live data, and the simulation must find it."""

from collections.abc import Callable
from typing import Any

import pytest

from icefield.catalog.memory import MemoryCatalog
from icefield.commit import open_write
from icefield.leases import sample
from icefield.table.read_lease import ReadLease
from icefield.upkeep import orphans, sweep
from icefield.upkeep.files import NO_TABLE_FILES

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
    _without_second_look(patch)
    proposed_versions_that_are_not_kept(patch)


def leases_that_die_by_the_clock_of_a_machine(patch: pytest.MonkeyPatch) -> None:
    for module in (sweep, orphans):
        patch.setattr(module, "store_time_ms", lambda store, folder, ambient: ambient.now_ms())


def readers_that_do_not_look_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReadLease, "_look_again", lambda _: None)


def writers_that_do_not_renew_before_the_swap(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(open_write.OpenWrite, "before_swap", lambda *_: None)
    swaps_that_are_not_fenced(patch)


def swaps_that_are_not_fenced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryCatalog, "fence", lambda *_: False)
    proposed_versions_that_are_not_kept(patch)


def leases_that_end_with_an_unknown_outcome(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(open_write.OpenWrite, "abandon", open_write.OpenWrite.close)
    proposed_versions_that_are_not_kept(patch)


def proposed_versions_that_are_not_kept(patch: pytest.MonkeyPatch) -> None:
    for module in (sweep, orphans):
        patch.setattr(module, "find_proposed", lambda *_: [])


def death_without_winning(patch: pytest.MonkeyPatch) -> None:
    """A lease is declared dead although it was renewed during the sweep, and nobody tells its holder."""
    patch.setattr(sample, "_win", lambda *_: True)
    patch.setattr(sample, "_is_late", lambda *_: True)


def readers_that_are_not_asked(patch: pytest.MonkeyPatch) -> None:
    for module in (sweep, orphans):
        patch.setattr(module, "find_pinned", lambda *_: NO_TABLE_FILES)


def open_writes_that_are_not_asked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(orphans, "_without_open_writes", lambda files, _: files)
    patch.setattr(sweep, "is_of_write", lambda *_: False)
    proposed_versions_that_are_not_kept(patch)


def orphans_without_reachable_files(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(orphans, "find_reachable", lambda *_: NO_TABLE_FILES)
    _without_second_look(patch)


def _without_second_look(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sweep, "find_reachable", lambda *_: NO_TABLE_FILES)


# Those that the simulation finds within a normal run; tests/upkeep/test_guards.py has a scenario for the others.
PLANTS: tuple[Plant, ...] = (
    leases_sampled_before_the_pointer_moved,
    leases_that_die_by_the_clock_of_a_machine,
    death_without_winning,
    readers_that_are_not_asked,
    open_writes_that_are_not_asked,
    orphans_without_reachable_files,
)
