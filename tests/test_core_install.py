"""The core without extras: every verb that needs no Spark works, and the others name what to install."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.core_only import core_packages

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent


def run_core(script: str, folder: Path) -> str:
    """Run a script with nothing but the core, and return what it prints."""
    (folder / "script.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.core_only", str(folder / "script.py"), str(folder / "lake")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_core_has_neither_spark_nor_pandas() -> None:
    core = core_packages()
    assert {"pyarrow", "numpy", "sqlglot", "click"} <= core
    assert core & {"pyspark", "py4j", "pandas", "duckdb", "obstore"} == set()
    assert len(core) <= 12, sorted(core)


WORK = """
import datetime, sys
import pyarrow as pa
import icefield
from icefield import *

rows = pa.table({"id": range(10), "day": [datetime.date(2026, 1, 1 + i % 3) for i in range(10)], "name": ["a"] * 10})
with icefield.connect(sys.argv[1]) as lake:
    table = lake.create_table("s.t", "id long not null, day date, name string", partition_by=["day"])
    first = table.append(rows)
    table.append([{"id": 10, "day": datetime.date(2026, 1, 9), "name": "b"}])
    assert table.update({"name": "upper(name)"}, where="id < 3").rows_updated == 3
    assert table.delete("id = 4").rows_deleted == 1
    table.upsert(pa.table({"id": [5, 99], "day": [None, None], "name": ["x", "y"]}), on=["id"])
    table.merge(pa.table({"id": [6]}), on=["id"]).when_matched().delete().execute()
    assert sorted(row["id"] for row in table.scan()) == [0, 1, 2, 3, 5, 7, 8, 9, 10, 99]
    assert table.count("name = 'A'") == 3 and table.scan(as_of=first.snapshot_id).count() == 10
    assert table.scan().min("id").as_py() == 0 and table.scan(where="day > '2026-01-02'").explain()
    with table.evolve() as change:
        change.add_column("more", "int")
    table.compact()
    assert table.inspect("files").to_arrow().read_all().num_rows
    table.create_branch("try")
    lake.sql("INSERT INTO s.t (id, name) VALUES (100, 'sql')", engine="local")
    assert table.count("id = 100") == 1
    assert lake.fsck().findings == ()
    table.expire_snapshots(dry_run=True)
    print(repr(table.scan().limit(2)), table.head(1).num_rows)
    print([name for name in sys.modules if name.partition(".")[0] in ("pyspark", "pandas", "duckdb")])
"""


def test_the_verbs_of_the_core_work_alone(tmp_path: Path) -> None:
    assert run_core(WORK, tmp_path).splitlines()[-1] == "[]"


REFUSED = """
import sys
import icefield

with icefield.connect(sys.argv[1]) as lake:
    table = lake.create_table("s.t", "id long")
    table.append([{"id": 1}, {"id": 2}])  # a part of a file: what metadata can answer needs no engine
    verbs = {
        "lake.spark": lambda: lake.spark,
        "lake.read": lambda: lake.read("s.t"),
        "lake.sql": lambda: lake.sql("SELECT * FROM s.t"),
        "to_spark": lambda: table.scan().to_spark(),
        "inspect": lambda: table.inspect("files").to_spark(),
        "delete": lambda: table.delete("id = 1", engine="spark"),
        "update": lambda: table.update({"id": "2"}, engine="spark"),
        "append": lambda: table.append([{"id": 1}], engine="spark"),
        "attach": lambda: lake.attach(),
        "register": lambda: icefield.register(None),
        "to_pandas": lambda: table.to_pandas(),
        "local query": lambda: lake.sql("SELECT * FROM s.t", engine="local"),
    }
    for name, verb in verbs.items():
        try:
            verb()
        except icefield.Unsupported as error:
            print(f"{name}: {error.message} | {error.hint}")
    assert table.count() == 2
"""


def test_a_verb_that_needs_an_extra_names_it_and_changes_nothing(tmp_path: Path) -> None:
    said = dict(line.split(": ", 1) for line in run_core(REFUSED, tmp_path).splitlines())
    of_spark = (
        "this needs Spark, which cannot be imported: No module named 'pyspark' | Run pip install 'icefield[spark]'"
    )
    others = {"to_pandas": "pip install pandas", "local query": "pip install 'icefield[duckdb]'"}
    names = ("lake.spark", "lake.read", "lake.sql", "to_spark", "inspect", "delete", "update", "append")
    for name in (*names, "attach", "register"):
        assert said.pop(name).startswith(of_spark), name
    assert {name: hint in said.pop(name) for name, hint in others.items()} == dict.fromkeys(others, True)
    assert said == {}


NANOSECONDS = """
import sys
import pyarrow as pa
import icefield
from icefield.cli.main import run

moments = pa.array([1, 1_700_000_000_123_456_789, None], pa.timestamp("ns"))
with icefield.connect(sys.argv[1]) as lake:
    table = lake.create_table("s.t", "at timestamp_ns, id long", format_version=3, partition_by=["day(at)"])
    table.append(pa.table({"at": moments, "id": [1, 2, 3]}))
    assert table.count("at > '2000-01-01'") == 1
    assert table.delete("at < '2000-01-01T00:00:00.000000001'").rows_deleted == 1
    assert table.scan().to_arrow().read_all()["at"].null_count == 1
    assert table.scan().explain() and table.inspect("partitions").to_arrow().read_all().num_rows == 2
    try:
        list(table.scan())
    except icefield.Unsupported as error:
        print(error.hint)
    assert [row["id"] for row in table.scan(select=["id"]).to_arrow().read_all().to_pylist()]
    assert table.scan().max("at").value == 1_700_000_000_123_456_789
    table.compact()
for command in ("query s.t", "min-max s.t at", "inspect s.t files", "files s.t", "explain s.t"):
    print("exit", command, run(["--lake", sys.argv[1], *command.split()]))
"""


def test_nanoseconds_without_pandas_are_one_clear_error(tmp_path: Path) -> None:
    printed = run_core(NANOSECONDS, tmp_path).splitlines()
    assert [line for line in printed if line.startswith("exit")] == [
        "exit query s.t 1",
        "exit min-max s.t at 1",
        "exit inspect s.t files 1",
        "exit files s.t 0",
        "exit explain s.t 0",
    ]
    assert sum("Run pip install pandas" in line for line in printed) == 4
