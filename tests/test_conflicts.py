"""Two writers that meet: what docs/conflicts.md says of them, and that nothing is lost or comes back.

The normal run has a sample of the page's cells: one for each outcome of each pair. `make deep` has all of them.
"""

import datetime
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

import icefield
from icefield.catalog.catalog import PointerSwap
from icefield.commit.validate.read_set import ReadSet
from icefield.errors import ConcurrentChange, InvalidInput, NoSuchSnapshot
from icefield.lake import Lake
from icefield.model.names import parse_table_name
from icefield.table.table import Table
from tests.effort import sample

DOC = Path(__file__).parents[1] / "docs" / "conflicts.md"
RELATIONS = ("same row", "same file", "same partition", "disjoint")
# The first writer is about key 1: it is with key 2 in one file, with key 3 in one partition, apart from key 11.
SECOND_KEY = dict(zip(RELATIONS, (1, 2, 3, 11), strict=True))
PARTITION = {1: "a", 2: "a", 3: "a", 11: "b"} | dict.fromkeys((-1, 0, 4), "a")
FILES = ((1, 2), (3,), (11,))
DELETED = {1: (-1, 0), 3: (4,)}  # rows in the file of a key that were deleted before: deletes to rewrite
FIRST, SECOND = 100, 200  # what writers put into `n`, to distinguish them
CONFLICT = (
    "concurrently|no longer in the history|on both sides|no snapshot in common|expired|does not contain it"
    "|has no snapshots"
)
LANDS, FAILS = "+", "–"  # noqa: RUF001 - as the page writes them
NEXT_CENTURY = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)
MERGE_ON_READ = {f"write.{verb}.mode": "merge-on-read" for verb in ("delete", "update", "merge")}
Row = tuple[int, int]
Cell = tuple[str, str, str, str, str]
ProposedChange = Callable[[Table, int, int], object]


def rows(*pairs: Row) -> pa.Table:
    return pa.table(
        {"id": [key for key, _ in pairs], "p": [PARTITION[key] for key, _ in pairs], "n": [n for _, n in pairs]}
    )


def evolve(table: Table, key: int, mark: int) -> None:
    with table.evolve() as change:
        change.add_column(f"c{mark}", "int")


def file_of(table: Table, key: int) -> list[str]:
    files: list[str] = table.scan(where=f"id = {key}").files()["file_path"].to_pylist()
    return files


def merge(table: Table, key: int, mark: int) -> None:
    merging = table.merge(rows((key, mark)), on=["id"]).when_matched().update({"n": "source.n"})
    merging.when_not_matched().insert_all().execute()


CHANGES: dict[str, ProposedChange] = {
    "append": lambda table, key, mark: table.append(rows((key, mark))),
    "delete": lambda table, key, mark: table.delete(f"id = {key}"),
    "merge-on-read delete": lambda table, key, mark: table.delete(f"id = {key}"),
    "delete files": lambda table, key, mark: table.delete_files(file_of(table, key)),
    "overwrite": lambda table, key, mark: table.overwrite(rows((key, mark)), where=f"id = {key}"),
    "overwrite partitions": lambda table, key, mark: table.overwrite_partitions(rows((key, mark))),
    "upsert": lambda table, key, mark: table.upsert(rows((key, mark)), on=["id"]),
    "merge-on-read upsert": lambda table, key, mark: table.upsert(rows((key, mark)), on=["id"]),
    "update": lambda table, key, mark: table.update({"n": mark}, f"id = {key}"),
    "merge-on-read update": lambda table, key, mark: table.update({"n": mark}, f"id = {key}"),
    "merge": merge,
    "merge-on-read merge": merge,
    "equality upsert": lambda table, key, mark: table.upsert(rows((key, mark)), on=["id", "p"], mode="equality"),
    "compact": lambda table, key, mark: table.compact(),
    "rewrite deletes": lambda table, key, mark: table.rewrite_deletes(),
    "rewrite manifests": lambda table, key, mark: table.rewrite_manifests(),
    "evolve": evolve,
    "properties": lambda table, key, mark: table.set_properties({f"p{mark}": "x"}),
    "expire": lambda table, key, mark: table.expire_snapshots(NEXT_CENTURY),
    "replace": lambda table, key, mark: table.replace(f"id long, p string, n long, r{mark} int", partition_by=["p"]),
}


def change_branch(table: Table, key: int, mark: int, mode: str = "merge-on-read") -> None:
    """Create a branch that updates the row with the key, to be published, rebased or picked."""
    table.create_branch(f"b{mark}")
    table.at(f"b{mark}").update({"n": mark}, f"id = {key}", mode=mode)


def change_branch_and_main(table: Table, key: int, mark: int) -> None:
    change_branch(table, key, mark)
    table.append(rows((4, mark)))


def pick(table: Table, key: int, mark: int) -> None:
    table.cherry_pick(table.refs()[f"b{mark}"].snapshot_id)


def revert(table: Table, key: int, mark: int) -> None:
    table.revert(table.history()[-1].snapshot_id)


# Changes of history, and what comes before both writers.
BEFORE: dict[str, ProposedChange] = {
    "publish": lambda table, key, mark: change_branch(table, key, mark, "copy-on-write"),
    "merge-on-read publish": change_branch,
    "rebase": change_branch_and_main,
    "cherry-pick": change_branch,
    "revert": lambda table, key, mark: table.update({"n": mark}, f"id = {key}", mode="merge-on-read"),
}
HISTORY: dict[str, ProposedChange] = {
    "publish": lambda table, key, mark: table.publish(f"b{mark}"),
    "merge-on-read publish": lambda table, key, mark: table.publish(f"b{mark}"),
    "rebase": lambda table, key, mark: table.at(f"b{mark}").rebase(),
    "cherry-pick": pick,
    "revert": revert,
}
PUBLISHES = ("publish", "merge-on-read publish")


def apply_to_model(model: list[Row], change: str, key: int, mark: int, seen: list[Row]) -> list[Row]:
    """The rows (id, n) after a change that takes rows only if it saw them."""
    taken: dict[str, Callable[[Row], bool]] = {
        "delete": lambda row: row[0] == key,
        # A row that was updated before is in a file of its own.
        "delete files": lambda row: (
            row[0] == key or (row[1] == 0 and any(key in file and row[0] in file for file in FILES))
        ),
        "overwrite": lambda row: row[0] == key,
        "overwrite partitions": lambda row: PARTITION[row[0]] == PARTITION[key],
        "equality upsert": lambda row: row[0] == key,
        "replace": lambda row: True,
    }
    if change in HISTORY:
        change, mark = "update", 0 if change == "revert" else mark
    name = change.removeprefix("merge-on-read ")
    if name in ("update", "merge", "upsert"):
        changed = [(key, mark) if row[0] == key and row in seen else row for row in model]
        is_new = name != "update" and changed == model
        return [*changed, (key, mark)] if is_new else changed
    if name in taken:
        model = [row for row in model if not (taken[name](row) and row in seen)]
    adds = name in ("append", "overwrite", "overwrite partitions", "equality upsert")
    return [*model, (key, mark)] if adds else model


def cells() -> Iterator[Cell]:
    """Read the page: tables for each isolation and relation, a row for each first, a column for each second."""
    isolation, relation = "", ""
    seconds: list[str] = []
    for line in DOC.read_text().splitlines():
        if found := re.match(r"## (Serializable|Snapshot|History)", line):
            isolation, relation = found[1].lower(), ""
        elif line.startswith("### "):
            relation = line[4:].strip().lower()
        elif not line:
            seconds = []
        elif relation and line.startswith("|") and "---" not in line:
            first, *found_cells = [cell.strip() for cell in line.strip("|").split("|")]
            if not seconds:
                seconds = found_cells
                continue
            for second, outcome in zip(seconds, found_cells, strict=True):
                yield isolation, first, second, relation, outcome


CELLS = list(cells())
ISOLATED = (
    "delete",
    "merge-on-read delete",
    "overwrite",
    "overwrite partitions",
    "upsert",
    "merge-on-read upsert",
    "update",
    "merge-on-read update",
    "merge",
    "merge-on-read merge",
)
ABOUT_ROWS = ("append", *ISOLATED, "equality upsert")


def test_the_page_has_every_pair() -> None:
    found = {cell[:4] for cell in CELLS}
    serializable = {("serializable", a, b, r) for a in CHANGES for b in CHANGES for r in RELATIONS}
    history = {("history", a, b, r) for a in HISTORY for b in (*CHANGES, *PUBLISHES) for r in RELATIONS}
    history |= {("history", a, b, r) for a in CHANGES for b in PUBLISHES for r in RELATIONS}
    snapshot = {("snapshot", a, b, r) for a in ISOLATED for b in ABOUT_ROWS for r in RELATIONS}
    assert found == serializable | snapshot | history
    assert len(CELLS) == len(found)


def some(cells: Sequence[Cell]) -> list[Cell]:
    """Return some cells for each outcome of each change; what it meets makes no difference to many."""
    return sample(cells, 5, lambda cell: (cell[1], cell[4]))


@pytest.mark.every_case
@pytest.mark.parametrize(("isolation", "first", "second", "relation", "outcome"), some(CELLS))
def test_two_writers_meet_as_the_page_says(
    isolation: str, first: str, second: str, relation: str, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert meet((isolation, first, second, relation), 3, monkeypatch) == outcome


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("isolation", "first", "second", "relation", "outcome"),
    some([c for c in CELLS if "merge-on-read" in c[1] + c[2] and {c[1], c[2]} <= {*ABOUT_ROWS, "compact"}]),
)
def test_position_delete_files_meet_as_deletion_vectors_do(
    isolation: str, first: str, second: str, relation: str, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert meet((isolation, first, second, relation), 2, monkeypatch) == outcome


@pytest.mark.parametrize("check", ["check_added_rows", "check_deleted_rows", "snapshots_since"])
def test_the_sample_finds_a_check_that_is_missing(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReadSet, check, lambda *_: ())
    assert any(differs(cell, monkeypatch) for cell in some(CELLS) if cell[4] == FAILS)


def differs(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether two writers meet in another way than the page says, or lose rows."""
    with monkeypatch.context() as patch:
        try:
            return meet(cell[:4], 3, patch) != cell[4]
        except AssertionError:
            return True


def meet(cell: tuple[str, str, str, str], format_version: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let the second writer commit while the first one does, check the rows, and say what became of the first."""
    isolation, first, second, relation = cell
    lake = copy_of(prepared(isolation, format_version))
    table = lake.table("t.t")
    other_key = SECOND_KEY[relation]
    for change, key, mark in ((first, 1, FIRST), (second, other_key, SECOND)):
        if change in HISTORY:
            BEFORE[change](table, key, mark)
    before = rows_of(table)
    swap = lake.catalog.swap

    def let_the_second_go_first(changes: object) -> None:
        monkeypatch.setattr(lake.catalog, "swap", swap)
        other = lake.table("t.t")
        other.set_properties(
            MERGE_ON_READ if "merge-on-read" in second else {},
            removals=() if "merge-on-read" in second else list(MERGE_ON_READ),
        )
        (CHANGES | HISTORY)[second](other, other_key, SECOND)
        swap(changes)  # type: ignore[arg-type]

    if "merge-on-read" in first:
        table.set_properties(MERGE_ON_READ)
    monkeypatch.setattr(lake.catalog, "swap", let_the_second_go_first)
    after_second = apply_to_model(before, second, other_key, SECOND, before)
    try:
        (CHANGES | HISTORY)[first](table, 1, FIRST)
    except (ConcurrentChange, InvalidInput, NoSuchSnapshot) as conflict:
        assert rows_of(table) == sorted(after_second)
        return FAILS if re.search(CONFLICT, str(conflict)) else f"says nothing: {conflict}"
    # A file is known by its name: it does not become another one when rows come.
    seen = before if isolation == "snapshot" or first in (*HISTORY, "delete files") else after_second
    changed = table.at(f"b{FIRST}") if first == "rebase" else table
    assert rows_of(changed) == sorted(apply_to_model(after_second, first, 1, FIRST, seen))
    return LANDS


@cache
def prepared(isolation: str, format_version: int) -> Lake:
    lake = icefield.connect("memory:")
    level = "snapshot" if isolation == "snapshot" else "serializable"
    levels = {f"write.{change}.isolation-level": level for change in ("delete", "update", "overwrite", "merge")}
    table = lake.create_table(
        "t.t", "id long, p string, n long", partition_by=["p"], properties=levels, format_version=format_version
    )
    for keys in FILES:
        table.append(rows(*((key, 0) for key in (*keys, *DELETED.get(keys[0], ())))))
    for key in (key for keys in DELETED.values() for key in keys):
        table.delete(f"id = {key}", mode="merge-on-read")
    return lake


def copy_of(lake: Lake) -> Lake:
    """A lake with the same table, made of the same files."""
    copy = icefield.connect("memory:")
    for file in lake.store.list(lake.warehouse):
        copy.store.put_new(file.location, lake.store.read(file.location))
    copy.create_namespace("t")
    name = parse_table_name("t.t")
    copy.catalog.swap([PointerSwap(name, None, lake.catalog.pointer(name))])
    return copy


def rows_of(table: Table) -> list[Row]:
    return sorted((r["id"], r["n"]) for r in table.scan().to_arrow().read_all().to_pylist())
