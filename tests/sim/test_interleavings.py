"""Writers that meet, in every order in which their calls to the catalog can fall: no update is lost in any of them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations_with_replacement, permutations
from random import Random

import pytest
from tests.effort import scaled
from tests.sim.actor import arrow
from tests.sim.explore import explore
from tests.sim.model import Effect, Fate, Intent, Violation, appended, overwritten
from tests.sim.reading import Rows
from tests.sim.scheduler import Choose, Operation
from tests.sim.simulation import WAREHOUSE, Simulation, rows_of
from tests.sim.world import NO_FAULTS, SimulatedAmbient

from icefield.ambient import SeededAmbient
from icefield.backend import Backend
from icefield.catalog.catalog import Entry, PointerSwap, check_pointer
from icefield.catalog.memory import MemoryCatalog
from icefield.lake import Lake
from icefield.model.names import parse_table_name
from icefield.model.snapshot import MAIN
from icefield.storage.memory import MemoryStore
from icefield.table.table import Table

NAME = "s.t"
KEY = 1
CALLS = 3  # at least so many, of a writer to the catalog, before its swap; one more if it loads the table again first
START: Rows = ((1, 0), (2, 0))
PAIRS = list(combinations_with_replacement(("append", "overwrite", "delete"), 2))
TRIPLES = [("append",) * 3, ("append", "overwrite", "delete"), ("overwrite", "overwrite", "delete")]
# Two writers are searched to the end; three so far in the quick run, further in the normal one, furthest in a deep one.
MOST_OF_THREE, MORE_OF_THREE = 12, scaled(25)


class Meeting(Simulation):
    """A run in which nothing fails; only calls to the catalog let others go first, and nobody waits for a clock."""

    def __init__(self, choose: Choose, kinds: Sequence[str]) -> None:
        super().__init__(0, NO_FAULTS, choose)
        self.clock = _Timeless()
        files, pointer = _start()
        for location, data in files.items():
            self.store.put_new(location, data)
        self.catalog.create_namespace(("s",))
        self.catalog.swap([PointerSwap(parse_table_name(NAME), None, pointer)])
        self.judge.begin(NAME, pointer)
        for number, kind in enumerate(kinds, 1):
            self.scheduler.spawn(f"{kind} {number}", self._writer(f"{kind} {number}", kind, (KEY, number)))

    def reach(self, operation: Operation) -> None:
        if operation.is_shared and self.scheduler.current is not None:
            self.scheduler.point(operation)

    def check(self) -> None:
        """What is there must come from the acknowledged changes, one after the other in some order."""
        landed = [intent for intent in self.intents if intent.fate is Fate.ACKNOWLEDGED]
        assert landed, "one of them always lands"
        rows = self.judge.tables[NAME].rows()
        if rows not in {_serial(order) for order in permutations(intent.what for intent in landed)}:
            raise Violation(f"no order of {landed} gives {rows}")

    def _writer(self, name: str, kind: str, row: tuple[int, int]) -> Callable[[], None]:
        lake = self.lake(name)
        lake.backend = replace(lake.backend, ambient=SimulatedAmbient(self.clock, Random(name), NO_FAULTS))
        change, effect = _change(kind, lake.table(NAME), row)
        intent = Intent(name, name, {NAME: effect})
        if kind == "delete":
            intent.idle_if = lambda state: not _keyed(state.rows())
        return lambda: self.attempt(intent, change)


class _Timeless:
    now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class TornCatalog(MemoryCatalog):
    """Checks whether a pointer is where it should be, and moves it, with room for others in between."""

    def __init__(self, reach: Callable[[Operation], None]) -> None:
        super().__init__("torn")
        self._reach = reach

    def swap(self, changes: Sequence[PointerSwap]) -> None:
        for change in changes:
            check_pointer(change, self._entries.get(change.table))
        if changes[0].expected is not None:
            self._reach(Operation("move the pointer"))
        for change in changes:
            self._entries[change.table] = Entry(change.kind, str(change.new))


@pytest.mark.parametrize("loads_again", [False, True], ids=["", "loads again"])
@pytest.mark.parametrize("kinds", PAIRS, ids=" and ".join)
def test_no_order_of_two_writers_loses_an_update(
    kinds: Sequence[str], loads_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if loads_again:
        monkeypatch.setattr("icefield.commit.loop.FRESH_S", -1.0)  # no version is taken for the newest
    found = explore(lambda choose: meet(choose, kinds))
    assert found.whole >= 2 * (CALLS + loads_again), "the swap of each falls between any two calls of the other"


def test_no_order_of_three_writers_loses_an_update_so_far() -> None:
    assert explore(lambda choose: meet(choose, ("append", "overwrite", "delete")), MOST_OF_THREE).whole > 5


@pytest.mark.slow
@pytest.mark.parametrize("kinds", TRIPLES, ids=" and ".join)
def test_no_order_of_three_writers_loses_an_update(kinds: Sequence[str]) -> None:
    assert explore(lambda choose: meet(choose, kinds), MORE_OF_THREE).whole > 5


@pytest.mark.slow
def test_orders_that_are_left_out_end_like_others() -> None:
    ends: dict[bool, set[str]] = {True: set(), False: set()}
    counts = {
        reduced: explore(lambda c, r=reduced: ends[r].add(meet(c, ("append", "delete"))), reduced=reduced).whole  # type: ignore[misc]
        for reduced in ends
    }
    assert ends[True] == ends[False]
    assert counts[True] < counts[False]


def test_a_swap_in_two_steps_is_found_to_lose_an_update() -> None:
    def meet_over_a_torn_catalog(choose: Choose) -> None:
        meeting = Meeting(choose, ("append", "append"))
        torn = TornCatalog(meeting.reach)
        torn.create_namespace(("s",))
        torn.swap([PointerSwap(parse_table_name(NAME), None, meeting.judge.pointers[NAME])])
        meeting.catalog = torn
        meeting.run()
        meeting.check()

    with pytest.raises(Violation):
        explore(meet_over_a_torn_catalog)


def meet(choose: Choose, kinds: Sequence[str]) -> str:
    """Run writers in one order; tell how it ended."""
    meeting = Meeting(choose, kinds)
    meeting.run()
    meeting.check()
    fates = sorted((intent.actor, intent.fate.value) for intent in meeting.intents)
    return f"{fates} {meeting.judge.tables[NAME].rows()}"


def _change(kind: str, table: Table, row: tuple[int, int]) -> tuple[Callable[[], object], Effect]:
    where = f"id = {KEY}"
    if kind == "append":
        return lambda: table.append(arrow((row,))), appended((row,))
    if kind == "overwrite":
        return lambda: table.overwrite(arrow((row,)), where, check_rows=False), overwritten(
            (row,), KEY, MAIN, "serializable"
        )
    return lambda: table.delete(where), overwritten((), KEY, MAIN, "serializable")


def _serial(order: Sequence[str]) -> Rows:
    rows = list(START)
    for kind, number in (what.split() for what in order):
        if kind != "append":
            rows = [row for row in rows if row[0] != KEY]
        if kind != "delete":
            rows.append((KEY, int(number)))
    return tuple(sorted(rows))


def _keyed(rows: Rows) -> Rows:
    return tuple(row for row in rows if row[0] == KEY)


@cache
def _start() -> tuple[dict[str, bytes], str]:
    """Make the table that all runs start from."""
    lake = Lake(Backend(MemoryCatalog(), MemoryStore(), SeededAmbient(1)), WAREHOUSE)
    table = lake.create_table(NAME, "id long, n long")
    table.append(arrow(START))
    assert rows_of(table) == START
    files = {file.location: lake.store.read(file.location) for file in lake.store.list(WAREHOUSE)}
    return files, table.metadata_location
