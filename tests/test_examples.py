"""Every example runs by itself in an empty directory, and prints what its docstring shows.

Those that need servers get real ones: PostgreSQL, an S3 server, a Spark Connect server.
"""

import ast
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests import postgres
from tests.s3_server import s3_server

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
WITH_SERVERS = {"postgres_s3", "spark_connect"}


def shown(example: Path) -> str:
    """Return what an example says that it prints."""
    docstring = ast.get_docstring(ast.parse(example.read_text())) or ""
    _, marker, output = docstring.partition("Prints:\n")
    assert marker, f"{example.name} does not say what it prints"
    return textwrap.dedent(output).strip() + "\n"


def check(example: Path, folder: Path, *arguments: str, **variables: str) -> None:
    """Run an example and compare what it prints."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ICEFIELD_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example), *arguments],
        cwd=folder,
        env={**environment, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == shown(example)


@pytest.mark.slow
@pytest.mark.parametrize(
    "example", [path for path in EXAMPLES if path.stem not in WITH_SERVERS], ids=lambda path: path.stem
)
def test_an_example_prints_what_it_shows(example: Path, tmp_path: Path) -> None:
    check(example, tmp_path)


@pytest.mark.slow
def test_postgres_and_s3_by_environment_and_again_by_arguments(tmp_path: Path) -> None:
    example, bucket = FOLDER / "postgres_s3.py", s3_server()
    properties = bucket.properties
    endpoint = f"s3.endpoint={properties['s3.endpoint']}"
    keys = {
        "AWS_REGION": properties["s3.region"],
        "AWS_ACCESS_KEY_ID": properties["s3.access-key-id"],
        "AWS_SECRET_ACCESS_KEY": properties["s3.secret-access-key"],
    }
    with postgres.running_server() as server:
        url, root = server.new_schema(), bucket.new_root()
        check(example, tmp_path, "--property", endpoint, ICEFIELD_LAKE=url, ICEFIELD_WAREHOUSE=root, **keys)
        check(example, tmp_path, "--lake", url, "--warehouse", root, "--property", endpoint, **keys)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("ICEFIELD_SPARK") != "connect", reason="run by tests/spark/test_everywhere.py")
def test_spark_connect(tmp_path: Path, spark: object) -> None:
    check(FOLDER / "spark_connect.py", tmp_path, "--remote", os.environ["ICEFIELD_SPARK_REMOTE"])


def test_every_example_is_listed() -> None:
    page = (FOLDER / "README.md").read_text()
    assert EXAMPLES
    assert [path.name for path in EXAMPLES if f"[{path.name}]({path.name})" not in page] == []
