"""UPDATE table [alias] SET column = expression, ... [WHERE condition]."""

from dataclasses import dataclass
from functools import partial

from icefield.dml.change import UPDATE
from icefield.sql.rows.assignments import Assigned, assigned_columns, parse_assignments
from icefield.sql.rows.counts import counts_of_change
from icefield.sql.rows.delete import condition_text, explain_matching
from icefield.sql.rows.expressions import pointing_into
from icefield.sql.rows.spark import starting_spark
from icefield.sql.rows.subqueries import Subqueries
from icefield.sql.rows.target import Target, parse_target
from icefield.sql.session import Rows, Run
from icefield.sql.syntax.cursor import Cursor
from icefield.sql.syntax.place import Place


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
            result = starting_spark(run, lambda: update(dry_run=run.is_dry_run), *places, values=shown)
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
