"""icefield sql: statements from an argument, a file and stdin; formats, parameters, errors."""

import io
import json
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import Icefield
from tests.cli.test_main import SCRIPT, loaded_after

from icefield.cli.fitting import fitted_widths
from icefield.cli.sql.command import typed

LOCAL = ("--engine", "local")


@pytest.fixture
def stock(icefield: Icefield) -> Icefield:
    """A lake that SQL made."""
    made = icefield(
        "sql",
        "CREATE NAMESPACE shop; CREATE TABLE shop.stock (sku STRING, qty INT);"
        "INSERT INTO shop.stock VALUES ('a', 1), ('b;', 2), (NULL, 3)",
    )
    assert (made.code, made.err) == (0, "")
    return icefield


def test_rows_as_a_table(stock: Icefield) -> None:
    assert (
        stock("sql", "SELECT * FROM shop.stock ORDER BY qty", *LOCAL).out
        == "sku   qty\na       1\nb;      2\nNULL    3\n"
    )


def test_changes_tell_their_counts(stock: Icefield) -> None:
    ran = stock("sql", "DELETE FROM shop.stock WHERE qty = 1", "--json")
    assert ran.code == 0
    (row,) = ran.json
    assert row["rows_deleted"] == 1


def test_csv_and_json_have_all_rows(stock: Icefield) -> None:
    query = ("sql", "SELECT * FROM shop.stock ORDER BY qty", *LOCAL)
    assert stock(*query, "--format", "csv").out == "sku,qty\na,1\nb;,2\n,3\n"
    rows = [{"sku": "a", "qty": 1}, {"sku": "b;", "qty": 2}, {"sku": None, "qty": 3}]
    assert stock(*query, "--format", "json").json == stock(*query, "--json").json == rows


@pytest.mark.parametrize("name", ["rows.csv", "rows.json", "rows.parquet"])
def test_rows_go_to_a_file_in_the_format_of_its_name(stock: Icefield, tmp_path: Path, name: str) -> None:
    ran = stock("sql", "SELECT * FROM shop.stock ORDER BY qty", "--output", name, *LOCAL)
    assert (ran.code, ran.out, ran.err) == (0, "", f"wrote 3 rows to {name}\n")
    path = tmp_path / name
    read: dict[str, Callable[[], int]] = {
        "rows.csv": lambda: len(path.read_text().splitlines()) - 1,
        "rows.json": lambda: len(json.loads(path.read_text())),
        "rows.parquet": lambda: pq.read_table(path).num_rows,
    }
    assert read[name]() == 3
    assert [each.name for each in tmp_path.iterdir() if "part" in each.suffix] == []


def test_a_failed_statement_leaves_no_file(stock: Icefield, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("old")
    assert stock("sql", "SELECT nothing FROM shop.stock", "--output", "rows.csv", *LOCAL).code == 1
    assert (tmp_path / "rows.csv").read_text() == "old"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("SELECT 1; SELECT 2", "--output", "x.csv"), "--output is for one statement"),
        (("SELECT 1", "--format", "parquet"), "Parquet is not for a terminal"),
        (("SELECT 1", "--output", "x.txt"), "cannot tell the format of x.txt"),
        (("SELECT 1", "--output", "x.csv", "--format", "table"), "a table is not for a file"),
        (("SELECT 1", "--file", "x.sql"), "a statement and --file cannot be given together"),
        (("--file", "x.sql"), "cannot read x.sql"),
        (("  -- nothing",), "there is no statement"),
        (("SELECT 1 AS a, 2 AS a", "--json"), "two columns are called 'a'"),
        (("SELECT :x",), "there is no value for the parameter :x"),
    ],
)
def test_what_cannot_be_done_is_said(stock: Icefield, arguments: tuple[str, ...], message: str) -> None:
    ran = stock("sql", *arguments, *LOCAL)
    assert ran.code == 1
    assert ran.err.startswith(f"error: {message}")


def test_an_error_points_at_its_line_of_a_script(stock: Icefield, tmp_path: Path) -> None:
    (tmp_path / "load.sql").write_text("-- twice\nSELECT 1;\n\nSELECT *\n  FROM shop.stoc;\nSELECT 2;")
    ran = stock("sql", "--file", "load.sql", "--format", "csv", *LOCAL)
    assert (ran.code, len(ran.out.splitlines())) == (1, 2)
    assert ran.err.splitlines()[1:] == [
        "  line 5:   FROM shop.stoc;",
        "                 ^^^^^^^^^",
        "hint: Did you mean shop.stock?",
    ]


def test_a_transaction_that_is_not_ended_is_an_error(stock: Icefield) -> None:
    for script, message in [
        ("BEGIN; DELETE FROM shop.stock", "the statements end in a transaction, which was rolled back"),
        (
            "BEGIN; DELETE FROM shop.stock; DELETE FROM shop.nothing",
            "; DELETE FROM shop.stock; DELETE FROM shop.nothing\n",
        ),
    ]:
        ran = stock("sql", script, *LOCAL)
        assert ran.code == 1
        assert message in ran.err
        assert stock("count", "shop.stock").out == "3\n"
        assert stock("sweep", "shop.stock", "--dry-run").code == 0


def test_create_after_a_comment_makes_a_lake_too(icefield: Icefield) -> None:
    assert icefield("sql", "/* of all */ CREATE NAMESPACE shop").code == 0


def test_statements_are_read_from_stdin(stock: Icefield, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "SELECT count(*) AS n FROM shop.stock WHERE sku = 'b;';"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert stock("sql", "--format", "csv", *LOCAL).out == "n\n1\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert stock("sql", "--file", "-", "--format", "csv", *LOCAL).out == "n\n1\n"


def test_parameters_are_values_not_text(stock: Icefield) -> None:
    ran = stock("sql", "SELECT qty FROM shop.stock WHERE sku = :s", "--param", "s=b;", "--format", "csv", *LOCAL)
    assert ran.out == "qty\n2\n"
    ran = stock("sql", "SELECT qty FROM shop.stock WHERE qty > :q", "--param", "q=2", "--format", "csv", *LOCAL)
    assert ran.out == "qty\n3\n"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("-7", -7),
        ("007", "007"),
        ("1.50", Decimal("1.50")),
        ("1e5", "1e5"),
        ("true", True),
        ("NULL", None),
        ("'7'", "7"),
        ("'it''s'", "it's"),
        ("", ""),
        ("'", "'"),
    ],
)
@pytest.mark.every_case
def test_the_type_of_a_parameter_is_that_of_its_text(text: str, value: object) -> None:
    found = typed(text)
    assert (found, type(found)) == (value, type(value))


def test_timing_is_told_on_request(stock: Icefield) -> None:
    said = stock("sql", "SHOW TABLES IN shop", "--timing").err
    assert said.startswith("1 row (")
    assert said.endswith(" s)\n")


def test_a_table_of_many_rows_is_cut_and_says_so(stock: Icefield) -> None:
    ran = stock("sql", "SELECT * FROM range(50)", *LOCAL)
    assert len(ran.out.splitlines()) == 1 + 20
    assert ran.err == "These are the first 20 rows; --limit 0 gives all.\n"


def test_a_query_makes_no_lake(icefield: Icefield, tmp_path: Path) -> None:
    assert icefield("sql", "SELECT 1", *LOCAL).err.startswith("error: no lake at lake\n")
    assert list(tmp_path.iterdir()) == []


def test_the_commands_of_the_page_do_what_it_shows_twice(check_page: Callable[..., None]) -> None:
    check_page("sql.md", kinds=["console"])


@pytest.mark.slow
def test_statements_that_need_no_jvm_load_no_pyspark(stock: Icefield, tmp_path: Path) -> None:
    script = (
        "CREATE TABLE shop.c (id INT); INSERT INTO shop.c VALUES (1), (2); UPDATE shop.c SET id = 3 WHERE id = 2;"
        "DELETE FROM shop.c WHERE id = 1; ALTER TABLE shop.c ADD COLUMN v STRING; SHOW TABLES IN shop; DESCRIBE shop.c;"
        "CALL system.expire_snapshots('shop.c'); DROP TABLE shop.c"
    )
    assert loaded_after(("sql", script), folder=tmp_path) == {"pyarrow"}
    assert loaded_after(("sql", "SELECT * FROM shop.stock", *LOCAL), folder=tmp_path) == {"pyarrow", "duckdb"}


@pytest.mark.spark
@pytest.mark.slow
def test_a_query_that_names_no_engine_runs_on_spark(stock: Icefield, tmp_path: Path) -> None:
    insert, query = "INSERT INTO shop.stock SELECT reverse('cba'), 4", "SELECT sum(qty) AS n FROM shop.stock"
    text = f"{insert}; {query}; SELECT nothing FROM shop.stock"
    done = subprocess.run(
        [SCRIPT, "sql", text, "--format", "csv"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.splitlines()[-2:]) == (1, ["n", "10"])
    assert "SELECT nothing FROM shop.stock\n" in done.stderr
    assert "Traceback" not in done.stderr
    assert "\tat " not in done.stderr


@pytest.mark.parametrize(
    ("widths", "terminal", "expected"),
    [
        ([3, 3], 80, [3, 3]),
        ([3, 90], 80, [3, 75]),
        ([60, 60], 80, [39, 39]),
        ([10, 100, 50], 84, [10, 35, 35]),
        ([20] * 10, 80, None),
    ],
)
@pytest.mark.every_case
def test_the_widest_columns_are_cut_to_fit(widths: list[int], terminal: int, expected: list[int] | None) -> None:
    found = fitted_widths(["x" * width for width in widths], [], terminal)
    assert found == expected
    assert found is None or sum(found) + 2 * (len(found) - 1) <= terminal


def test_a_dry_run_of_statements_changes_no_rows(orders: Icefield) -> None:
    before = orders("snapshots", "shop.orders", "--json").out
    done = orders("sql", "DELETE FROM shop.orders WHERE id <= 2", *LOCAL, "--dry-run", "--json")
    assert done.code == 0
    assert '"rows_deleted": 2,' in done.out
    refused = orders("sql", "DROP TABLE shop.orders", *LOCAL, "--dry-run")
    assert (refused.code, "no dry run" in refused.err) == (1, True)
    assert orders("snapshots", "shop.orders", "--json").out == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE shop.stock SET qty = soundex(sku)",
        "SELECT x FROM shop.stock LATERAL VIEW OUTER explode(array(sku)) e AS x",
        "INSERT INTO shop.stock SELECT sku, qty FROM shop.stock",
        "SELECT * FROM shop.stock VERSION AS OF (1 + 2)",
    ],
)
@pytest.mark.every_case
def test_a_hint_for_what_needs_spark_names_the_option(stock: Icefield, statement: str) -> None:
    ran = stock("sql", statement, *LOCAL)
    assert (ran.code, ran.out) == (1, "")
    assert "hint: Leave out --engine local\n" in ran.err
    assert "engine='" not in ran.err
