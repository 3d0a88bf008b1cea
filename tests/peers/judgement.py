"""What manifests say of partitions and columns, judged by PyIceberg's own evaluators, file by file.

For every predicate and every file: if a row of the file matches, no evaluator may rule out the file, its partition or
its manifest; and if an evaluator says that all rows match, they must. The rows are those of the data file itself.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.expressions.visitors import (
    _InclusiveMetricsEvaluator,
    _StrictMetricsEvaluator,
    expression_evaluator,
    inclusive_projection,
    manifest_evaluator,
)
from pyiceberg.manifest import DataFile, ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from tests.peers.case import TableCase
from tests.peers.predicates import Predicate
from tests.peers.pyiceberg_quirks import can_judge, nulls_match


@dataclass(frozen=True)
class File:
    """A data file with its rows, and the manifest that lists it."""

    manifest: ManifestFile
    entry: DataFile
    rows: pa.Table

    def matches(self, ask: Predicate) -> list[bool]:
        """Say of each row whether it matches; a NaN is asked nothing, for engines differ about it."""
        hits = zip(ask.matches(self.rows), ask.is_nan(self.rows), strict=True)
        return [match for match, nan in hits if not nan]


def judge(case: TableCase, metadata_location: str) -> Counter[str]:
    """Check every predicate on every file, and count how often what ruled a file out."""
    table = StaticTable.from_metadata(metadata_location)
    files = list(_files(table))
    ruled_out: Counter[str] = Counter()
    for ask in case.asks:
        if can_judge(case, ask):
            ruled_out.update(_judge(table, files, ask))
    return ruled_out


def _judge(table: StaticTable, files: list[File], ask: Predicate) -> Iterator[str]:
    """Check one predicate on every file, and yield what ruled a file out."""
    schema, spec, expression = table.schema(), table.spec(), ask.pyiceberg()
    projected = inclusive_projection(schema, spec)(expression)
    evaluate_manifest = manifest_evaluator(spec, schema, projected)
    evaluate_partition = expression_evaluator(
        Schema(*spec.partition_type(schema).fields), projected, case_sensitive=True
    )
    inclusive, strict = _InclusiveMetricsEvaluator(schema, expression), _StrictMetricsEvaluator(schema, expression)
    for file in files:
        matches = file.matches(ask)
        verdicts = {
            "manifest": evaluate_manifest(file.manifest),
            "partition": evaluate_partition(file.entry.partition),
            "statistics": inclusive.eval(file.entry),
        }
        for word, may_match in verdicts.items():
            assert may_match or not any(matches), f"{ask}: ruled out by {word}: {file.entry.file_path}"
            if not may_match:
                yield word
        if _strictly_asked(ask) and strict.eval(file.entry):
            assert all(matches), f"{ask}: not all rows match in {file.entry.file_path}"


def _strictly_asked(ask: Predicate) -> bool:
    """Its strict evaluator takes nulls for unequal to everything, and knows no nested columns."""
    return not nulls_match(ask) and ask.operator != "!=" and "." not in ask.column


def _files(table: StaticTable) -> Iterator[File]:
    snapshot = table.current_snapshot()
    assert snapshot
    for manifest in snapshot.manifests(table.io):
        for entry in manifest.fetch_manifest_entry(table.io):
            path = entry.data_file.file_path.removeprefix("file://")
            yield File(manifest, entry.data_file, pq.read_table(path, partitioning=None))
