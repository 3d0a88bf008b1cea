"""What statements that change definitions share: which table they mean, transactions, changes that are one commit."""

from collections.abc import Iterator
from contextlib import contextmanager

from icefield.catalog.catalog import Kind
from icefield.errors import Unsupported
from icefield.model.names import TableName
from icefield.sql.session import Run
from icefield.sql.syntax.cursor import Name
from icefield.sql.syntax.place import Place
from icefield.table.table import Table
from icefield.table.transaction import Transaction


def refuse_in_transaction(run: Run, place: Place, what: str) -> None:
    """Refuse what a transaction cannot undo."""
    if run.session.transaction is not None:
        raise place.error(
            f"a transaction cannot {what}", hint="COMMIT or ROLLBACK first, and run it on its own", kind=Unsupported
        )


@contextmanager
def one_commit(run: Run, name: TableName) -> Iterator[Table]:
    """Make the changes of a block one commit of a table; in a transaction they are part of that."""
    if run.session.transaction is not None:
        yield run.open(name)
        return
    with Transaction(run.lake.backend) as change:
        change.sessions = run.lake.source.sessions
        yield change.table(str(name))


def find_table(run: Run, name: Name, verb: str = "ALTER TABLE") -> TableName:
    """Return the table that a statement changes; refuse views, branches, tags and metadata tables."""
    found = run.find_changed(name, "change")
    if found is None:
        raise run.missing(name, "table")
    if found.kind is Kind.VIEW:
        raise name.place.error(
            f"{found.name} is a view, not a table", hint=f"Use {verb.replace('TABLE', 'VIEW')}", kind=Unsupported
        )
    if found.inspects is not None:
        raise name.place.error(f"{name} is a metadata table: it has no definition of its own", kind=Unsupported)
    if found.ref is not None:
        raise name.place.error(
            f"{name} is a {'tag' if found.is_tag else 'branch'}: a table has one definition for all of them",
            hint=f"Write {verb} {found.name}",
            kind=Unsupported,
        )
    return found.name
