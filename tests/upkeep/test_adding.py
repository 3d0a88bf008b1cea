"""Files are added while a collector works."""

import pyarrow.parquet as pq
from tests.upkeep.fixtures import FUTURE, ids, make_yard, rows


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
