"""A DataFrame of rows with their keys as the table has them, whatever types the rows have.

(id int, name)  ->  (c0 int, c1, k0 long)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from pyspark.sql import types as spark_types

from icefield.errors import IcefieldError
from icefield.parquet.write.conform import conform_batch
from icefield.spark.read.task import to_logical_batch
from icefield.spark.session.worker_errors import raise_packed
from icefield.spark.types import logical_field
from icefield.spark.write.distribute import NumberedFrame
from icefield.types.datatypes import DecimalType, IntegerType, LongType, Type, UnknownType, UUIDType
from icefield.types.schema import Schema


@dataclass(frozen=True)
class KeyedFrame:
    """Rows to upsert. frame: their columns, numbered, and their keys k0, k1, … as the table has them."""

    numbered: NumberedFrame
    frame: DataFrame
    key_names: tuple[str, ...]

    @classmethod
    def of(cls, frame: DataFrame, incoming: Schema, columns: Sequence[str], schema: Schema) -> "KeyedFrame":
        """Add the keys to rows. columns: the key columns. schema: the table's."""
        numbered = NumberedFrame.of(frame)
        given = {f.name: f.type for f in incoming.fields}
        fields = {f.name: f for f in schema.fields}
        keys = {f"k{at}": fields[name] for at, name in enumerate(columns)}
        computed = {key: f for key, f in keys.items() if not _casts_alike(given[f.name], f.type)}
        places = {key: numbered.names.index(f.name) for key, f in keys.items()}
        keyed = numbered.frame
        if computed:
            made = Schema(tuple(replace(f, name=key, required=False) for key, f in computed.items()))
            shape = spark_types.StructType([*numbered.columns, *map(logical_field, made.fields)])
            keyed = keyed.mapInArrow(KeysTask(tuple(places[key] for key in computed), made), shape)
        casts = {
            key: F.col(f"c{places[key]}").cast(logical_field(f).dataType)
            for key, f in keys.items()
            if key not in computed
        }
        return cls(numbered, keyed.withColumns(casts) if casts else keyed, tuple(keys))

    def keys(self) -> DataFrame:
        """Return the keys alone."""
        return self.frame.select(*self.key_names)


def _casts_alike(given: Type, wanted: Type) -> bool:
    """Return whether Spark's cast gives the value that is written; a uuid has several spellings."""
    match given, wanted:
        case (IntegerType(), LongType()) | (DecimalType(), DecimalType()) | (UnknownType(), _):
            return True
        case _:
            return given == wanted and not isinstance(wanted, UUIDType)


@dataclass(frozen=True)
class KeysTask:
    """Runs in an executor's Python worker: adds keys as the table has them. places: of the columns they are made of."""

    places: tuple[int, ...]
    fields: Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = [f.name for f in self.fields.fields]
        for batch in batches:
            given = pa.RecordBatch.from_arrays([batch.column(at) for at in self.places], names=names)
            try:
                keys = to_logical_batch(conform_batch(given, self.fields), self.fields)
            except IcefieldError as error:
                raise_packed(error)
            yield pa.RecordBatch.from_arrays([*batch.columns, *keys.columns], names=[*batch.schema.names, *names])
