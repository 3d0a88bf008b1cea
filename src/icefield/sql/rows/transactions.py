"""BEGIN [TRANSACTION] [READING (tables)], START TRANSACTION, COMMIT [WORK] and ROLLBACK [WORK].

Between BEGIN and COMMIT all statements belong to one transaction of the lake: its tables are read at one moment, and
committed together. A statement that fails changes nothing, and leaves the transaction open. COMMIT ends it, also if it
fails. READING fixes the versions of tables at once, instead of when they are first used.
"""

from dataclasses import dataclass

from icefield.errors import InvalidInput, Unsupported
from icefield.sql.session import NOTHING, Rows, Run
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place, pointing_at

_WORDS = ("transaction", "work")


@dataclass(frozen=True)
class Begin:
    """BEGIN. reading: tables whose versions are fixed at once."""

    place: Place
    reading: tuple[Name, ...]

    def run(self, run: Run) -> Rows:
        """Begin a transaction."""
        session = run.session
        with pointing_at(self.place):
            if session.transaction is not None:
                raise InvalidInput("a transaction is open already", hint="End it with COMMIT or ROLLBACK")
            transaction = run.lake.transaction()
            transaction.pin([run.table(name, "read").name for name in self.reading])
        session.transaction = transaction
        return NOTHING


@dataclass(frozen=True)
class End:
    """COMMIT or ROLLBACK."""

    place: Place
    commits: bool

    def run(self, run: Run) -> Rows:
        """End the transaction."""
        transaction, run.session.transaction = run.session.transaction, None
        with pointing_at(self.place):
            if transaction is None:
                raise InvalidInput("no transaction is open", hint="Begin one with BEGIN")
            if self.commits:
                transaction.commit()
            else:
                transaction.rollback()
        return NOTHING


def parse_begin(cursor: Cursor) -> Begin:
    """Parse BEGIN or START TRANSACTION."""
    place = cursor.place
    if cursor.accept("start"):
        cursor.expect("transaction")
    else:
        cursor.expect("begin")
        cursor.accept_any(*_WORDS)
    reading = cursor.names("a table to read") if cursor.accept("reading") else ()
    if not cursor.is_at_end:
        raise cursor.error(
            "BEGIN begins a transaction; a script between BEGIN and END is not supported",
            place,
            hint="Run its statements with sql_script",
            kind=Unsupported,
        )
    return Begin(place, reading)


def parse_end(cursor: Cursor) -> End:
    """Parse COMMIT or ROLLBACK."""
    place = cursor.place
    word = cursor.expect_any("commit", "rollback")
    cursor.accept_any(*_WORDS)
    cursor.expect_end()
    return End(place, word == "commit")
