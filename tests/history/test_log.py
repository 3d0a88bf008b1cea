"""The log as a graph: which column a snapshot is in."""

from icefield.cli.history.diff import graph_lines
from icefield.history.log import list_log
from icefield.lake import Lake


def test_a_branch_joins_the_column_that_it_came_from(lake: Lake) -> None:
    """Its snapshot is between those of main, and the column of main goes on below where it began."""
    table = lake.create_table("shop.t", "id long")
    for number in range(2):
        table.append([{"id": number}])
    table.create_branch("dev")
    table.append([{"id": 2}])
    table.at("dev").append([{"id": 3}])
    table.append([{"id": 4}])
    entries = list_log(table.metadata)
    assert [entry.track for entry in entries] == [0, 1, 0, 0, 0]
    drawn = [line[:4].rstrip() for line in graph_lines(entries)]
    assert drawn == ["*", "| *", "* |", "|/", "*", "*"]
