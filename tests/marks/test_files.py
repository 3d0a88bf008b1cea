from itertools import product

import pyarrow as pa

from icefield.marks.files import fold, fold_one

PREFIXES = ("file:///", "file:/", "file:////", "FILE:///", "/", "//", "s3://b/", "s3a://b/", "S3://b/", "s3:///")
PATHS = ("t/a", "t//a", "/t/a", "./t", "t/./a", "t/.a", "t/a//", "t/a:///b", "t/a:////b", "t:/./a", "t/%2F/a")


def test_columns_are_folded_like_single_locations() -> None:
    """Columns with the usual spellings are left as they are: none among them may be one that folding changes."""
    locations = [prefix + path for prefix, path in product(PREFIXES, PATHS)]
    assert [fold(pa.array([each]))[0].as_py() for each in locations] == [fold_one(each) for each in locations]
    assert fold(pa.array(locations)).to_pylist() == [fold_one(each) for each in locations]
