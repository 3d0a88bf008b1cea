"""Histories for other readers: the table as it ended, one earlier snapshot, and the rows that both must show."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import pyarrow as pa
from tests.histories.features import Features
from tests.histories.history import History
from tests.histories.kept_up import KeptUpHistory
from tests.histories.model import Fields
from tests.peers.normal import Row, normal_rows

from icefield.lake import Lake
from icefield.table.table import Table
from icefield.types.arrow import arrow_schema
from icefield.types.schema import Schema

STEPS = 8


@dataclass(frozen=True)
class Reading:
    """One version of a table, and what is in it; the newest has no snapshot id."""

    table: Table
    snapshot_id: int | None
    fields: Fields
    rows: list[Row]

    @property
    def names(self) -> list[str]:
        return [field.name for field in self.fields]

    def shows(self, read: pa.Table) -> bool:
        """Return whether what somebody read is what there is."""
        if read.num_rows == 0:
            return not self.rows
        return read.column_names == self.names and normal_rows(read, arrow_schema(Schema(self.fields))) == self.rows


def make_history(lake: Lake, reader: str, seed: int, features: Features) -> History:
    """Make the history of a seed, with what a reader knows."""
    return History(Random(seed), lake, f"histories.{reader}_{seed}", features).run(STEPS)


def make_kept_up_history(lake: Lake, reader: str, seed: int, features: Features) -> History:
    """Make the history of a seed in which the table is kept up, too."""
    return KeptUpHistory(Random(seed), lake, f"kept_up.{reader}_{seed}", features).run(2 * STEPS)


def readings(history: History) -> Iterator[Reading]:
    """Return what is to be read of a table that was written at all."""
    if history.past:
        yield Reading(history.table, None, history.model.fields, history.model.normal_rows())
        middle = history.past[len(history.past) // 2]
        yield Reading(history.table, middle.snapshot_id, middle.fields, middle.rows)
