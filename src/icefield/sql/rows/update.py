"""UPDATE table [alias] SET column = expression, ... [WHERE condition]; and assignments, which MERGE has too.

Raises InvalidInput for a column that is not there, or that is assigned twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from icefield.dml.verbs import UPDATE
from icefield.errors import InvalidInput
from icefield.sql.counts import counts_of_change
from icefield.sql.rows.delete import condition_text, explain_matching
from icefield.sql.rows.expressions import Label, pointing_into
from icefield.sql.rows.spark import starting_spark
from icefield.sql.rows.subqueries import Subqueries
from icefield.sql.rows.target import Target, parse_target
from icefield.sql.session import Rows, Run
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place, pointing_at
from icefield.types.schema import Schema


@dataclass(frozen=True)
class Assigned:
    """A column, or a field inside a struct, and the expression that is assigned to it."""

    column: Name
    value: Place


@dataclass(frozen=True)
class Update:
    """An UPDATE. where: None for all rows."""

    cursor: Cursor
    target: Target
    assigned: tuple[Assigned, ...]
    where: Place | None

    def run(self, run: Run) -> Rows:
        """Change the rows, and return what was done."""
        places = [each.value for each in self.assigned] + ([] if self.where is None else [self.where])
        with Subqueries.opened(run, self.target, UPDATE, self.cursor, places) as opened:
            table = opened.run.table(self.target.name, "update")
            wording = self.target.wording(run, table)
            label = wording.labels[0]
            names = assigned_columns([each.column for each in self.assigned], table.schema, label)
            shown = {name.lower(): each.value for name, each in zip(names, self.assigned, strict=True)}
            with pointing_into(*places):
                pairs = zip(names, self.assigned, strict=True)
                values = {name: opened.text(each.value, wording) for name, each in pairs}
                where = None if self.where is None else condition_text(opened, self.where, wording, table)
            update = partial(table.update, values, where, target_name=label.name, engine=run.engine)
            run_again = partial(update, dry_run=run.is_dry_run)
            result = starting_spark(run, run_again, *places, values=shown, written=opened.written)
        return counts_of_change(result)

    def explain(self, run: Run, mode: str) -> str:
        """Return which files would be read, and what prunes the others."""
        return explain_matching(run, self.target, self.cursor, self.where)


def parse_update(cursor: Cursor) -> Update:
    """Parse UPDATE."""
    cursor.expect("update")
    target = parse_target(cursor, "update")
    cursor.expect("set")
    assigned = parse_assignments(cursor, "where")
    where = cursor.rest("a condition") if cursor.accept("where") else None
    cursor.expect_end()
    return Update(cursor, target, assigned, where)


def parse_assignments(cursor: Cursor, *ends: str) -> tuple[Assigned, ...]:
    """Read assignments up to a word that ends them."""
    found: list[Assigned] = []
    while True:
        column = cursor.name("a column to set")
        if cursor.accept_any("=", "==") is None:
            raise cursor.expected("=")
        found.append(Assigned(column, cursor.until(",", *ends)))
        if not cursor.accept(","):
            return tuple(found)


def assigned_columns(columns: Sequence[Name], schema: Schema, label: Label) -> list[str]:
    """Return the exact dotted name of each assigned column; each is named once, and none together with its parts."""
    names: list[str] = []
    for column in columns:
        with pointing_at(column.place):
            name = _find(column, schema, label)
            for other in names:
                if f"{name}.".startswith(f"{other}.") or f"{other}.".startswith(f"{name}."):
                    raise InvalidInput(f"column {other!r} is assigned twice" if name == other else _both(name, other))
            names.append(name)
    return names


def _both(name: str, other: str) -> str:
    return f"{name!r} and {other!r} assign the same column"


def _find(column: Name, schema: Schema, label: Label) -> str:
    """Find a column by a name that may begin with that of its table, which comes first, as in Spark."""
    lower = tuple(part.lower() for part in column.parts)
    known = {".".join(path).lower() for path in schema.paths.values()}
    for qualifier in (*label.qualifiers, (label.name,)):
        width = len(qualifier)
        rest = column.parts[width:]
        if lower[:width] == tuple(part.lower() for part in qualifier) and ".".join(rest).lower() in known:
            return _exact(rest, schema)
    return _exact(column.parts, schema)


def _exact(parts: tuple[str, ...], schema: Schema) -> str:
    return ".".join(schema.paths[schema.find_field(".".join(parts)).field_id])
