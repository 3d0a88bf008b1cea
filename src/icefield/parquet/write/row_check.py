"""Check that the rows of an overwrite match its filter: others would not be replaced if it is run again."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from icefield.errors import InvalidInput
from icefield.expr.bind.bound import TRUE, Bound, columns_of, complement
from icefield.expr.render.arrow import arrow_filter
from icefield.expr.render.describe import describe
from icefield.parquet.write.conform import conform_batch
from icefield.types.schema import Schema

MOST_SHOWN = 200


@dataclass(frozen=True)
class RowCheck:
    """A filter that rows must match. schema: the columns that it uses."""

    where: Bound
    schema: Schema

    @classmethod
    def of(cls, where: Bound, schema: Schema) -> "RowCheck | None":
        """Return the check; None if every row passes."""
        if where == TRUE:
            return None
        tops = {schema.paths[field_id][0] for field_id in columns_of(where)}
        return cls(where, Schema(tuple(f for f in schema.fields if f.name in tops), schema.schema_id))

    def check(self, batch: pa.RecordBatch) -> None:
        """Refuse rows for which the filter is false or null. Raises InvalidInput, which shows one of them."""
        # In Arrow, a batch without columns has no rows either.
        judged = [conform_batch(batch, self.schema)] if self.schema.fields else [batch]
        outside = pa.Table.from_batches(judged).filter(arrow_filter(complement(self.where)))
        if outside.num_rows:
            shown = str(outside.slice(0, 1).to_pylist()[0])
            shown = shown if len(shown) <= MOST_SHOWN else shown[:MOST_SHOWN] + "…"
            raise InvalidInput(
                f"cannot overwrite the rows with {describe(self.where)}: a row to write does not match it: {shown}",
                hint="Write only rows that match, or skip the check with check_rows=False",
            )

    def checked(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield batches after checking each."""
        for batch in batches:
            self.check(batch)
            yield batch
