"""Deletes that Spark applies itself, without Python: a bit for each row of a file, and keys of rows.

All files of a scan share one array of words. A file's key is the index of its first word, so that a row's bit is found
with the file's key and the row's position alone: no join, no look-up. Every task gets the array, so a large one is
split among several scans; beyond that, Python tasks load the deletes of their own files only.

    >>> a, b = FileTask("a", record_count=100, sequence_number=1, spec_id=0), FileTask("b", 3, 1, 0)
    >>> [_word_count(task) for task in (a, b)]  # so the key of a is 0, and that of b is 2
    [2, 1]
    >>> words = np.concatenate([_packed([64], 100), _packed([1], 3)])  # row 64 of a and row 1 of b are deleted
    >>> words.tolist()
    [0, 1, 2]
    >>> [bool(words[2 + (row >> 6)] & (1 << (row & 63))) for row in range(3)]  # the rows of b
    [False, True, False]
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from pyspark.sql.types import IntegerType, StructField, StructType

from icefield.expr.render.spark_sql import quoted_path
from icefield.parquet.read.read import TableReader
from icefield.parquet.read.task import DeleteFile, DeleteType, FileTask
from icefield.plan.planned_files import PlannedFiles
from icefield.spark.session.arrow_frame import create_frame
from icefield.spark.types import logical_field
from icefield.types import datatypes
from icefield.types.arrays import Longs, Mask
from icefield.types.schema import Schema

WORD_BITS = 64
MOST_WORDS = 2 * 1024 * 1024  # in the array of one scan: 16 MiB
MOST_SCANS = 16
MOST_FILES = 10_000
MOST_POSITIONS = 50_000_000  # in position delete files, which are loaded completely
MOST_KEYS = 1_000_000
MOST_KEY_FILES = 4_096
# For these types Spark's equality is that of the format; for zeros and NaNs it is not.
KEY_TYPES = (
    datatypes.BooleanType,
    datatypes.IntegerType,
    datatypes.LongType,
    datatypes.DateType,
    datatypes.DecimalType,
    datatypes.StringType,
    datatypes.BinaryType,
    datatypes.TimestampType,
    datatypes.TimestamptzType,
)
WORDS = pa.list_(pa.field("element", pa.int64(), nullable=False))
DELETE_NUMBER = "icefield_delete"


@dataclass(frozen=True)
class KeyDeletes:
    """Keys of deleted rows over some columns; each row has the number of its delete file."""

    fields: Schema
    rows: pa.Table


@dataclass(frozen=True)
class Deletes:
    """The deletes of the files of one scan.

    first_words: the index of each file's first word in `words`. applies: for each file, the numbers of the equality
    delete files that apply to it, as a bit set.
    """

    first_words: Longs
    words: Longs
    applies: Sequence[Longs]
    keys: Sequence[KeyDeletes]

    def bit(self, spark: SparkSession, file_key: str, row: str) -> Column:
        """Return the bit of a row, by the columns with its position; zero if it is not deleted."""
        rows = pa.table({"words": pa.array([self.words], WORDS)})
        words = create_frame(spark, rows).scalar()
        # As text if possible: each part of an expression is a call into Spark.
        word = F.get(words, F.expr(f"CAST({file_key} + SHIFTRIGHT({row}, 6) AS INT)"))
        return word.bitwiseAND(F.expr(f"SHIFTLEFT(1L, CAST({row} & {WORD_BITS - 1} AS INT))"))

    def drop_keys(self, spark: SparkSession, frame: DataFrame, names: dict[int, str], applies: str) -> DataFrame:
        """Remove the rows whose keys are deleted. `names`: of key columns. `applies`: of the files' numbers."""
        for keys in self.keys:
            logical = [logical_field(replace(f, name=_key_name(f.field_id))) for f in keys.fields.fields]
            gone = create_frame(spark, keys.rows, StructType([*logical, StructField(DELETE_NUMBER, IntegerType())]))
            number = gone[DELETE_NUMBER]
            word = F.get(frame[applies], F.shiftright(number, 6))
            matches = F.getbit(word, number.bitwiseAND(WORD_BITS - 1)) == 1
            for field in keys.fields.fields:
                key = F.col(quoted_path([names[field.field_id]]))
                matches = matches & key.eqNullSafe(gone[_key_name(field.field_id)])
            frame = frame.join(gone, matches, "left_anti")
        return frame


def _key_name(field_id: int) -> str:
    """Return the name of a key column among the rows of an equality delete file."""
    return f"icefield_key_{field_id}"


def are_few(files: PlannedFiles) -> bool:
    """Return whether the files with deletes are few enough to check each."""
    return bool(files.num_rows <= MOST_FILES)


def choose_for_spark(tasks: Sequence[FileTask], reader: TableReader) -> Mask:
    """Return for which files Spark applies the deletes itself."""
    chosen = np.ones(len(tasks), np.bool_)
    deletes = _distinct(tasks)
    positions = sum(d.record_count for d in deletes if d.kind is DeleteType.POSITIONS)
    if sum(map(_word_count, tasks)) > MOST_WORDS * MOST_SCANS or positions > MOST_POSITIONS:
        return ~chosen
    by_key = [d for d in deletes if d.kind is DeleteType.EQUALITY]
    too_many = len(by_key) > MOST_KEY_FILES or sum(d.record_count for d in by_key) > MOST_KEYS
    if by_key and (too_many or not all(_has_simple_keys(reader.key_schema(ids)) for ids in _key_sets(by_key))):
        chosen &= [not task.has_key_deletes for task in tasks]
    return chosen


def load_deletes(tasks: Sequence[FileTask], reader: TableReader) -> Iterator[tuple[slice, Deletes]]:
    """Yield the deletes of files, scan by scan: its files, and their deletes."""
    start, held = 0, 0
    for at, task in enumerate(tasks):
        count = _word_count(task)
        if held and held + count > MOST_WORDS:
            yield slice(start, at), _load(tasks[start:at], reader)
            start, held = at, 0
        held += count
    yield slice(start, len(tasks)), _load(tasks[start:], reader)


def _load(tasks: Sequence[FileTask], reader: TableReader) -> Deletes:
    counts = np.array([_word_count(task) for task in tasks])
    first_words = np.cumsum(counts) - counts
    words = np.concatenate([_bits(task, reader) for task in tasks])
    by_key = [d for d in _distinct(tasks) if d.kind is DeleteType.EQUALITY]
    numbers = {delete: number for number, delete in enumerate(by_key)}
    applies = [_packed([numbers[d] for d in task.deletes if d in numbers], len(by_key)) for task in tasks]
    keys = [_load_keys(ids, numbers, reader) for ids in _key_sets(by_key)]
    return Deletes(first_words, words, applies if by_key else (), keys)


def _load_keys(ids: tuple[int, ...], numbers: dict[DeleteFile, int], reader: TableReader) -> KeyDeletes:
    fields = reader.key_schema(ids)
    names = [*(_key_name(f.field_id) for f in fields.fields), DELETE_NUMBER]
    parts = []
    for delete, number in numbers.items():
        if tuple(sorted(delete.equality_ids)) == ids:
            keys = reader.delete_keys(delete)
            parts.append(pa.Table.from_arrays([*keys.columns, pa.array(np.full(len(keys), number, np.int32))], names))
    return KeyDeletes(fields, pa.concat_tables(parts))


def _bits(task: FileTask, reader: TableReader) -> Longs:
    bits = _word_count(task) * WORD_BITS
    positions = reader.deleted_positions(task)
    return _packed(positions[positions < bits], bits)


def _packed(positions: Sequence[int] | Longs, bits: int) -> Longs:
    """Return words with the bits at some positions set."""
    unpacked = np.zeros(-(-bits // WORD_BITS) * WORD_BITS, np.bool_)
    unpacked[positions] = True
    return np.packbits(unpacked, bitorder="little").view("<i8")


def _word_count(task: FileTask) -> int:
    """Return how many words a file's rows need; a file without rows has one too, so that its key is unique."""
    return max(1, -(-task.record_count // WORD_BITS))


def _distinct(tasks: Sequence[FileTask]) -> list[DeleteFile]:
    return list(dict.fromkeys(delete for task in tasks for delete in task.deletes))


def _key_sets(by_key: Sequence[DeleteFile]) -> list[tuple[int, ...]]:
    return list(dict.fromkeys(tuple(sorted(delete.equality_ids)) for delete in by_key))


def _has_simple_keys(fields: Schema) -> bool:
    return all(isinstance(f.type, KEY_TYPES) for f in fields.fields)
