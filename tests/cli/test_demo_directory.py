"""Where the demo may begin afresh, and where not."""

from pathlib import Path

import pyarrow as pa
import pytest

import icefield
from icefield.cli.demo.directory import MARKER, make_fresh
from icefield.errors import InvalidInput


def fill(directory: Path) -> None:
    """Leave what a demo leaves."""
    assert make_fresh(directory) is False
    with icefield.connect(directory, durable=False) as lake:
        lake.create_table("shop.orders", "id long").append(pa.table({"id": [1]}))


def everything(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*")}


def test_a_new_or_empty_directory_is_taken(tmp_path: Path) -> None:
    assert make_fresh(tmp_path / "a" / "b") is False
    (tmp_path / "empty").mkdir()
    assert make_fresh(tmp_path / "empty") is False
    assert everything(tmp_path / "empty") == {MARKER}


def test_what_an_earlier_demo_left_is_cleared(tmp_path: Path) -> None:
    fill(tmp_path / "demo")
    assert make_fresh(tmp_path / "demo") is True
    assert everything(tmp_path / "demo") == {MARKER}


@pytest.mark.parametrize("name", ["notes.txt", "shop/customers-0123/data", "other/t-0123"])
def test_a_demo_directory_that_grew_is_left_alone(tmp_path: Path, name: str) -> None:
    fill(tmp_path / "demo")
    (tmp_path / "demo" / name).mkdir(parents=True)
    before = everything(tmp_path / "demo")
    with pytest.raises(InvalidInput, match="the demo did not create"):
        make_fresh(tmp_path / "demo")
    assert everything(tmp_path / "demo") == before


def test_a_directory_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_text("precious")
    with pytest.raises(InvalidInput, match="it holds other files"):
        make_fresh(tmp_path)
    assert everything(tmp_path) == {"catalog.db"}


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "demo").write_text("x")
    with pytest.raises(InvalidInput, match="it is a file"):
        make_fresh(tmp_path / "demo")


def test_a_linked_namespace_is_unlinked_and_not_followed(tmp_path: Path) -> None:
    fill(tmp_path / "demo")
    (tmp_path / "demo" / "shop").rename(tmp_path / "elsewhere")
    (tmp_path / "demo" / "shop").symlink_to(tmp_path / "elsewhere")
    make_fresh(tmp_path / "demo")
    assert any(name.endswith(".parquet") for name in everything(tmp_path / "elsewhere"))
