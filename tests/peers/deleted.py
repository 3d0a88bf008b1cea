"""Tables with equality deletes, and the same after their conversion, for other engines to read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from icefield import Lake, Table

SCHEMA = "id long, p string, n long"
COLUMNS = ("id", "p", "n")
Row = tuple[int, str, int]


def rows(*given: Row) -> pa.Table:
    return pa.table({name: [r[at] for r in given] for at, name in enumerate(COLUMNS)})


def sorted_rows(table: pa.Table) -> list[Row]:
    return sorted((r["id"], r["p"], r["n"]) for r in table.select(list(COLUMNS)).to_pylist())


@dataclass(frozen=True)
class DeletedCase:
    """A table of a format version. is_converted: its deletes were rewritten. granularity: what into."""

    layout: str
    version: int
    is_converted: bool = False
    granularity: str = "file"

    def __str__(self) -> str:
        state = f"converted-by-{self.granularity}" if self.is_converted else "equality"
        return f"{self.layout}-v{self.version}-{state}"

    @property
    def name(self) -> str:
        return "peers." + str(self).replace("-", "_")

    def build(self, lake: Lake) -> Table:
        """Write the table, whose rows are EXPECTED."""
        partition_by, evolve = LAYOUTS[self.layout]
        properties = {"write.delete.mode": "merge-on-read", "write.delete.granularity": self.granularity}
        table = lake.create_table(
            self.name, SCHEMA, partition_by=partition_by, properties=properties, format_version=self.version
        )
        table.append(rows(*((key, "ab"[key % 2], 0) for key in range(20))))
        evolve(table)
        table.append(rows(*((key, "ab"[key % 2], 0) for key in range(20, 30))))
        table.delete("id in (1, 21)")
        for number in (1, 2):
            new = rows(*((key, "bc"[key % 2], number) for key in range(number, 40, 3)))
            table.upsert(new, on=["id"], mode="equality")
        if self.is_converted:
            table.rewrite_deletes(convert_equality=True)
        return table


def _model() -> Iterator[Row]:
    for key in range(40):
        written = [number for number in (1, 2) if key >= number and (key - number) % 3 == 0]
        if written:
            yield key, "bc"[key % 2], written[-1]
        elif key < 30 and key not in (1, 21):
            yield key, "ab"[key % 2], 0


def _add_field(table: Table, term: str) -> None:
    with table.evolve() as change:
        change.add_partition_field(term)


LAYOUTS: dict[str, tuple[list[str], Callable[[Table], None]]] = {
    "unpartitioned": ([], lambda table: None),
    "by_key": (["bucket(4, id)"], lambda table: None),
    "by_key_evolved": (["bucket(4, id)"], lambda table: _add_field(table, "truncate(10, id)")),
    "by_other": (["p"], lambda table: None),
    "by_other_evolved": ([], lambda table: _add_field(table, "p")),
}
EXPECTED = sorted(_model())
WITH_EQUALITY = [DeletedCase(layout, version) for layout in LAYOUTS for version in (2, 3)]
CONVERTED = [
    DeletedCase(layout, version, is_converted=True, granularity=granularity)
    for layout in LAYOUTS
    for version, granularity in ((2, "file"), (2, "partition"), (3, "file"))
]
