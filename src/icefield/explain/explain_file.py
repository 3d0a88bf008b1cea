"""Why one file is read or pruned: what each step of planning evaluated, on which values, with which result.

    manifest     the summary of all partitions in the file's manifest
    partition    the file's own partition values
    statistics   counts and bounds of its columns

Each condition of the filter is evaluated by itself, as planning does for all of them together; `outcome` is the result
of planning. Raises InvalidInput if the version has no such file, MissingFile, CorruptFile.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import pyarrow.compute as pc

from icefield.cache.reading import ReadContext
from icefield.codec.manifest.header import DATA_MANIFEST
from icefield.codec.manifest.list import partition_summaries
from icefield.codec.manifest.rows import ManifestEntries, Manifests
from icefield.errors import InvalidInput
from icefield.explain.file_reason import Condition, Evaluation, FileReason, Finding, Stage
from icefield.expr.bind.bound import TRUE, Bound, Reference, columns_of, conjuncts, references_of
from icefield.expr.prune.evaluate import might_match, must_match
from icefield.expr.prune.project import PartitionTerm, project_inclusive, project_strict
from icefield.expr.prune.residual import FileStatistics, find_residuals, residual
from icefield.expr.render.describe import describe, describe_value
from icefield.expr.render.sql import Style, render
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.parquet.read.task import DeleteFile
from icefield.plan.delete_index import load_delete_index
from icefield.plan.entries import LIVE, load_batches
from icefield.plan.file_statistics import statistics_of_files
from icefield.plan.manifest_list import find_spec, has_live_files, load_manifests, prune_manifests
from icefield.plan.partition.keys import partition_texts
from icefield.plan.plan import COLUMNS
from icefield.plan.versions import ResolvedVersion
from icefield.types.datatypes import DoubleType, FloatType, PrimitiveType
from icefield.types.metadata_columns import is_metadata_column
from icefield.types.schema import Schema
from icefield.types.transforms import Hour, Month, Year
from icefield.types.values.binary import decode_value

_Found = tuple[ManifestEntries, Manifests]


def explain_file(
    context: ReadContext, metadata: TableMetadata, version: ResolvedVersion, where: Bound, location: str
) -> FileReason:
    """Explain why a scan reads or prunes a data file; the end of a location is enough, if it is unique."""
    manifests = load_manifests(context, version.snapshot)
    found = []
    if manifests is not None:
        likely = _likely_first(manifests, where, metadata, version.schema)
        found = _exact_or_all(_find(context, likely, where, location), location)
    if manifests is None or not found:
        raise InvalidInput(
            f"there is no data file {location!r} in this version", hint="`icefield files` lists the data files"
        )
    if len(found) > 1:
        names = ", ".join(entry.file_path[0].as_py() for entry, _ in found[:3])
        raise InvalidInput(f"{location!r} names {len(found)} data files: {names}", hint="Give more of the location")
    entry, manifest = found[0]
    spec = find_spec(metadata, manifest.partition_spec_id[0].as_py())
    listed = _Listed(metadata, version.schema, spec, entry, manifest)
    return listed.reason(where, _deletes(context, metadata, manifests, entry, spec))


@dataclass(frozen=True)
class _Listed:
    """A data file as its manifest lists it: a table of one row, with that of the manifest."""

    metadata: TableMetadata
    schema: Schema
    spec: PartitionSpec
    entry: ManifestEntries
    manifest: Manifests

    def reason(self, where: Bound, deletes: tuple[DeleteFile, ...]) -> FileReason:
        statistics = statistics_of_files(self.entry, self.spec, self.schema)
        stage, left = self._outcome(where, statistics)
        return FileReason(
            location=self._value("file_path"),
            manifest=self._value("manifest_path"),
            partition=partition_texts(self.entry, self.spec, self.schema)[0].as_py(),
            spec_id=self.spec.spec_id,
            record_count=self._value("record_count"),
            file_size_in_bytes=self._value("file_size_in_bytes"),
            conditions=tuple(self._condition(part, statistics) for part in conjuncts(where)),
            ruled_out_by=stage,
            residual=describe(left),
            deletes=deletes,
        )

    def _outcome(self, where: Bound, statistics: FileStatistics) -> tuple[Stage | None, Bound]:
        if not prune_manifests(self.manifest, where, self.metadata, self.schema)[0]:
            return Stage.MANIFEST, where
        if not might_match(project_inclusive(where, statistics.terms), statistics.partition, 1)[0]:
            return Stage.PARTITION, where
        residuals = find_residuals(where, statistics)
        if not might_match(where, statistics.columns, 1)[0] or residuals.never[0]:
            return Stage.STATISTICS, where
        return None, residual(where, int(residuals.codes[0]))

    def _condition(self, part: Bound, statistics: FileStatistics) -> Condition:
        return Condition(
            describe(part),
            (
                self._by_manifest(part, statistics),
                self._by_partition(part, statistics),
                self._by_statistics(part, statistics),
            ),
        )

    def _by_manifest(self, part: Bound, statistics: FileStatistics) -> Evaluation:
        projected = project_inclusive(part, statistics.terms)
        might = bool(prune_manifests(self.manifest, part, self.metadata, self.schema)[0])
        finding = Finding.UNKNOWN if projected == TRUE else Finding.SOME if might else Finding.NONE
        seen = ", ".join(self._summary_text(term) for term in _terms_in(projected, statistics.terms))
        return Evaluation(Stage.MANIFEST, _condition_text(projected, statistics.terms), seen, finding)

    def _by_partition(self, part: Bound, statistics: FileStatistics) -> Evaluation:
        projected, sure = project_inclusive(part, statistics.terms), project_strict(part, statistics.terms)
        terms = _terms_in(projected, statistics.terms) or _terms_in(sure, statistics.terms)
        might = bool(might_match(projected, statistics.partition, 1)[0])
        must = bool(must_match(sure, statistics.partition, 1)[0])
        finding = _finding(might=might, must=must) if terms else Finding.UNKNOWN
        values = partition_texts(self.entry, self._spec_of(terms), self.schema)[0].as_py() if terms else ""
        return Evaluation(Stage.PARTITION, _condition_text(projected, statistics.terms), values, finding)

    def _by_statistics(self, part: Bound, statistics: FileStatistics) -> Evaluation:
        references = references_of(part)
        might, must = (
            bool(might_match(part, statistics.columns, 1)[0]),
            bool(must_match(part, statistics.columns, 1)[0]),
        )
        seen = ", ".join(filter(None, map(self._statistics_text, references.values())))
        finding = _finding(might=might, must=must) if seen else Finding.UNKNOWN
        return Evaluation(Stage.STATISTICS, describe(part), seen, finding)

    def _spec_of(self, terms: Iterable[PartitionTerm]) -> PartitionSpec:
        ids = {term.field_id for term in terms}
        return replace(self.spec, fields=tuple(f for f in self.spec.fields if f.field_id in ids))

    def _summary_text(self, term: PartitionTerm) -> str:
        position = next(at for at, f in enumerate(self.spec.fields) if f.field_id == term.field_id)
        (summary,) = partition_summaries(self.manifest, position).to_pylist()
        kind = term.transform.result_type(term.source_type)
        bounds = [
            None if data is None else _decoded(data, kind, term)
            for data in (summary["lower_bound"], summary["upper_bound"])
        ]
        nulls = {True: "with nulls", False: "no nulls", None: "nulls unknown"}[summary["contains_null"]]
        nans = ", with NaN" if summary["contains_nan"] else ""
        return f"{term.name} {_range_text(bounds)} ({nulls}{nans})"

    def _statistics_text(self, reference: Reference) -> str:
        """Format what the manifest says about a column of the file; an empty string if it says nothing."""
        if f"lower.{reference.field_id}" not in self.entry.column_names:
            return ""
        lower, upper, values, nulls, nans = (
            self._value(f"{name}.{reference.field_id}")
            for name in ("lower", "upper", "value_count", "null_count", "nan_count")
        )
        if all(value is None for value in (lower, upper, values, nulls, nans)):
            return ""
        bounds = [None if data is None else _decoded(data, reference.type) for data in (lower, upper)]
        counts = [f"{'unknown' if nulls is None else format(nulls, ',')} nulls"]
        if isinstance(reference.type, FloatType | DoubleType):
            counts.append(f"{'unknown' if nans is None else format(nans, ',')} NaN")
        total = self._value("record_count") if values is None else values
        return f"{'.'.join(reference.path)} {_range_text(bounds)} ({', '.join(counts)} in {total:,} values)"

    def _value(self, name: str) -> Any:
        return self.entry[name][0].as_py()


def _likely_first(manifests: Manifests, where: Bound, metadata: TableMetadata, schema: Schema) -> list[Manifests]:
    """Return the manifests of data files in two parts, those of planned files first: most often the file is read."""
    live = manifests.choose(has_live_files(manifests))
    data = live.filter(pc.equal(live.content, DATA_MANIFEST))
    keep = prune_manifests(data, where, metadata, schema)
    return [data.choose(keep), data.choose(~keep)]


def _exact_or_all(found: Iterator[_Found], location: str) -> list[_Found]:
    """Return the file with exactly this location; else all files whose locations end with it."""
    kept: list[_Found] = []
    for entry, manifest in found:
        if entry.file_path[0].as_py() == location:
            return [(entry, manifest)]
        kept.append((entry, manifest))
    return kept


def _find(context: ReadContext, manifests: Iterable[Manifests], where: Bound, location: str) -> Iterator[_Found]:
    """Yield each live data file that a location names, with its manifest; open manifests lazily."""
    want = COLUMNS.with_statistics(i for i in columns_of(where) if not is_metadata_column(i))
    for batch, entries in chain.from_iterable(load_batches(context, some, want, LIVE) for some in manifests):
        paths = entries.file_path
        named = pc.or_(pc.equal(paths, location), pc.ends_with(paths, pattern="/" + location.lstrip("/")))
        entries = entries.filter(named)
        for at in range(entries.num_rows):
            entry = entries.slice(at, 1)
            listing = pc.equal(batch.manifest_path, entry.manifest_path[0])
            yield entry, batch.filter(listing).slice(0, 1)


def _deletes(
    context: ReadContext, metadata: TableMetadata, manifests: Manifests, entry: ManifestEntries, spec: PartitionSpec
) -> tuple[DeleteFile, ...]:
    live = manifests.choose(has_live_files(manifests))
    index = load_delete_index(context, metadata, live.filter(pc.not_equal(live.content, DATA_MANIFEST)))
    keys = None if index is None else index.match(entry, spec).keys[0].as_py()
    if index is None or keys is None:
        return ()
    return index.deletes_of(keys, entry.sequence_number[0].as_py())


def _terms_in(expression: Bound, terms: Iterable[PartitionTerm]) -> list[PartitionTerm]:
    ids = columns_of(expression)
    return [term for term in terms if term.field_id in ids]


def _finding(*, might: bool, must: bool) -> Finding:
    if not might:
        return Finding.NONE
    return Finding.ALL if must else Finding.SOME


def _condition_text(expression: Bound, terms: Iterable[PartitionTerm]) -> str:
    """Format a projected condition with readable partition values."""
    by_id = {term.field_id: term for term in terms}
    return " AND ".join(_part_text(part, by_id) for part in conjuncts(expression)) or describe(TRUE)


def _part_text(part: Bound, terms: dict[int, PartitionTerm]) -> str:
    if len(columns_of(part)) != 1:
        return describe(part)
    term = terms[columns_of(part).pop()]
    return render(part, Style(lambda reference: reference.path[-1], lambda value, kind: _value_text(value, kind, term)))


def _value_text(value: Any, kind: PrimitiveType, term: PartitionTerm | None = None) -> str:
    if term is not None and isinstance(term.transform, Year | Month | Hour):
        return term.transform.to_human_string(value, term.source_type)  # a number since 1970, which is not readable
    return describe_value(value, kind)


def _decoded(data: bytes, kind: PrimitiveType, term: PartitionTerm | None = None) -> str:
    try:
        return _value_text(decode_value(data, kind), kind, term)
    except ValueError:
        return f"bytes that are not a valid {kind}"


def _range_text(bounds: list[str | None]) -> str:
    lower, upper = bounds
    if lower is None and upper is None:
        return "without bounds"
    return f"from {lower or 'anything'} to {upper or 'anything'}"
