"""What reads of a table in an object store ask of it: each file once, and all that are known at the same time.

Requests are counted in a proxy, which answers those for some files only when as many are in flight as there can be.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pytest
from tests.s3_proxy import S3Proxy, running_proxy
from tests.s3_server import s3_server

import icefield
from icefield.table.table import Table

APPENDS = 8
MANIFEST, LIST, DATA, VECTORS = "-m0.avro", "/snap-", "/data/", ".puffin"


@dataclass(frozen=True)
class Reading:
    """A table, behind a proxy."""

    proxy: S3Proxy
    target: str
    properties: dict[str, str]

    def table(self) -> Table:
        """Open the table as a process that has read nothing yet, and count from zero."""
        lake = icefield.connect(self.target, properties=self.properties)
        table = lake.table("a.t")
        self.proxy.forget()
        return table

    def count(self, part: str) -> Counter[str]:
        return Counter(path for path in self.proxy.paths if part in path)


@pytest.fixture(scope="module")
def reading() -> Iterator[Reading]:
    server = s3_server()
    target = server.new_root()
    with icefield.connect(target, properties=server.properties) as lake:
        table = lake.create_table(
            "a.t",
            "id long",
            format_version=3,
            properties={"commit.manifest-merge.enabled": "false", "write.delete.mode": "merge-on-read"},
        )
        for number in range(APPENDS):
            table.append(pa.table({"id": [10 * number, 10 * number + 1]}))
        table.delete(" OR ".join(f"id = {10 * n + 1}" for n in range(APPENDS)))
    with running_proxy(server.endpoint) as (proxy, endpoint):
        yield Reading(proxy, target, {**server.properties, "s3.endpoint": endpoint})


@pytest.fixture(autouse=True)
def no_one_waits(reading: Reading) -> Iterator[None]:
    yield
    reading.proxy.together.clear()


def test_a_plan_reads_each_manifest_once_and_all_together(reading: Reading) -> None:
    table = reading.table()
    reading.proxy.together = {MANIFEST: APPENDS + 1}  # the delete manifest too
    assert table.scan().files().num_rows == APPENDS
    assert reading.proxy.most_in_flight >= APPENDS + 1
    assert set(reading.count(MANIFEST).values()) == {1}
    assert sum(reading.count(LIST).values()) == 1
    assert set(reading.proxy.seen) == {"GET"}
    (other,) = (path for path in reading.proxy.paths if not path.endswith(".avro"))
    assert other.endswith("/a/t.pointer")  # whether the table has moved


def test_a_scan_reads_small_files_and_their_vectors_in_one_request_each(reading: Reading) -> None:
    table = reading.table()
    scan = table.scan()
    scan.files()
    reading.proxy.forget()
    reading.proxy.together = {DATA: 2 * APPENDS}
    assert sorted(scan.to_arrow().read_all()["id"].to_pylist()) == [10 * n for n in range(APPENDS)]
    assert reading.proxy.most_in_flight >= 2 * APPENDS
    assert Counter(reading.proxy.seen) == {"GET": 2 * APPENDS}
    assert sum(reading.count(VECTORS).values()) == APPENDS


def test_a_count_with_a_filter_reads_all_files_together(reading: Reading) -> None:
    table = reading.table()
    scan = table.scan(where=" OR ".join(f"id = {10 * n}" for n in range(APPENDS)))  # no statistics settle that
    scan.files()
    reading.proxy.forget()
    reading.proxy.together = {DATA: 2 * APPENDS}
    assert scan.count() == APPENDS
    assert reading.proxy.most_in_flight >= 2 * APPENDS


def test_the_appends_of_many_snapshots_are_planned_in_two_steps(reading: Reading) -> None:
    table = reading.table()
    reading.proxy.together = {LIST: APPENDS}
    scan = table.scan_appends(None)
    assert scan.files().num_rows == APPENDS
    assert reading.proxy.most_in_flight >= APPENDS
    assert set(reading.count(MANIFEST).values()) == {1}


@pytest.mark.parametrize("name", ["all_manifests", "all_files", "files", "entries", "partitions"])
def test_metadata_tables_read_together_what_they_read(reading: Reading, name: str) -> None:
    table = reading.table()
    part = LIST if name.startswith("all_") else MANIFEST
    reading.proxy.together = {part: APPENDS + 1}
    assert table.inspect(name).to_arrow().read_all().num_rows
    assert reading.proxy.most_in_flight >= APPENDS + 1


def test_changed_files_are_read_together(reading: Reading) -> None:
    table = reading.table()
    first = table.snapshots()[0].snapshot_id
    reading.proxy.together = {MANIFEST: APPENDS}
    assert table.changed_files(first).num_rows
    assert reading.proxy.most_in_flight >= APPENDS


def test_who_stops_reading_early_asks_for_no_more(reading: Reading) -> None:
    table = reading.table()
    batches = iter(table.inspect("all_files").to_arrow())
    next(batches)
    del batches
    reading.proxy.forget()  # waits for what was in flight
    assert reading.proxy.paths == []
