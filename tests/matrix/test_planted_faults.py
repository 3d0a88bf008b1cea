"""The read matrix finds the faults that it was built for: each is planted again, and a known case must show it.

Before the fault is planted the same case must show nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import pytest
from pyspark.sql import SparkSession
from tests.histories.model import KEY_ID
from tests.matrix import reading_paths, reading_tables
from tests.matrix.reading_filters import draw_filter, places, truth
from tests.matrix.reading_tables import Drawing
from tests.spark_places import SparkPlace, chosen_place

from icefield.lake import Lake
from icefield.parquet.read.stored_columns import StoredColumns
from icefield.spark.read import file_names
from icefield.spark.read.file_names import Reading
from icefield.types.datatypes import NestedField, Type
from icefield.types.text import parse_type

pytestmark = [
    pytest.mark.every_case,
    pytest.mark.spark,
    pytest.mark.skipif(chosen_place() is SparkPlace.CONNECT, reason="files are written through the JVM"),
]

FILTERS = 8
Widenings = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Fault:
    """Columns that are read under the table's names for them, whatever the files have.

    kind: the type of these columns. widenings: what columns of the case may be widened from and to.
    """

    name: str
    seed: int
    kind: str
    widenings: Widenings = ()

    def concerns(self, kind: Type) -> bool:
        """Return whether a column of a type is read under the table's name."""
        return isinstance(kind, type(parse_type(self.kind)))

    def choose(self, found: StoredColumns | None, own: Sequence[NestedField], **_: bool) -> Reading:
        """Stand in for the choice of names that Spark may push filters by."""
        names = ((f.field_id, f.name) for f in own if self.concerns(f.type))
        return Reading(tuple(names), frozenset(f.field_id for f in own), is_native=True)


FAULTS = (
    Fault("decimals of fewer digits", 2, "decimal(9,2)", (("decimal(9,2)", ("decimal(18,2)", "decimal(38,2)")),)),
    Fault("names that files have for other columns", 3, "long"),
    Fault("zeros of either sign", 3, "double"),
    Fault("milliseconds", 3, "timestamp"),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_found(
    fault: Fault, lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    for constant, value in (("PLAIN", (fault.kind,)), ("PLAIN_3", ()), ("WIDENINGS_3", ())):
        monkeypatch.setattr(reading_tables, constant, value)
    monkeypatch.setattr(reading_tables, "WIDENINGS", fault.widenings or ((fault.kind, ()),))
    case = Drawing(fault.seed, lake, spark).draw()
    model, random = case.model, Random(fault.seed)
    columns = [place for place in places(model.fields) if len(place.fields) == 1 and fault.concerns(place.kind)]
    filters = [draw_filter(random, columns, model.rows) for _ in range(FILTERS)]
    expected = [(each, sorted(row[KEY_ID] for row in model.rows if truth(each, row) is True)) for each in filters]

    def differences() -> list[str]:
        return list(reading_paths.compare_filters(reading_paths.native(spark), case.table, expected, ours=False))

    assert differences() == []
    monkeypatch.setattr(file_names, "_choose_reading", fault.choose)
    found = differences()
    assert found != []
    assert all(" instead of " in each for each in found), "an error shows nothing of the fault"
