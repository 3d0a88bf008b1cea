"""SQL in notebooks: the magics, in a real IPython."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import icefield
from icefield.lake import Lake


@pytest.fixture
def shell(lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A notebook with the magics, a lake of three rows, and its variable `lake`."""
    lake.create_table("shop.stock", "sku string, qty long").append(pa.table({"sku": ["a", "b", "c"], "qty": [1, 2, 3]}))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("ICEFIELD_LAKE", str(tmp_path / "nothing"))
    kind: Any = InteractiveShell
    started = kind(config=Config({"HistoryManager": {"enabled": False}}), user_ns={"lake": lake})
    started.run_cell("%load_ext icefield").raise_error()
    yield started
    started.reset()


def run(shell: Any, cell: str) -> Any:
    done = shell.run_cell(cell)
    done.raise_error()
    return done.result


def test_a_cell_shows_rows_and_sets_a_variable(shell: Any) -> None:
    assert isinstance(run(shell, "%icefield lake"), Lake)
    shown = run(shell, "%%icefield found --engine local\nSELECT * FROM shop.stock ORDER BY qty")
    assert repr(shown) == "sku  qty\n  a    1\n  b    2\n  c    3"
    assert "<td>b</td>" in shown._repr_html_()
    assert shell.user_ns["found"].to_pydict() == {"sku": ["a", "b", "c"], "qty": [1, 2, 3]}


def test_a_cell_may_have_several_statements_and_names_variables(shell: Any) -> None:
    run(shell, "%icefield lake\nleast = 2; name = 'b'")
    shown = run(
        shell,
        "%%icefield --engine local\nDELETE FROM shop.stock WHERE sku = 'c';\n"
        "SELECT sku FROM shop.stock WHERE qty >= :least AND sku = {name};",
    )
    assert repr(shown) == "sku\n  b"


def test_a_long_result_is_cut_and_says_so(shell: Any) -> None:
    run(shell, "%icefield lake")
    shown = run(shell, "%%icefield --engine local --limit 2\nSELECT sku FROM shop.stock ORDER BY sku")
    assert repr(shown) == "sku\n  a\n  b\nthe first 2 rows"


def test_the_lake_may_be_a_target(shell: Any, tmp_path: Path) -> None:
    run(shell, f"%icefield {tmp_path / 'lake'}")
    assert repr(run(shell, "%%icefield --engine local\nSELECT count(*) AS n FROM shop.stock")) == "n\n3"


def test_errors_point_at_the_text_and_have_no_traceback(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(shell, "%icefield lake")
    for cell, said in (
        ("%%icefield --engine local\nSELECT * FROM shop.stok", "Did you mean shop.stock"),
        ("%%icefield --engine nothing\nSELECT 1", "invalid choice"),
        ("%%icefield a-b\nSELECT 1", "is not the name of a variable"),
        ("%%icefield --engine local\n-- nothing", "the cell has no statement"),
    ):
        assert run(shell, cell) is None
        shown = "".join(capsys.readouterr())
        assert said in shown
        assert "Traceback" not in shown


def test_the_extension_is_found_by_its_name() -> None:
    assert icefield.load_ipython_extension.__module__ == "icefield.notebook"
