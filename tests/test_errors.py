"""The error tree: one root, two answers per class, and errors that survive the way from a worker."""

import copy
import pickle
import re
import subprocess
import sys

import pytest

import icefield
import icefield.errors as errors
from icefield.errors import (
    CommitConflict,
    CommitStateUnknown,
    CorruptFile,
    FileAlreadyExists,
    IcefieldError,
    IcefieldWarning,
    LeaseLost,
    MissingFile,
    RowsMoved,
    SourceLost,
    StorageError,
    WorkerLost,
)

pytestmark = pytest.mark.every_case

CLASSES = sorted(
    (c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, IcefieldError)), key=lambda c: c.__name__
)


def example(kind: type[IcefieldError]) -> IcefieldError:
    return CorruptFile("s3://b/k", "3 bytes", hint="look") if kind is CorruptFile else kind("a/b", hint="look")


def test_the_drawing_shows_every_class_under_its_parent() -> None:
    drawn: dict[str, str] = {}
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"    ([│├└─ ]*)(\w+)", line):
            above[len(found[1]) // 4 :] = [found[2]]
            drawn[found[2]] = above[-2] if len(above) > 1 else "Exception"
    assert drawn == {c.__name__: c.__base__.__name__ for c in CLASSES if c.__base__}


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_keeps_everything_when_it_travels(kind: type[IcefieldError]) -> None:
    error = example(kind)
    error.add_note("seen twice")
    for back in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(back) is kind
        assert vars(back) == vars(error)
        assert str(back) == str(error)
        assert back.args == error.args


def test_an_error_reads_as_a_message_and_then_a_hint() -> None:
    assert str(IcefieldError("it failed")) == "it failed"
    assert str(IcefieldError("it failed", hint="Do this")) == "it failed. Do this"
    assert str(CorruptFile("s3://b/k", "0 bytes")) == "cannot read s3://b/k: 0 bytes"
    assert str(MissingFile("s3://b/k", hint="Look")) == "no file at s3://b/k. Look"


def test_faults_of_the_data_carry_the_location() -> None:
    assert CorruptFile("s3://b/k", "0 bytes").location == MissingFile("s3://b/k").location == "s3://b/k"
    assert CorruptFile("s3://b/k", "0 bytes").why == "0 bytes"


def test_only_what_others_did_first_or_a_failed_store_may_be_tried_again() -> None:
    others = {CommitConflict, LeaseLost, RowsMoved, SourceLost, StorageError, WorkerLost}
    assert {c for c in CLASSES if c.retryable} == others


def test_files_are_kept_only_where_the_change_may_have_happened() -> None:
    assert {c for c in CLASSES if not c.cleanable} == {StorageError, CommitStateUnknown}
    assert FileAlreadyExists.cleanable


@pytest.mark.parametrize("kind", [*CLASSES, IcefieldWarning])
def test_every_error_can_be_caught_by_its_name_at_the_top(kind: type[Exception]) -> None:
    assert kind.__name__ in icefield.__all__
    assert getattr(icefield, kind.__name__) is kind


def test_every_name_at_the_top_can_be_imported() -> None:
    assert all(getattr(icefield, name).__name__ == name for name in icefield.__all__)
    assert not hasattr(icefield, "NoSuchName")


def test_an_error_is_imported_without_the_libraries_that_move_rows() -> None:
    code = "import sys; from icefield import NoSuchTable; print({'pyarrow', 'pyspark', 'numpy'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "set()\n"
