"""A DataFrame as the source of a MERGE: safe to read twice, and what its keys tell about the rows that they can match.

The source is checkpointed: if its plan is not deterministic (`rand()`, a limit without an order, a table that changes),
a row could match in one read and not in another, and would be inserted although it exists. If Spark loses part of the
checkpoint, because an executor is gone, it is never recomputed: the job fails with SourceLost, and the verb runs again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from pyspark.sql.types import StructType

from icefield.engine.bind_clauses import field_at
from icefield.engine.change import KeyPair, Merge, MergeSource, SourceColumn, SourceKeys
from icefield.engine.keys import duplicate_key, key_range, null_in_key
from icefield.engine.merge_source import arrow_source_keys, key_columns
from icefield.errors import SchemaMismatch
from icefield.expr.bind.bound import TRUE
from icefield.parquet.write.conform import check_schema, conform_batch
from icefield.parquet.write.partial_rows import lacks_fields
from icefield.parquet.write.string_check import check_text
from icefield.spark.arrow_rows import frame_of_arrow
from icefield.spark.change.expressions import expressions_of, is_mentioned
from icefield.spark.keyed_frame import KeysTask
from icefield.spark.session.session import is_remote
from icefield.spark.session.worker_errors import explained_worker_errors
from icefield.spark.session.workers import check_workers
from icefield.spark.types import logical_field, schema_from_spark
from icefield.spark.write.distribute import NumberedFrame
from icefield.types.arrow import arrow_schema, schema_from_arrow
from icefield.types.datatypes import (
    DoubleType,
    FloatType,
    LongType,
    NestedField,
    TimestampNsType,
    TimestamptzNsType,
    UUIDType,
    walk,
)
from icefield.types.schema import Schema, renumber

MOST_KEYS_HERE = 100_000  # collected to this process, to plan by exact keys
MOST_BYTES_HERE = 32 * 1024 * 1024  # as Spark stores rows
ROW_NUMBER = "n"
_NUMBER_ID = 1 << 30


def open_frame(frame: DataFrame) -> MergeSource:
    """Read a DataFrame once."""
    incoming = schema_from_spark(frame.schema)
    check_workers(frame.sparkSession)
    plain = NumberedFrame.of(frame).frame
    # By its number a row is known in all branches of a plan. The checkpoint fixes it.
    numbered = plain.select("*", F.monotonically_increasing_id().alias(ROW_NUMBER))
    with explained_worker_errors():
        # An eager checkpoint: later reads use its contents, or the job fails.
        return MergeSource(numbered.localCheckpoint(eager=True), incoming)


@dataclass(frozen=True)
class SourceRows:
    """Source rows on Spark. frame: numbered columns, copies, and the number of each row. copies: of these columns."""

    frame: DataFrame
    copies: tuple[str, ...] = ()


def rows_of_source(session: SparkSession, source: MergeSource, merge: Merge, schema: Schema) -> SourceRows:
    """Return the rows of a source. schema: of the table.

    Columns are as the table has them, where Spark's own cast gives something else: a uuid has several spellings, and
    nanoseconds are numbers to Spark. A column that an expression mentions stays as it is, because the expression is
    about the type that the source has; what is copied or compared as a key is then a column of its own.
    """
    given = {f.name: (at, f) for at, f in enumerate(source.incoming.fields)}
    written = [*expressions_of(merge.clauses), *([] if merge.on is None else [merge.on])]
    chosen = {
        name: wanted
        for name, wanted in _wanted_fields(merge, schema).items()
        if _is_written_otherwise(given[name][1], wanted)
    }
    copies = tuple(name for name in chosen if is_mentioned(name, written))
    if isinstance(source.rows, DataFrame):
        places = {given[name][0]: wanted for name, wanted in chosen.items()}
        frame = _with_fields(source.rows, places, [given[name][0] for name in copies]) if chosen else source.rows
        return SourceRows(frame, copies)
    as_read = {name: f for name, f in chosen.items() if name not in copies}
    fields = [replace(as_read.get(name, f), name=name, required=f.required) for name, (_, f) in given.items()]
    more = [replace(chosen[name], name=name, required=False) for name in copies]
    return SourceRows(_frame_of_table(session, source.rows, fields, more), copies)


def _frame_of_table(
    session: SparkSession, table: pa.Table, fields: Sequence[NestedField], copies: Sequence[NestedField]
) -> DataFrame:
    """Return Arrow rows as a frame. Raises SchemaMismatch for a value that a type cannot hold, such as nanoseconds."""
    named = [replace(f, name=f"c{at}") for at, f in enumerate((*fields, *copies))]
    schema = Schema((*_numbered_schema(named).fields, NestedField(_NUMBER_ID, ROW_NUMBER, LongType())))
    columns = [*_conformed(table, fields), *_conformed(table, copies), pa.array(np.arange(table.num_rows))]
    return frame_of_arrow(session, pa.table(columns, [f.name for f in schema.fields]).to_reader(), schema)


def _conformed(table: pa.Table, fields: Sequence[NestedField]) -> list[pa.ChunkedArray]:
    own = _numbered_schema(fields)
    batches = [conform_batch(batch, own) for batch in table.to_batches()]
    return list(pa.Table.from_batches(batches, arrow_schema(own)).columns)


def _numbered_schema(fields: Sequence[NestedField]) -> Schema:
    """Return columns of the table and of the source as one schema: each has ids of its own."""
    return Schema(renumber(tuple(fields), iter(range(1, _NUMBER_ID)).__next__, {}))


def _with_fields(frame: DataFrame, chosen: Mapping[int, NestedField], copies: Sequence[int]) -> DataFrame:
    """Return a numbered frame with some columns as the table has them, by their places; copies: beside the columns."""
    made = _numbered_schema([replace(f, name=f"k{at}", required=False) for at, f in chosen.items()])
    shape = StructType([*frame.schema.fields, *map(logical_field, made.fields)])
    both = frame.mapInArrow(KeysTask(tuple(chosen), made), shape)
    names = {f"c{at}": f"k{at}" for at in chosen if at not in copies}
    own = [F.col(names.get(name, name)).alias(name) for name in frame.columns if name != ROW_NUMBER]
    return both.select(*own, *(f"k{at}" for at in copies), ROW_NUMBER)


def _wanted_fields(merge: Merge, schema: Schema) -> dict[str, NestedField]:
    """Return the columns of the table that source columns are compared with or copied to, if each is one only."""
    pairs: list[tuple[str, tuple[str, ...]]] = [(key.source, (key.target,)) for key in merge.keys]
    pairs += [
        (assignment.value.path[0], assignment.path)
        for clause in merge.clauses
        for assignment in clause.assignments
        if isinstance(assignment.value, SourceColumn) and len(assignment.value.path) == 1
    ]
    found: dict[str, dict[object, NestedField]] = {}
    for name, path in pairs:
        wanted = field_at(schema, path)
        # Columns of one type, with the same defaults inside, get the same values.
        key = str(wanted.type), tuple(f.write_default for _, f in walk(wanted.type))
        found.setdefault(name, {})[key] = wanted
    return {name: next(iter(fields.values())) for name, fields in found.items() if len(fields) == 1}


def _is_written_otherwise(given: NestedField, wanted: NestedField) -> bool:
    inner = (wanted, *(f for _, f in walk(wanted.type)))
    # Fields that structs inside lists and maps lack get their default, as in an append.
    if not lacks_fields(given.type, wanted.type) and not any(isinstance(f.type, _WRITTEN_OTHERWISE) for f in inner):
        return False
    try:
        check_schema(Schema((replace(given, name=wanted.name),)), Schema((replace(wanted, required=False),)))
    except SchemaMismatch:
        return False  # the assignment decides
    return True


def frame_source_keys(source: MergeSource, merge: Merge, schema: Schema) -> SourceKeys:
    """Find what the keys of the source rows tell. schema: of the table."""
    with explained_worker_errors():
        return _find_keys(source, merge, schema)


def _find_keys(source: MergeSource, merge: Merge, schema: Schema) -> SourceKeys:
    if not merge.keys:
        return SourceKeys(TRUE, None, source.rows.count())
    fetched = fetch_rows(source)
    if fetched is not None and fetched.num_rows <= MOST_KEYS_HERE:
        return arrow_source_keys(replace(source, rows=fetched), merge, schema)
    keys = _keys(source, merge.keys)
    few = _fetch(keys.limit(MOST_KEYS_HERE + 1), merge.keys)
    if few.num_rows <= MOST_KEYS_HERE:
        return replace(arrow_source_keys(replace(source, rows=few), merge, schema), fetched=None)
    return _many_keys(keys, merge, schema)


def fetch_rows(source: MergeSource) -> pa.Table | None:
    """Return the rows of a small source, in the types that it has; None if it is large, or if Arrow has other types."""
    size = _stored_bytes(source.rows)
    if size is None or size > MOST_BYTES_HERE:
        return None
    names = [f.name for f in source.incoming.fields]
    return rows_with_types(source.rows.toArrow().select(range(len(names))).rename_columns(names), source.incoming)


def rows_with_types(rows: pa.Table, incoming: Schema) -> pa.Table | None:
    """Return rows of Spark with checked text; None if Arrow has other types, or if text is not UTF-8."""
    try:
        own = schema_from_arrow(rows.schema)
        held = [check_text(batch) for batch in rows.to_batches()]
    except SchemaMismatch:
        return None  # the tasks that write such rows say which
    is_same = [str(f.type) for f in own.fields] == [str(f.type) for f in incoming.fields]
    return pa.Table.from_batches(held, rows.schema) if is_same else None


def _stored_bytes(frame: DataFrame) -> int | None:
    """Return the size of a checkpoint, as far as it is there; None if it is not known, as over Spark Connect."""
    session: Any = frame.sparkSession
    if is_remote(session):
        return None
    checkpoint: Any = frame
    number = checkpoint._jdf.queryExecution().analyzed().rdd().id()  # noqa: SLF001 - pyspark has no such call
    stored = session._jsparkSession.sparkContext().getRDDStorageInfo()  # noqa: SLF001
    return next((info.memSize() + info.diskSize() for info in stored if info.id() == number), None)


def _keys(source: MergeSource, pairs: Sequence[KeyPair]) -> DataFrame:
    """Return the key columns under their numbers."""
    places = {f.name: at for at, f in enumerate(source.incoming.fields)}
    rows: DataFrame = source.rows
    return rows.select(*(F.col(f"c{places[pair.source]}").alias(f"k{at}") for at, pair in enumerate(pairs)))


def _fetch(keys: DataFrame, pairs: Sequence[KeyPair]) -> pa.Table:
    fetched = keys.toArrow()
    # A column may be compared with several of the table.
    return pa.table({pair.source: fetched.column(at) for at, pair in enumerate(pairs)})


def _many_keys(keys: DataFrame, merge: Merge, schema: Schema) -> SourceKeys:
    """Return the range of the keys of rows without a null key, and the number of all rows, in one pass over the source.

    A source that does not fit in the memory of executors is read from their disks each time.
    """
    pairs, types = merge.keys, {f.name: f.type for f in schema.fields}
    # NaN is outside any range, and a uuid is text, which Spark orders differently.
    ranged = [at for at, pair in enumerate(pairs) if not isinstance(types[pair.target], _WITHOUT_RANGE)]
    ends = [end(f"k{at}").alias(f"{end.__name__}_{at}") for end in (F.min, F.max) for at in ranged]
    if merge.has_unique_keys:
        found = _summary_of_unique(keys, pairs, ends)
    else:
        found = keys.agg(F.count(F.lit(1)).alias("n"), *ends).toArrow()
    rows = int(found.column(0)[0].as_py())
    own, width = [pairs[at].target for at in ranged], len(ranged)
    lows, highs = (found.columns[1 + start : 1 + start + width] for start in (0, width))
    if not own or any(column[0].as_py() is None for column in lows):
        return SourceKeys(TRUE, None, rows)
    both = [pa.chunked_array([*low.chunks, *high.chunks]) for low, high in zip(lows, highs, strict=True)]
    given = pa.table({pairs[at].source: column for at, column in zip(ranged, both, strict=True)})
    bounds = pa.table(key_columns(given, [pairs[at] for at in ranged], schema), own)
    return SourceKeys(key_range(bounds, own, schema), None, rows)


def _summary_of_unique(keys: DataFrame, pairs: Sequence[KeyPair], ends: Sequence[Column]) -> pa.Table:
    """Return the number of rows, and aggregates over them. Refuse nulls in keys, and two rows with one key."""
    names = keys.columns
    groups = keys.groupBy(*names).agg(F.count(F.lit(1)).alias("n"))
    checks = [F.max("n").alias("most"), *(F.max(F.col(name).isNull()).alias(f"null_{name}") for name in names)]
    found = groups.agg(F.sum("n").alias("n"), *ends, *checks).toArrow()
    for name, pair in zip(names, pairs, strict=True):
        if found.column(f"null_{name}")[0].as_py():
            raise null_in_key(pair.target)
    if found.column("most")[0].as_py() > 1:
        twice = groups.where("n > 1").select(*names).first()
        assert twice is not None
        raise duplicate_key({pair.target: value for pair, value in zip(pairs, twice, strict=True)})
    return found


_WITHOUT_RANGE = (FloatType, DoubleType, UUIDType)
_WRITTEN_OTHERWISE = (UUIDType, TimestampNsType, TimestamptzNsType)
