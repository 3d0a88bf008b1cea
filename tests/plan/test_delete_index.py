"""Which deletes apply to which data files: the index against the rules of the spec, read one pair at a time."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort

from icefield.codec.manifest.rows import ManifestEntries
from icefield.codec.manifest.schema import EQUALITY_DELETES, KINDS, POSITION_DELETES, partition_column
from icefield.errors import CorruptFile, Unsupported
from icefield.model.partition import PartitionField, PartitionSpec
from icefield.parquet.read.task import DeleteFile, DeleteType
from icefield.plan import delete_index as deletes_module
from icefield.plan.delete_index import BOUNDS, COLUMNS, DeleteIndex, _Scope, build_delete_index
from icefield.types.transforms import Identity, Void

UNPARTITIONED = PartitionSpec((), 0)
BY_KEY = PartitionSpec((PartitionField(1, 1000, "k", Identity()),), 1)
BY_BOTH = PartitionSpec((PartitionField(1, 1001, "k", Identity()), PartitionField(2, 1002, "n", Identity())), 2)
ALL_VOID = PartitionSpec((PartitionField(1, 1003, "k", Void()),), 3)
SPECS = (UNPARTITIONED, BY_KEY, BY_BOTH, ALL_VOID)
KEYS = st.sampled_from(["a", "b", None])
NUMBERS = st.sampled_from([0, 1, None])
PATHS = tuple(f"f{i}" for i in range(4))


@dataclass(frozen=True)
class File:
    """A data file or a delete file."""

    path: str
    spec: PartitionSpec
    partition: tuple[Any, ...]
    sequence_number: int
    kind: DeleteType | None = None
    target: str | None = None


def applies(delete: File, data: File, vectors: Sequence[File]) -> bool:
    """The rules of the spec, for one delete file and one data file. (spec: Scan Planning)"""
    same_partition = (delete.spec.spec_id, delete.partition) == (data.spec.spec_id, data.partition)
    if delete.kind is DeleteType.VECTOR:
        return delete.target == data.path
    if delete.kind is DeleteType.EQUALITY:
        scope = same_partition or delete.spec.is_unpartitioned
        return scope and data.sequence_number < delete.sequence_number
    if any(v.target == data.path for v in vectors) or data.sequence_number > delete.sequence_number:
        return False
    return delete.target == data.path if delete.target is not None else same_partition


@st.composite
def files(draw: st.DrawFn, path: str, *, deletes: bool) -> File:
    spec = draw(st.sampled_from(SPECS))
    values = {1000: KEYS, 1001: KEYS, 1002: NUMBERS, 1003: st.none()}
    partition = tuple(draw(values[f.field_id]) for f in spec.fields)
    number = draw(st.integers(0, 4))
    if not deletes:
        return File(path, spec, partition, number)
    kind = draw(st.sampled_from([DeleteType.POSITIONS, DeleteType.EQUALITY]))
    target = draw(st.sampled_from([None, *PATHS])) if kind is DeleteType.POSITIONS else None
    return File(path, spec, partition, number, kind, target)


def entries(found: Sequence[File]) -> ManifestEntries:
    """Files of one spec as the entries of a manifest."""
    rows = [
        {
            "status": 1,
            "snapshot_id": 1,
            "sequence_number": f.sequence_number,
            "content": EQUALITY_DELETES if f.kind is DeleteType.EQUALITY else POSITION_DELETES,
            "file_path": f.path,
            "file_format": "puffin" if f.kind is DeleteType.VECTOR else "parquet",
            "record_count": 7,
            "referenced_data_file": f.target if f.kind is DeleteType.VECTOR else None,
            "content_offset": 4 if f.kind is DeleteType.VECTOR else None,
            "content_size_in_bytes": 40 if f.kind is DeleteType.VECTOR else None,
            "equality_ids": [1] if f.kind is DeleteType.EQUALITY else None,
            # Position delete files of one data file say so by their bounds.
            BOUNDS[0]: (f.target or "f0").encode() if f.kind is DeleteType.POSITIONS else None,
            BOUNDS[1]: (f.target or "f9").encode() if f.kind is DeleteType.POSITIONS else None,
        }
        | {partition_column(p.field_id): v for p, v in zip(f.spec.fields, f.partition, strict=True)}
        for f in found
    ]
    kinds = [(name, KINDS[name]) for name in COLUMNS.fields] + [(name, pa.binary()) for name in BOUNDS]
    partition = {1000: pa.string(), 1001: pa.string(), 1002: pa.int32(), 1003: pa.string()}
    kinds += [(partition_column(p.field_id), partition[p.field_id]) for p in found[0].spec.fields]
    return ManifestEntries(pa.Table.from_pylist(rows, schema=pa.schema(kinds)))


def index_of(deletes: Sequence[File]) -> DeleteIndex:
    by_spec = {f.spec.spec_id: f.spec for f in deletes}
    return build_delete_index(
        [(spec, entries([f for f in deletes if f.spec.spec_id == i])) for i, spec in by_spec.items()]
    )


def found_for(index: DeleteIndex, data: File) -> tuple[tuple[DeleteFile, ...], int | None]:
    matched = index.match(entries([data]), data.spec)
    keys = matched.keys[0].as_py()
    found = index.deletes_of(keys, data.sequence_number) if keys else ()
    return found, matched.deleted_rows[0].as_py()


@effort(200)
@given(
    st.tuples(*(files(p, deletes=False) for p in PATHS)),
    st.lists(st.integers(), max_size=6).flatmap(
        lambda ids: st.tuples(*(files(f"d{at}", deletes=True) for at in range(len(ids))))
    ),
    st.sets(st.sampled_from(PATHS)),
)
def test_the_index_finds_what_the_rules_say(
    data: tuple[File, ...], deletes: tuple[File, ...], with_vector: set[str]
) -> None:
    # A delete file that names a data file is in its partition.
    home = {f.path: (f.spec, f.partition) for f in data}
    deletes = tuple(
        d if d.target is None else replace(d, spec=home[d.target][0], partition=home[d.target][1]) for d in deletes
    )
    vectors = [
        File("p.puffin", f.spec, f.partition, 5, DeleteType.VECTOR, f.path) for f in data if f.path in with_vector
    ]
    if not deletes and not vectors:
        return
    index = index_of([*deletes, *vectors])
    for file in data:
        wanted = [d for d in (*deletes, *vectors) if applies(d, file, vectors)]
        found, deleted_rows = found_for(index, file)
        assert sorted((d.location, d.kind.value) for d in found) == sorted((d.path, str(d.kind)) for d in wanted)
        only_vector = all(d.kind is DeleteType.VECTOR for d in wanted)
        assert deleted_rows == (7 * len(wanted) if only_vector else None)


def test_the_example_of_the_module_is_right() -> None:
    kinds = "|".join(DeleteType)
    text = deletes_module.__doc__ or ""
    delete_rows = re.findall(rf"^    (\w+) +({kinds}) +(-|\w+) +(\w+) +(\d+)$", text, re.MULTILINE)
    data_rows = re.findall(r"^    (\w+) +(\w+) +(\d+) +(\w.*)$", text, re.MULTILINE)
    assert (len(delete_rows), len(data_rows)) == (4, 4)
    index = index_of(
        [
            File(path, BY_KEY, (partition,), int(number), DeleteType(kind), None if target == "-" else target)
            for path, kind, target, partition, number in delete_rows
        ]
    )
    for path, partition, number, shown in data_rows:
        found, _ = found_for(index, File(path, BY_KEY, (partition,), int(number)))
        wanted = [] if shown.startswith("none") else shown.partition(" (")[0].split(", ")
        assert [delete.location for delete in found] == wanted


def test_a_named_target_is_taken_at_its_word() -> None:
    delete = entries([File("d", BY_KEY, ("a",), 3, DeleteType.POSITIONS)])
    named = delete.replaced({"referenced_data_file": pa.array(["f1"])})
    index = build_delete_index([(BY_KEY, named)])
    assert found_for(index, File("f1", BY_KEY, ("a",), 1))[0]
    assert not found_for(index, File("f2", BY_KEY, ("a",), 1))[0]


def test_two_vectors_of_one_data_file_are_refused() -> None:
    twice = [File("p.puffin", BY_KEY, ("a",), n, DeleteType.VECTOR, "f1") for n in (3, 4)]
    with pytest.raises(CorruptFile, match=r"f1 has two deletion vectors"):
        index_of(twice)


def test_a_vector_older_than_its_data_file_is_refused() -> None:
    index = index_of([File("p.puffin", BY_KEY, ("a",), 2, DeleteType.VECTOR, "f1")])
    with pytest.raises(CorruptFile, match="older than its data file"):
        found_for(index, File("f1", BY_KEY, ("a",), 3))


@pytest.mark.parametrize("kind", [DeleteType.VECTOR, DeleteType.POSITIONS])
@pytest.mark.parametrize("elsewhere", [File("f1", BY_KEY, ("b",), 1), File("f1", UNPARTITIONED, (), 1)])
def test_r26_a_delete_of_a_data_file_of_another_partition_is_refused(kind: DeleteType, elsewhere: File) -> None:
    index = index_of([File("d", BY_KEY, ("a",), 2, kind, "f1")])
    assert found_for(index, File("f1", BY_KEY, ("a",), 1))[0]
    with pytest.raises(CorruptFile, match="another partition"):
        found_for(index, elsewhere)


def test_r20_an_equality_delete_leaves_rows_of_its_own_commit() -> None:
    index = index_of([File("d", BY_KEY, ("a",), 2, DeleteType.EQUALITY)])
    assert found_for(index, File("f1", BY_KEY, ("a",), 1))[0]
    assert not found_for(index, File("f2", BY_KEY, ("a",), 2))[0]


def test_r20_without_the_guard_rows_are_deleted_by_what_came_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    newest, since = _Scope.newest, _Scope.since
    monkeypatch.setattr(_Scope, "newest", lambda scope, groups: newest(scope, groups) + 1)
    monkeypatch.setattr(_Scope, "since", lambda scope, group, number, **of: since(scope, group, number - 1, **of))
    index = index_of([File("d", BY_KEY, ("a",), 2, DeleteType.EQUALITY)])
    assert found_for(index, File("f2", BY_KEY, ("a",), 2))[0]


@pytest.mark.parametrize("kind", [DeleteType.VECTOR, DeleteType.POSITIONS])
def test_r26_without_the_guard_a_delete_takes_rows_of_another_partition(
    kind: DeleteType, monkeypatch: pytest.MonkeyPatch
) -> None:
    unguarded = _Scope.since
    monkeypatch.setattr(DeleteIndex, "_check_vectors", lambda *_: None)
    monkeypatch.setattr(_Scope, "since", lambda scope, group, number, **_: unguarded(scope, group, number))
    index = index_of([File("d", BY_KEY, ("a",), 2, kind, "f1")])
    assert found_for(index, File("f1", BY_KEY, ("b",), 1))[0]


def test_a_vector_whose_place_is_not_told_is_refused() -> None:
    vector = entries([File("p.puffin", BY_KEY, ("a",), 2, DeleteType.VECTOR, "f1")])
    nowhere = vector.replaced({"content_offset": pa.nulls(1, pa.int64())})
    index = build_delete_index([(BY_KEY, nowhere)])
    with pytest.raises(CorruptFile, match="has no offset"):
        found_for(index, File("f1", BY_KEY, ("a",), 2))


@pytest.mark.parametrize("word", ["avro", "ORC"])
def test_delete_files_in_other_formats_are_refused(word: str) -> None:
    delete = entries([File("d", BY_KEY, ("a",), 3, DeleteType.POSITIONS)])
    other = delete.replaced({"file_format": pa.array([word])})
    with pytest.raises(Unsupported, match=f"delete file in {word}"):
        build_delete_index([(BY_KEY, other)])


def test_partitions_compare_across_a_widened_source() -> None:
    narrow = entries([File("d", BY_BOTH, ("a", 1), 3, DeleteType.EQUALITY)])
    wide = entries([File("f1", BY_BOTH, ("a", 1), 1)])
    number = partition_column(1002)
    wide = wide.replaced({number: wide[number].cast(pa.int64())})
    matched = build_delete_index([(BY_BOTH, narrow)]).match(wide, BY_BOTH)
    assert matched.keys[0].is_valid
