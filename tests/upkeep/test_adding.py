"""Files are added that a collector works on, or would delete later."""

import pyarrow.parquet as pq
import pytest
from tests.upkeep.fixtures import FUTURE, Yard, ids, make_yard, rows

from icefield.errors import InvalidInput
from icefield.table.table import Table


def test_a_mark_that_is_swept_while_files_are_added_is_no_error() -> None:
    yard = make_yard()
    table = yard.table(icefield__gc__grace_ms="60000")
    for number in (1, 2):
        table.overwrite(rows(number))
    table.expire_snapshots(FUTURE)
    yard.ambient.sleep(60)
    location = f"{table.location}/other.parquet"
    with yard.store.open_new(location) as sink:
        pq.write_table(rows(3), sink)
    real, swept = yard.store.read, list[int]()

    def read(place: str) -> bytes:
        if "/gc/marks/" in place and not swept:
            swept.append(0)
            swept[0] = yard.lake_again().table("t.t").sweep().marks_done
        return real(place)

    yard.store.read = read  # type: ignore[method-assign, assignment]
    table.add_files([location])
    assert (swept, ids(table)) == ([1], [2, 3])


def data_file(table: Table) -> str:
    path: str = table.scan().files()["file_path"][0].as_py()
    return path


def added_twice(yard: Yard, **properties: str) -> tuple[str, str]:
    """Return a file of a table that another one is to have, too."""
    first = yard.table("t.first", **properties)
    first.append(rows(1))
    second = yard.table("t.second")
    location = data_file(first)
    second.add_files([location])
    return location, second.name


def test_files_of_a_table_are_not_added_to_another_one_that_would_lose_them() -> None:
    yard = make_yard()
    with pytest.raises(InvalidInput, match=r"it is in a directory of t\.first, which would delete it"):
        added_twice(yard)
    assert ids(yard.lake.table("t.second")) == []


def test_files_of_a_table_that_deletes_nothing_are_shared() -> None:
    yard = make_yard()
    location, second = added_twice(yard, gc__enabled="false")
    table = yard.lake.table(second)
    table.overwrite(rows(2))
    for _ in range(2):
        table.expire_snapshots(FUTURE)
        table.remove_orphans(unsafe=True)
    assert location in yard.files()
    assert ids(yard.lake.table("t.first")) == [1]


def test_a_table_may_have_a_file_of_its_own_again() -> None:
    yard = make_yard()
    table = yard.table(icefield__gc__grace_ms="86400000")
    table.append(rows(1))
    location = data_file(table)
    table.delete_files([location])
    table.add_files([location])
    assert ids(table) == [1]
