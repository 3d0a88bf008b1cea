"""CALL [catalog.][system.]procedure(arguments), by position or by name, positions first. Raises InvalidInput."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from icefield.errors import InvalidInput, NotFound
from icefield.sql.procedures.procedure import Given, Procedure
from icefield.sql.procedures.registry import PROCEDURES
from icefield.sql.session import Rows, Run
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place

SYSTEM = "system"


@dataclass(frozen=True)
class Call:
    """A call of a procedure."""

    name: Name
    arguments: Sequence[Given]

    def run(self, run: Run) -> Rows:
        """Run the procedure."""
        return self._procedure(run).call(run, self.arguments, self.name.place)

    def _procedure(self, run: Run) -> Procedure:
        *owner, last = (part.lower() for part in self.name.parts)
        catalog = run.lake.catalog.name.lower()
        if owner not in ([], [SYSTEM], [catalog, SYSTEM], [catalog]):
            raise self.name.place.error(
                f"no procedure {self.name}", hint=f"Procedures are in {run.lake.catalog.name}.{SYSTEM}", kind=NotFound
            )
        found = PROCEDURES.get(last)
        if found is None:
            near = [name for name in PROCEDURES if name.startswith(last)] or get_close_matches(last, PROCEDURES, n=3)
            hint = f"Did you mean {' or '.join(near)}?" if near else f"There is: {', '.join(sorted(PROCEDURES))}"
            raise self.name.place.error(f"no procedure {self.name.parts[-1]}", hint=hint, kind=NotFound)
        return found


def parse_call(cursor: Cursor) -> Call:
    """Parse CALL."""
    cursor.expect("call")
    name = cursor.name("the name of a procedure")
    cursor.expect("(")
    given: list[Given] = []
    while not cursor.accept(")"):
        if given:
            cursor.expect(",")
        given.append(_parse_argument(cursor, after_named=bool(given) and given[-1].name is not None))
    cursor.expect_end()
    return Call(name, given)


def _parse_argument(cursor: Cursor, *, after_named: bool) -> Given:
    token = cursor.token()
    if token is not None and token.is_name and cursor.token(1) is not None and cursor.peek(1) in ("=>", ":="):
        place = cursor.place
        name = cursor.identifier()
        cursor.take()
        return Given(_value(cursor), name, place)
    value = _value(cursor)
    if after_named:
        raise value.error("an argument without a name follows one with a name", kind=InvalidInput)
    return Given(value)


def _value(cursor: Cursor) -> Place:
    return cursor.until(",", ")", what="a value")
