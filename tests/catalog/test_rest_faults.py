"""Any run of faults: what was acknowledged is there once, what failed is not, and no file is missing."""

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rest_server import Effect, Fault, Reply, RestServer, answer, lose_reply, lose_request, running_server, twice

from icefield.ambient import SeededAmbient
from icefield.backend import Backend
from icefield.catalog.rest.catalog import open_rest_catalog
from icefield.catalog.rest.settings import RestSettings
from icefield.errors import CommitStateUnknown, IcefieldError
from icefield.lake import Lake
from icefield.model.names import parse_table_name
from icefield.storage.memory import MemoryStore

ROOT = "memory://lake"
TABLE = parse_table_name("a.t")
SETTINGS = RestSettings(properties={"rest-metrics-reporting-enabled": "false"})
FAULTS = (
    "none",
    "lose reply",
    "lose request",
    "twice",
    "503 landed",
    "503 not landed",
    "409",
    "400",
    "pretend",
    "rival first",
    "rival after lost reply",
    "rival after lost request",
)


def open_lake(server: RestServer, seed: int) -> Lake:
    ambient = SeededAmbient(seed)
    catalog = open_rest_catalog(server.url, settings=SETTINGS, ambient=ambient)
    return Lake(Backend(catalog, server.service.store, ambient), server.url)


class Run:
    """One writer with faults in its way, and a rival without."""

    def __init__(self, server: RestServer, rival: Lake) -> None:
        self._server = server
        self._rival = rival
        self.rows_of_rival: list[int] = []

    def fault(self, name: str) -> Fault:
        faults: dict[str, Fault] = {
            "none": lambda effect: effect(),
            "lose reply": lose_reply,
            "lose request": lose_request,
            "twice": twice,
            "503 landed": answer(503, lands=True),
            "503 not landed": answer(503),
            "409": answer(409, "CommitFailedException"),
            "400": answer(400, "BadRequestException"),
            "pretend": lambda _: Reply(200, self._server.service.load_table(TABLE).encode()),
            "rival first": partial(self._with_rival, before=True, fault=lambda effect: effect()),
            "rival after lost reply": partial(self._with_rival, before=False, fault=lose_reply),
            "rival after lost request": partial(self._with_rival, before=False, fault=lose_request),
        }
        return faults[name]

    def _with_rival(self, effect: Effect, *, before: bool, fault: Fault) -> Reply | None:
        if before:
            self._append()
        reply = fault(effect)
        if not before:
            self._append()
        return reply

    def _append(self) -> None:
        number = 1000 + len(self.rows_of_rival)
        faults, self._server.faults = self._server.faults, []
        self._rival.table("a.t").append(pa.table({"id": [number]}))
        self._server.faults = faults
        self.rows_of_rival.append(number)


@settings(max_examples=20)
@given(st.lists(st.lists(st.sampled_from(FAULTS), max_size=8), min_size=1, max_size=4), st.booleans())
def test_acknowledged_rows_are_there_once_and_failed_ones_are_not(
    commits: Sequence[Sequence[str]], takes_keys: bool
) -> None:
    with running_server(MemoryStore(), ROOT) as server:
        server.takes_keys = takes_keys
        with open_lake(server, 1) as lake, open_lake(server, 2) as rival:
            table = lake.create_table("a.t", "id long")
            run = Run(server, rival)
            landed: list[int] = []
            open_ends: list[int] = []
            failed: list[IcefieldError] = []
            for number, faults in enumerate(commits):
                for name in faults:
                    server.fail("POST", "/tables/t", run.fault(name))
                try:
                    table.append(pa.table({"id": [number]}))
                    landed.append(number)
                except CommitStateUnknown:
                    open_ends.append(number)
                except IcefieldError as error:
                    failed.append(error)
                server.faults.clear()
            assert all(error.cleanable for error in failed)
            found = table.scan().to_arrow().read_all()["id"].to_pylist()
            certain = [row for row in found if row not in open_ends]
            assert sorted(certain) == sorted([*landed, *run.rows_of_rival])
            assert all(found.count(row) <= 1 for row in open_ends)
            for snapshot in table.snapshots():
                table.scan(as_of=snapshot.snapshot_id).to_arrow().read_all()
