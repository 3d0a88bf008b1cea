"""Steps that take longer than a lease lives: readers, and processes that do nothing."""

from tests.sim.actor import COLUMNS, Actor
from tests.sim.model import Violation
from tests.sim.prepared import TTL_S

from icefield.errors import LeaseLost, MissingFile, NoSuchSnapshot
from icefield.leases.lease import MARGIN_S
from icefield.table.scan import TableScan

LONG_S = TTL_S + MARGIN_S + 1
PAUSES_S = (0, 0, 1, TTL_S / 2, LONG_S)


def read_slowly(actor: Actor) -> None:
    """Read a version batch by batch, with pauses in which a lease may lapse."""
    table = actor.table()
    versions = table.snapshots()
    if not versions:
        return
    snapshot = actor.rng.choice(versions[-2:])
    simulation, watch = actor.simulation, actor.simulation.judge.watch
    assert watch is not None
    simulation.tell(f"begins to read {table} at {snapshot.snapshot_id}")
    scan = table.scan(select=list(COLUMNS), as_of=snapshot.snapshot_id)
    held = None
    rows: list[tuple[int, int]] = []
    try:
        reader = scan.to_arrow()
        lease = lease_of(scan)
        if lease is not None:
            files = simulation.judge.reading.files_of({"manifest-list": snapshot.manifest_list})
            held = watch.hold(table.location, lease, files)
        for batch in reader:
            rows += zip(*(batch.column(name).to_pylist() for name in COLUMNS), strict=True)
            actor.lake.ambient.sleep(actor.rng.choice(PAUSES_S))
    except (LeaseLost, NoSuchSnapshot, MissingFile) as error:
        if held is not None and not held.is_dead:
            raise Violation(f"{actor.name} fails to read {table}, though its lease is not dead: {error}") from error
        simulation.tell(f"stops reading: {type(error).__name__}")
        return
    simulation.tell(f"has read {table} at {snapshot.snapshot_id}: {sorted(rows)}")
    simulation.judge.read(table.name, snapshot.snapshot_id, tuple(sorted(rows)))


def wait(actor: Actor) -> None:
    """Do nothing for so long that a lease which is not renewed lapses."""
    actor.lake.ambient.sleep(actor.rng.choice((1.0, LONG_S)))


def lease_of(scan: TableScan) -> str | None:
    """Return the lease that a scan holds."""
    held = [] if scan._lease is None else scan._lease._held
    return held[0].lease.record.lease if held else None
