"""A simulated process: its lake, its randomness, and how it makes a change under the eyes of the judge."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

import pyarrow as pa
from tests.sim.model import Effect, Intent
from tests.sim.reading import Rows
from tests.sim.simulation import Simulation

from icefield.errors import IcefieldError, InvalidInput, NoSuchSnapshot
from icefield.lake import Lake
from icefield.model.snapshot import MAIN, RefKind
from icefield.table.table import Table

TABLES = ("sim.a", "sim.b")
KEYS = 2
# All kinds of steps; or all meet at one table, and only change rows, by any verb or mostly by row-level ones; or most
# steps are transactions over two tables; or most are about branches, also of both tables at once.
MIXED, HOT, CHANGES, TRANSFERS, BRANCHES = MOODS = ("mixed", "hot", "changes", "transfers", "branches")
LAKE_REF = "z"  # the branch or tag of both tables
COLUMNS = ("id", "n")


@dataclass
class Shared:
    """What all processes know of.

    mood: what kind of steps they make. rows: the number of the newest row. jobs: changes that are
    made under an idempotency key.
    """

    isolation: str
    mood: str = MIXED
    rows: int = 0
    jobs: list["Job"] = field(default_factory=list)


@dataclass(frozen=True)
class Job:
    """A change under an idempotency key, which any process may try any number of times."""

    idempotency_key: str
    table: str
    key: int | None
    rows: Rows


@dataclass
class Actor:
    """One process."""

    name: str
    simulation: Simulation
    lake: Lake
    rng: Random
    shared: Shared

    def table(self) -> Table:
        """Open one of the tables."""
        return self.lake.table(self.choose_table())

    def choose_table(self) -> str:
        """Name one of the tables."""
        return TABLES[0] if self.shared.mood in (HOT, CHANGES) else self.rng.choice(TABLES)

    def branch(self) -> Table:
        """Open a table, sometimes at a branch."""
        table = self.table()
        branches = [name for name, ref in table.refs().items() if ref.kind is RefKind.BRANCH and name != MAIN]
        if not branches or self.rng.random() >= (0.7 if self.shared.mood == BRANCHES else 0.4):
            return table
        try:
            return table.at(self.rng.choice(branches))
        except NoSuchSnapshot:  # it was dropped just now
            return table

    def rows(self, most: int = 2) -> Rows:
        """Make rows that nobody else has, under keys that others have too."""
        made = []
        for _ in range(self.rng.randrange(1, most + 1)):
            self.shared.rows += 1
            made.append((self.rng.randrange(KEYS), self.shared.rows))
        return tuple(made)

    def attempt(
        self,
        what: str,
        effects: Mapping[str, Effect],
        change: Callable[[], object],
        refusals: tuple[type[IcefieldError], ...] = (),
        **more: object,
    ) -> None:
        """Try to make a change; a branch may be dropped before that, and that of both tables become a tag."""
        dropped: tuple[type[IcefieldError], ...] = (NoSuchSnapshot,) if ".at(" in what else ()
        if f".at({LAKE_REF!r})" in what:
            dropped += (InvalidInput,)
        intent = Intent(self.name, what, effects, refusals=(*refusals, *dropped), **more)  # type: ignore[arg-type]
        self.simulation.attempt(intent, change)


def ref_of(table: Table) -> str:
    """Tell the branch that a handle writes to."""
    return table._ref


def arrow(rows: Rows) -> pa.Table:
    """Make Arrow data of rows."""
    return pa.table({name: pa.array([row[at] for row in rows], pa.int64()) for at, name in enumerate(COLUMNS)})
