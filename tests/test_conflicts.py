"""Two writers that meet: every cell of docs/conflicts.md, and that nothing is lost or comes back in any of them."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import icefield
from icefield.errors import ConcurrentChange
from icefield.lake import Lake
from icefield.table import Table

DOC = Path(__file__).parents[1] / "docs" / "conflicts.md"
RELATIONS = ("same row", "same file", "same partition", "disjoint")
# The first writer is about key 1: it stands with key 2 in one file, with key 3 in one partition, apart from key 11.
SECOND_KEY = dict(zip(RELATIONS, (1, 2, 3, 11), strict=True))
ROWS = {1: ("a", 0), 2: ("a", 0), 3: ("a", 0), 11: ("b", 0)}
FIRST, SECOND = 100, 200  # what writers put into `n`, to be told apart
Change = Callable[[Table, int, int], object]


def rows(*triples: tuple[int, str, int]) -> pa.Table:
    names = ("id", "p", "n")
    return pa.table({name: [t[at] for t in triples] for at, name in enumerate(names)})


def evolve(table: Table, key: int, mark: int) -> None:
    with table.evolve() as change:
        change.add_column(f"c{mark}", "int")


CHANGES: dict[str, Change] = {
    "append": lambda table, key, mark: table.append(rows((key, ROWS[key][0], mark))),
    "delete": lambda table, key, mark: table.delete(f"id = {key}"),
    "overwrite": lambda table, key, mark: table.overwrite(rows((key, ROWS[key][0], mark)), where=f"id = {key}"),
    "evolve": evolve,
    "properties": lambda table, key, mark: table.set_properties({f"p{mark}": "x"}),
}


def apply_to_model(model: list[tuple[int, int]], change: str, key: int, mark: int) -> list[tuple[int, int]]:
    """The rows (id, n) after a change, one after the other."""
    if change in ("delete", "overwrite"):
        model = [row for row in model if row[0] != key]
    if change in ("append", "overwrite"):
        model = [*model, (key, mark)]
    return model


def cells() -> Iterator[tuple[str, str, str, str, str]]:
    isolation = "serializable"
    for line in DOC.read_text().splitlines():
        if line.startswith("## "):
            isolation = "snapshot" if line.startswith("## Snapshot") else "serializable"
        found = re.fullmatch(r"\| (\w+) \| (\w+) \| (\w+) \| (\w+) \| (\w+) \| (\w+) \|", line)
        if found and found[1] != "first":
            for relation, outcome in zip(RELATIONS, found.groups()[2:], strict=True):
                yield isolation, found[1], found[2], relation, outcome


CELLS = list(cells())


def test_the_page_has_every_pair() -> None:
    pairs = {(first, second) for isolation, first, second, _, _ in CELLS if isolation == "serializable"}
    assert pairs == {(a, b) for a in CHANGES for b in CHANGES} - {("evolve", "evolve")}


@pytest.mark.parametrize(("isolation", "first", "second", "relation", "outcome"), CELLS)
def test_two_writers_meet_as_the_page_says(
    isolation: str, first: str, second: str, relation: str, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = icefield.connect("memory:")
    table = make_table(lake, isolation)
    model = [(key, n) for key, (_, n) in ROWS.items()]
    other_key = SECOND_KEY[relation]
    swap = lake.catalog.swap

    def let_the_second_go_first(changes: object) -> None:
        monkeypatch.setattr(lake.catalog, "swap", swap)
        CHANGES[second](lake.table("t.t"), other_key, SECOND)
        swap(changes)  # type: ignore[arg-type]

    monkeypatch.setattr(lake.catalog, "swap", let_the_second_go_first)
    after_second = apply_to_model(model, second, other_key, SECOND)
    if outcome == "fails":
        with pytest.raises(ConcurrentChange, match=r"snapshot -?\d+ \(\w+\) meanwhile|were meanwhile removed"):
            CHANGES[first](table, 1, FIRST)
        assert rows_of(table) == sorted(after_second)
        return
    CHANGES[first](table, 1, FIRST)
    expected = apply_to_model(after_second, first, 1, FIRST)
    if isolation == "snapshot" and second == "append" and relation == "same row":
        expected.append((1, SECOND))  # the row that the first writer never saw
    assert rows_of(table) == sorted(expected)


def make_table(lake: Lake, isolation: str) -> Table:
    levels = {f"write.{change}.isolation-level": isolation for change in ("delete", "overwrite")}
    table = lake.create_table("t.t", "id long, p string, n long", partition_by=["p"], properties=levels)
    for keys in ((1, 2), (3,), (11,)):
        table.append(rows(*((key, *ROWS[key]) for key in keys)))
    return table


def rows_of(table: Table) -> list[tuple[int, int]]:
    return sorted((r["id"], r["n"]) for r in table.scan().to_arrow().read_all().to_pylist())
