"""The snippets without prompts do what the pages say: each indented block of Python is run on a lake of its own, twice.

The first run must not fail. In the second one, a verb may refuse what is there already, by one error of Icefield.
"""

import ast
import re
import textwrap
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import icefield
from icefield.errors import IcefieldError
from icefield.telemetry import recorder

DOCS = Path(__file__).parent.parent / "docs"
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?<=\n\n)(?:    .*\n|\n(?=    ))+")
COMMAND = re.compile(r"\n*^icefield .*$", re.MULTILINE)
PAGES = ("guide.md", "history.md", "upkeep.md", "fsck.md", "expressions.md", "deployment.md", "command-line.md")

# Blocks that are not in Python, and snippets that need a server, by their beginnings.
NOT_PYTHON = (
    'default = "prod"',  # icefield.toml
    '"id long not null, tags',  # a schema
    "icefield fsck shop.orders shop.lines",
    "*/30 * * * *",
    "python -m venv worker",
    "export PYSPARK_PYTHON",
    "pip install 'icefield[connect]'",  # with the same snippet as SERVERS
    'eval "$(icefield completion',
)
SERVERS = ('icefield.connect("s3://', "spark = SparkSession.builder.remote(")
NEEDS_SPARK = (
    "orders.delete(\"customer = 'ada'\", engine=",
    'orders.delete("id IN (SELECT id FROM returns)")',
    'lake.create_view("shop.big_orders"',
    "lake.use(spark)",
    'lake.read("shop.orders", where=',
)

SCHEMA = """id long not null, customer string, qty int, amount double, ts timestamptz, day date, due date,
status string, tries int, note string, country string, address struct<city: string, zip: int>"""
AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
ROWS = [
    {"id": 1, "customer": "ada", "qty": 2, "amount": 12.5, "ts": AT, "day": AT.date(), "n": 1},
    {"id": 2, "customer": "bob", "qty": 1, "amount": 80.0, "ts": AT, "day": AT.date(), "n": 1},
]
STARTED = """
import logging
from datetime import datetime, timedelta, timezone
from icefield import lit
name = "shop.new"
"""
# What a snippet is about, before it runs: code by the beginning of its block.
PREPARED = {
    "orders.delete(f\"_file = '{path}'": "path = orders.scan().files()['file_path'][0].as_py()",
    "with orders.evolve() as change": """
orders.upgrade_format_version(3)
with orders.evolve() as change:
    change.drop_column("note")
    change.add_column("old", "int")
frame = pa.schema([("more", pa.int64())])
""",
    'lake.create_table("shop.orders", schema, format_version=3)': """
lake.rename_table("shop.orders", "shop.old")
orders = lake.table("shop.old")
""",
    "orders.delete(\"customer = 'ada'\")   ": """
changes = rows.append_column("op", pa.array(["update", "delete"]))
""",
    "orders.compact(dry_run=True)": """
orders.append(rows)
with orders.evolve() as change:
    change.set_sort_order(["ts"])
""",
    "orders.convert_equality_deletes()": """
older_than = datetime(2026, 1, 1, tzinfo=timezone.utc)
snapshot_id = orders.current_snapshot.snapshot_id
orders.append(rows)
other = lake.create_table("shop.other", schema)
metadata_location = other.metadata_location
lake.drop_table("shop.other")
""",
    "with lake.transaction() as tx": "new_orders = counted = rows",
    'orders.add_files("/mnt/archive/2025")': """
lake = icefield.connect("lake/", roots=[here])
orders = lake.create_table("shop.orders", "id long, day date", partition_by=["day"], replace=True)
days = pa.table({"id": [7]})
pa.parquet.write_table(days, "a.parquet")
(here / "archive/day=2026-01-04").mkdir(parents=True)
pa.parquet.write_table(pa.table({"id": [8]}), "archive/day=2026-01-04/b.parquet")
""",
    "orders.scan_appends(after": "after = orders.append(rows).snapshot_id\nuntil = orders.append(rows).snapshot_id",
    'orders.create_branch("staging")\n': "corrections = rows",
    'orders.publish("staging", on_collision': """
from icefield.errors import ConcurrentChange
orders.create_branch("staging")
orders.at("staging").append(rows)
error = ConcurrentChange("nothing collides")
""",
    'orders.at("staging").rebase()': """
orders.create_branch("staging")
orders.at("staging").append(rows)
snapshot_id = orders.at("staging").current_snapshot.snapshot_id
""",
    'orders.set_properties({"icefield.check': "orders.create_branch('staging')\norders.at('staging').append(rows)",
    'orders.rollback("q1")': """
orders.create_tag("q1")
snapshot_id = orders.current_snapshot.snapshot_id
moment = datetime.fromtimestamp(orders.current_snapshot.timestamp_ms / 1000, tz=timezone.utc)
orders.append(rows)
""",
    'orders.create_branch("staging")           # from the head': "snapshot_id = orders.append(rows).snapshot_id",
}
# What stands for something in a snippet.
MEANT = {
    "delete_files([location])": "delete_files(orders.scan().files()['file_path'].to_pylist()[:1])",
    'set_location("…/elsewhere")': 'set_location(f"{lake.warehouse}/elsewhere")',
    "as_of=…": "as_of=None",
    '"00000-0-….parquet"': "scan.files()['file_path'][0].as_py()",
    '"2026-03-01T00:00:00Z"': "moment",
    '"/mnt/archive/2025"': '"archive"',
}


def snippets() -> list[str]:
    """Return the indented blocks of the pages, without commands."""
    found = []
    for name in PAGES:
        for block in INDENTED.findall(FENCED.sub("", (DOCS / name).read_text())):
            text = textwrap.dedent(block)
            if not text.startswith(NOT_PYTHON):
                found.append(COMMAND.sub("", text))
    return found


def begins(text: str) -> str:
    return re.sub(r"\W+", " ", text)[:50].strip()


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the snippets name: a lake with tables of two rows, in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "icefield.toml").write_text('[lakes.prod]\ntarget = "data/lake"\n')
    lake = icefield.connect("lake/")
    orders = lake.create_table("shop.orders", SCHEMA, partition_by=["day(ts)"])
    stock = lake.create_table("shop.stock", f"{SCHEMA}, sold boolean")
    for table in (orders, stock, lake.create_table("shop.returns", "id long, n int")):
        table.append(
            [{name: value for name, value in row.items() if name in table.schema.column_names} for row in ROWS]
        )
    rows = orders.scan().to_arrow().read_all()
    known: dict[str, Any] = {"icefield": icefield, "pa": pa, "lake": lake, "orders": orders, "rows": rows}
    known |= {"table": orders, "schema": SCHEMA, "here": tmp_path, "recorder": recorder}
    exec(STARTED, known)
    return known


def run(text: str, names: dict[str, Any], meant: Mapping[str, str] = MEANT) -> None:
    for shown, real in meant.items():
        text = text.replace(shown, real)
    for statement in _whole(text).body:
        exec(compile(ast.Module([statement], []), "snippet", "exec"), names)


def _whole(text: str) -> ast.Module:
    """Parse a snippet; a loop at a place where only a comment says what it does has no body."""
    return ast.parse(re.sub(r"^(for .*:)( *#.*)?$", r"\1 pass", text, flags=re.MULTILINE))


def check_twice(text: str, names: dict[str, Any]) -> None:
    for start, code in PREPARED.items():
        if text.startswith(start):
            exec(code, names)
    run(text, names)
    with suppress(IcefieldError):
        run(text, names)


LOCAL = [each for each in snippets() if not each.startswith((*SERVERS, *NEEDS_SPARK))]


@pytest.mark.every_case
@pytest.mark.parametrize("text", LOCAL, ids=begins)
def test_a_snippet_runs_twice(text: str, names: dict[str, Any]) -> None:
    check_twice(text, names)


@pytest.mark.spark
@pytest.mark.every_case
@pytest.mark.parametrize("text", [each for each in snippets() if each.startswith(NEEDS_SPARK)], ids=begins)
def test_a_snippet_for_spark_runs_twice(text: str, names: dict[str, Any], spark: Any) -> None:
    icefield.register(spark, names["lake"])
    names |= {"spark": spark, "df": spark.createDataFrame([(9, "eve")], "id long, customer string")}
    check_twice(text, names)
    names["lake"].use(None)


def test_every_exception_is_in_a_page() -> None:
    blocks = [textwrap.dedent(b) for name in PAGES for b in INDENTED.findall(FENCED.sub("", (DOCS / name).read_text()))]
    listed = (*NOT_PYTHON, *SERVERS, *NEEDS_SPARK, *PREPARED)
    assert [start for start in listed if not any(block.startswith(start) for block in blocks)] == []
    text = "".join((DOCS / name).read_text() for name in PAGES)
    assert [shown for shown in MEANT if shown not in text] == []


def test_a_wrong_snippet_is_found(names: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        check_twice("orders.append(rows, no_such=True)\n", names)
