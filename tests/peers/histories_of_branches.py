"""A table whose branches were published, rebased, picked from and reverted, and the rows of each branch and tag."""

from collections.abc import Mapping

import pyarrow as pa

from icefield.lake import Lake
from icefield.table.table import Table

ODD = "odd näme/1.5 'x'"
MODES = ("copy-on-write", "merge-on-read")
KINDS = [(version, mode) for version in (1, 2, 3) for mode in MODES if version > 1 or mode == MODES[0]]


def rows(*ids: int, value: str = "new") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "value": pa.array([value] * len(ids))})


def make_history(lake: Lake, name: str, version: int, mode: str) -> tuple[Table, Mapping[str, list[tuple[int, str]]]]:
    """Return the table, and the rows that every reader must find at each branch and tag."""
    properties = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")} if version > 1 else {}
    table = lake.create_table(name, "id long, value string", format_version=version, properties=properties)
    table.append(rows(0, 1, 2, 3, value="old"))
    table.append(rows(4, 5, 6, 7, value="old"))
    table.create_tag("first")
    for branch in ("published", "rebased", ODD):
        table.create_branch(branch)
    published, rebased = table.at("published"), table.at("rebased")
    published.update({"value": "'staged'"}, where="id = 1")
    published.append(rows(100))
    rebased.append(rows(200, 201))
    rebased.delete(where="id in (5, 200)")
    picked = table.at(ODD).append(rows(300))
    assert picked is not None
    table.append(rows(8))
    table.publish("published")
    rebased.rebase()
    table.cherry_pick(picked.snapshot_id)
    wrong = table.update({"value": "'wrong'"}, where="id = 6")
    assert wrong.snapshot is not None
    table.revert(wrong.snapshot.snapshot_id)
    old = [(key, "old") for key in range(8)]
    main = [(0, "old"), (1, "staged"), *old[2:], (8, "new"), (100, "new")]
    return table, {
        "first": old,
        "published": [old[0], (1, "staged"), *old[2:], (100, "new")],
        "rebased": [*(row for row in main if row[0] != 5), (201, "new")],
        ODD: [*old, (300, "new")],
        "main": [*main, (300, "new")],
    }


def pairs(found: pa.Table) -> list[tuple[int, str]]:
    """Return the rows of an answer, in order."""
    return sorted(zip(found["id"].to_pylist(), found["value"].to_pylist(), strict=True))
