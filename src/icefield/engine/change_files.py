"""DELETE and UPDATE by a filter, file by file, on any engine: no row leaves the task that reads its file."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from icefield.engine.apply_clauses import ClauseResults, Places
from icefield.engine.bind_clauses import ClauseBinder, columns_of_side
from icefield.engine.change import Changed, ChangePlan, ChangeSettings, Clause
from icefield.engine.engine import Site
from icefield.engine.row_values import BoundClause, Rows, Side
from icefield.expr.bind.bound import Bound
from icefield.expr.prune.residual import residual
from icefield.parquet.read.task import FileTask
from icefield.parquet.write.plan import WritePlan
from icefield.types.datatypes import NestedField
from icefield.types.metadata_columns import POSITION, ROW_ID, with_free_names
from icefield.types.schema import Schema


@dataclass(frozen=True)
class ChangeFiles:
    """Applies a clause to the rows that match a filter, and the clause's condition; picklable.

    metadata_columns: those that the filter uses.
    """

    schema: Schema
    where: Bound
    clause: BoundClause
    settings: ChangeSettings
    metadata_columns: tuple[NestedField, ...] = ()

    @property
    def plan(self) -> WritePlan:
        """The settings of new data files."""
        return self.settings.rows

    def run(self, tasks: Iterable[FileTask], site: Site) -> Iterator[Changed]:
        """Run it, and yield the result of the group; after an error, the files that it wrote are removed."""
        others = (column for column in self.metadata_columns if column not in (POSITION, ROW_ID))
        schema, (position, row_id, *_) = with_free_names(self.schema, (POSITION, ROW_ID, *others))
        table = self.clause.target
        keeps_ids = ROW_ID.field_id in self.settings.rows.schema.by_id and bool(self.clause.assigned)
        names = {position, *columns_of_side(table, self.clause.columns), *([row_id] if keeps_ids else [])}
        select = [schema.name_of(f.field_id) for f in schema.fields if f.name in names]
        results = ClauseResults(self.settings, site, table)
        try:
            for number, (reader, task) in enumerate(site.read(tasks)):
                for batch in reader.read(task, schema, select, residual(self.where, task.residual_code)):
                    rows = Rows({table: Side(batch, np.arange(batch.num_rows))}, batch.num_rows)
                    places = Places(
                        np.full(batch.num_rows, number),
                        batch.column(position).to_numpy(),
                        batch.column(row_id) if keeps_ids else None,
                    )
                    results.apply([self.clause], rows, places)
                results.end_file(number, task)
            yield results.close()
        except BaseException:
            results.abort()
            raise


def change_files(clause: Clause, plan: ChangePlan) -> ChangeFiles:
    """Return the work of a clause. Raises NeedsSpark for an expression that only Spark evaluates."""
    schema = plan.scan.version.schema
    settings = plan.settings
    binder = ClauseBinder(schema, settings.rows.schema, plan.target_name, moment=settings.moment)
    (bound,) = binder.bind([clause], clause.when)
    return ChangeFiles(schema, plan.scan.where, bound, settings, plan.metadata_columns)
