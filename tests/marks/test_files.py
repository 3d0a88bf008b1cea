from itertools import product

import pyarrow as pa

from icefield.marks.files import FileKind, concat_files, fold, fold_one, table_files

PREFIXES = ("file:///", "file:/", "file:////", "FILE:///", "/", "//", "s3://b/", "s3a://b/", "S3://b/", "s3:///")
PATHS = (
    "t/a",
    "t//a",
    "/t/a",
    "./t",
    "t/./a",
    "t/././a",
    "t/.a",
    "t/a//",
    "t/a:///b",
    "t/a:////b",
    "t:/./a",
    "t/%2F/a",
    "t/../a",
    "t/b/.././../a",
    "../../t/../a",
    "t/..a/a../..",
    "t/../b\n/../a",
)


def test_columns_are_folded_like_single_locations() -> None:
    """Columns with the usual spellings are left as they are: none among them may be one that folding changes."""
    locations = [prefix + path for prefix, path in product(PREFIXES, PATHS)]
    assert [fold(pa.array([each]))[0].as_py() for each in locations] == [fold_one(each) for each in locations]
    assert fold(pa.array(locations)).to_pylist() == [fold_one(each) for each in locations]


def test_spellings_of_one_file_are_one_location() -> None:
    spellings = ("t/a", "t//a", "t/./a", "t/././a", "t/.//./a", "t//.//a", "b/../t/a", "t/b/c/../../a", "t/b\n/../a")
    assert {fold_one(f"file:///{each}") for each in spellings} == {"file:///t/a"}


def test_two_dots_are_a_name_in_an_object_store() -> None:
    assert fold_one("s3a://b/t/../a") == "s3://b/t/../a"


def test_a_file_that_several_manifests_list_is_one_file() -> None:
    names = [f"file:///t/{number}.parquet" for number in range(25_000)]
    once = table_files(names, FileKind.DATA)
    assert once.unique() == once
    again = table_files([names[0], names[-1]], FileKind.DATA, pa.array([1, None], pa.int64()))
    both = concat_files([once, again]).unique()
    assert sorted(both.location.to_pylist()) == sorted(names)
    assert both.sort_by("location").size_bytes[0].as_py() == 1
