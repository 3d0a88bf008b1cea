"""Steps that read, while others commit."""

from tests.sim.actor import COLUMNS, TABLES, Actor
from tests.sim.simulation import rows_of


def read(actor: Actor) -> None:
    """Read a version to its end, while others commit."""
    table = actor.branch()
    versions = table.snapshots()
    old = actor.rng.choice(versions).snapshot_id if versions and actor.rng.random() < 0.5 else None
    scan = table.scan(select=list(COLUMNS), as_of=old)
    found = scan.to_arrow().read_all()
    rows = tuple(sorted(zip(*(found.column(name).to_pylist() for name in COLUMNS), strict=True)))
    actor.simulation.tell(f"read {table} at {old or 'its head'}: {rows}")
    actor.simulation.judge.read(table.name, scan.snapshot_id, rows)


def read_together(actor: Actor) -> None:
    """Read two tables at one moment."""
    began = actor.simulation.judge.now
    with actor.lake.transaction() as transaction:
        transaction.pin(TABLES)
        tables = [transaction.table(name) for name in TABLES]
        heads = {table.name: table.metadata.current_snapshot_id for table in tables}
        rows = {table.name: rows_of(table) for table in tables}
    actor.simulation.tell(f"read together: {rows}")
    actor.simulation.judge.read_together(heads, began)
    for name, found in rows.items():
        actor.simulation.judge.read(name, heads[name], found)
