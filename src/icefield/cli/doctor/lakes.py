"""Checks of the lake that is named: its catalog, its store, what may be done there, and the store's clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from icefield.cli.doctor.check import Check, Status, attempt, ok
from icefield.cli.lakes import lake_is_there, open_lake
from icefield.cli.settings import Settings
from icefield.deferred import deferred_imports
from icefield.errors import FileAlreadyExists, IcefieldError

with deferred_imports(__name__):
    from icefield.cli.output import counted
    from icefield.config.target import local_path_of
    from icefield.lake import Lake
    from icefield.storage.location import join_location
    from icefield.storage.store import Store

PROBES = ".icefield-doctor"
# Ages are measured by the store's clock alone; the times of snapshots are those of the machine that commits.
TOLERATED_MS = 2_000
REFUSED_MS = 15 * 60 * 1000  # object stores refuse signed requests from then on


@dataclass(frozen=True)
class Probed:
    """What a probe found out. skew_ms: how far this machine's clock is ahead of the store's; None if unknown."""

    skew_ms: int | None
    round_trip_ms: int


def check_lake(settings: Settings, *, read_only: bool) -> Iterator[Check]:
    """Check the catalog and the store. A probe is created, read and deleted, unless read_only."""
    try:
        is_there = settings.lake is not None or lake_is_there(settings)
    except IcefieldError as error:
        yield Check("configuration", Status.FAILED, error.message, error.hint or "Correct it, and run this again")
        return
    if not is_there:
        yield Check(
            "catalog",
            Status.WARNING,
            "no lake was named, and there is none here",
            "Name one with --lake, or create one",
        )
        return
    opened: list[Lake] = []
    yield attempt("catalog", lambda: _catalog(settings, opened), "Check the address, the network and the login")
    for lake in opened:
        try:
            yield attempt("store: read", partial(_readable, lake), "Give this user permission to read the files")
            if not read_only and _is_of_files(lake):
                yield from _write_checks(lake)
        finally:
            lake.close()


def _catalog(settings: Settings, opened: list[Lake]) -> Check:
    lake = open_lake(settings)
    opened.append(lake)
    tables = lake.tables()
    return ok("catalog", f"{lake.warehouse}, {counted(len(tables), 'table')}")


def _readable(lake: Lake) -> Check:
    """Load the metadata of one table."""
    names = lake.tables()
    if not names:
        return ok("store: read", "there is no table to read")
    metadata_location = lake.table(names[0]).metadata_location
    return ok("store: read", f"{names[0]}: {metadata_location}")


def _is_of_files(lake: Lake) -> bool:
    """Return whether the warehouse is a place for files, not the address of a server that chooses one."""
    return not lake.warehouse.startswith(("http://", "https://"))


def _write_checks(lake: Lake) -> Iterator[Check]:
    probed: list[Probed] = []
    mend = "Give this user permission to create, list and delete files there, or give --read-only"
    yield attempt("store: create, list, delete", lambda: _write(lake, probed), mend)
    for probe in probed:
        yield _clock(probe)


def _write(lake: Lake, probed: list[Probed]) -> Check:
    name = "store: create, list, delete"
    folder = join_location(lake.warehouse, PROBES)
    location = join_location(folder, lake.ambient.random_uuid().hex)
    before, began = lake.ambient.now_ms(), lake.ambient.monotonic()
    lake.store.put_new(location, b"probe")
    try:
        elapsed_ms = int((lake.ambient.monotonic() - began) * 1000)
        if not _refuses_second(lake.store, location):
            return Check(
                name,
                Status.FAILED,
                f"{folder}: a file that exists was replaced, so concurrent commits could be lost",
                "Use a store with conditional writes (S3 and most S3-compatible ones), or another catalog",
            )
        if lake.store.read(location) != b"probe":
            return Check(name, Status.FAILED, f"{folder}: a file reads differently than it was written", None)
        stored = next((file.modified_ms for file in lake.store.list(folder) if file.location == location), None)
    finally:
        lake.store.delete(location)
    _tidy(folder)
    probed.append(Probed(None if stored is None else before + elapsed_ms // 2 - stored, elapsed_ms))
    if stored is None:
        return Check(name, Status.WARNING, f"{folder}: a new file is not listed at once", "Upkeep waits for listings")
    return ok(name, f"{folder} (a write took {elapsed_ms:,} ms)")


def _refuses_second(store: Store, location: str) -> bool:
    try:
        store.put_new(location, b"again")
    except FileAlreadyExists:
        return True
    return False


def _tidy(folder: str) -> None:
    """Remove the directory of probes from a disk, unless another doctor is at work there."""
    if folder.startswith("file:"):
        with suppress(OSError):
            local_path_of(folder).rmdir()


def _clock(probe: Probed) -> Check:
    if probe.skew_ms is None:
        return Check("clock", Status.WARNING, "the store did not say when it stored a file", None)
    beyond = max(0, abs(probe.skew_ms) - probe.round_trip_ms)
    side = "ahead of" if probe.skew_ms > 0 else "behind"
    if beyond <= TOLERATED_MS:
        return ok("clock", f"within {beyond + 1:,} ms of the store's")
    found = f"this machine's clock is {beyond / 1000:,.1f} s {side} the store's"
    status = Status.FAILED if beyond > REFUSED_MS else Status.WARNING
    return Check("clock", status, found, "Set the clock by NTP: the times of snapshots come from it")
