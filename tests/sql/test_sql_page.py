"""The page docs/sql.md: each statement of its table runs where it says so, and its examples print what they show."""

import doctest
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import icefield
from icefield.errors import NeedsSpark, Unsupported
from icefield.lake import Lake
from tests.test_readme import run_again

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
ROW = re.compile(r"^\|[^|]*\| `([^`]+)` \| (\S+) \| (\S+) \|$", re.MULTILINE)


class Line(NamedTuple):
    """A line of the table: an example, and whether Spark and the local engine run it."""

    text: str
    spark: str
    local: str


def lines() -> list[Line]:
    found = [Line(text.replace("\\|", "|"), spark, local) for text, spark, local in ROW.findall(PAGE.read_text())]
    assert len(found) > 50
    assert {each.spark for each in found} == {"yes"}
    assert {each.local for each in found} == {"yes", "–", "duckdb"}  # noqa: RUF001 - as the page writes it
    return found


def prepared(lake: Lake) -> int:
    """Create what the examples use, and return the first snapshot."""
    lake.sql_script(
        """
        CREATE NAMESPACE shop;
        CREATE TABLE shop.orders (id BIGINT NOT NULL, customer STRING, amount DECIMAL(10, 2), day DATE)
        USING iceberg PARTITIONED BY (day);
        INSERT INTO shop.orders VALUES (1, 'ann', 10.00, DATE '2026-01-01'), (2, 'bob', 20.50, DATE '2026-01-02')
        """,
        engine="local",
    )
    return lake.table("shop.orders").snapshots()[0].snapshot_id


def written(line: Line, lake: Lake, snapshot: int) -> str:
    """Return an example with what its variables stand for."""
    return line.text.replace("${snapshot}", str(snapshot)).replace("${warehouse}", lake.warehouse)


def test_the_local_engine_runs_what_the_page_says(tmp_path: Path) -> None:
    lake = icefield.connect(tmp_path / "lake")
    snapshot = prepared(lake)
    wrong = []
    for line in lines():
        text = written(line, lake, snapshot)
        try:
            lake.sql(text, engine="local")
            runs = True
        except (NeedsSpark, Unsupported):
            runs = False
        if runs != (line.local != "–"):  # noqa: RUF001
            wrong.append(text)
    assert wrong == []


@pytest.mark.spark
def test_spark_runs_what_the_page_says(tmp_path: Path, spark: Any) -> None:
    lake = icefield.connect(tmp_path / "lake").use(spark)
    snapshot = prepared(lake)
    kept = spark.conf.get("spark.sql.shuffle.partitions")
    try:
        for line in lines():
            lake.sql(written(line, lake, snapshot)).collect()
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", kept)


@pytest.mark.spark
def test_the_examples_of_the_page_print_what_they_show_and_run_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for number, text in enumerate(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)):
        test = doctest.DocTestParser().get_doctest(text, names, f"block {number}", str(PAGE), 0)
        report: list[str] = []
        doctest.DocTestRunner().run(test, out=report.append, clear_globs=False)
        names = test.globs
        assert report == []
    said = run_again(PAGE, tmp_path, names, kinds=["python"])
    assert sum("already" in line for line in said) == 2, said  # the namespace and the table
    assert {line.split(":")[1].split()[0] for line in said if "already" not in line} == {"no"}


def test_errors_on_the_page_are_the_real_ones(tmp_path: Path) -> None:
    """What a doctest ignores: the message and its carets."""
    lake = icefield.connect(tmp_path / "lake")
    prepared(lake)
    for kind, message in re.findall(r"^icefield\.errors\.(\w+): (.*?\n.*?\n.*?)\n", PAGE.read_text(), re.MULTILINE):
        statement = message.split("line 1: ")[1].split("\n")[0]
        with pytest.raises(icefield.IcefieldError) as caught:
            lake.sql(statement, engine="local")
        assert (type(caught.value).__name__, str(caught.value)) == (kind, message)
