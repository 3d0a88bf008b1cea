"""Steps that take longer than a lease lives: readers, and processes that do nothing."""

from collections.abc import Sequence, Set

from tests.sim.actor import COLUMNS, Actor
from tests.sim.model import Violation
from tests.sim.prepared import TTL_S
from tests.sim.watch import Watch

from icefield.errors import LeaseLost, MissingFile, NoSuchSnapshot
from icefield.leases.lease import MARGIN_S
from icefield.model.snapshot import Snapshot
from icefield.table.scan import TableScan
from icefield.table.table import Table

LONG_S = TTL_S + MARGIN_S + 1
PAUSES_S = (0, 0, 1, TTL_S / 2, LONG_S)
SHORT_PAUSES_S = (0, 0.1)


def read_slowly(actor: Actor) -> None:
    """Read a version batch by batch, with pauses in which a lease may lapse."""
    table = actor.table()
    _read(actor, table, table.snapshots()[-2:], PAUSES_S)


def read_what_was_opened_before(actor: Actor) -> None:
    """Read the oldest version of a table that was opened a moment ago: it may have expired since then."""
    table = actor.table()
    versions = table.snapshots()[:1]
    actor.lake.ambient.sleep(actor.rng.random() / 2)
    _read(actor, table, versions, SHORT_PAUSES_S)


def _read(actor: Actor, table: Table, versions: Sequence[Snapshot], pauses_s: Sequence[float]) -> None:
    if not versions:
        return
    snapshot = actor.rng.choice(versions)
    simulation, watch = actor.simulation, actor.simulation.judge.watch
    assert watch is not None
    simulation.tell(f"begins to read {table} at {snapshot.snapshot_id}")
    scan = table.scan(select=list(COLUMNS), as_of=snapshot.snapshot_id)
    known, lease = set(watch.leases), None
    rows: list[tuple[int, int]] = []
    try:
        reader = scan.to_arrow()
        lease = lease_of(scan)
        if lease is not None:
            files = simulation.judge.reading.files_of({"manifest-list": snapshot.manifest_list})
            watch.hold(table.location, lease, files)
        for batch in reader:
            rows += zip(*(batch.column(name).to_pylist() for name in COLUMNS), strict=True)
            actor.lake.ambient.sleep(actor.rng.choice(pauses_s))
    except (LeaseLost, NoSuchSnapshot, MissingFile) as error:
        # It may have planned without a lease, because the store refused one, and looks again when it takes one later.
        may_have_expired = lease is None and isinstance(error, NoSuchSnapshot)
        if not may_have_expired and _has_held(actor, watch, known):
            raise Violation(f"{actor.name} fails to read {table}, though its lease is not dead: {error}") from error
        simulation.tell(f"stops reading: {type(error).__name__}")
        return
    simulation.tell(f"has read {table} at {snapshot.snapshot_id}: {sorted(rows)}")
    simulation.judge.read(table.name, snapshot.snapshot_id, tuple(sorted(rows)))


def _has_held(actor: Actor, watch: Watch, known: Set[tuple[str, str]]) -> bool:
    """Return whether a reader has taken a lease since then, and has it still or ended it.

    One whose answer was lost is neither its own nor ended: the reader goes on without it.
    """
    taken = [lease for key, lease in watch.leases.items() if key not in known and lease.holder == actor.name]
    return any((lease.files or lease.is_ended) and not lease.is_dead for lease in taken)


def wait(actor: Actor) -> None:
    """Do nothing for so long that a lease which is not renewed lapses."""
    actor.lake.ambient.sleep(actor.rng.choice((1.0, LONG_S)))


def lease_of(scan: TableScan) -> str | None:
    """Return the lease that a scan holds."""
    held = [] if scan._lease is None else scan._lease._held
    return held[0].lease.record.lease if held else None
