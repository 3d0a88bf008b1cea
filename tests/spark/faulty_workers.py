"""Workers that cannot run tasks: each is one clear error, and commits nothing. See test_sessions.py.

One session for all faults, since each takes its Python from the context when it starts workers. The first is that of
this process, and finds another package of the name in the working directory.
"""

import shutil
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from tests.spark.test_everywhere import python_without_icefield

import icefield
from icefield.errors import Unsupported


def main(directory: Path) -> None:
    shadow = Path("icefield")
    shadow.mkdir()
    (shadow / "__init__.py").touch()
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    pythons = [sys.executable, str(python_without_icefield(directory / "environment")), str(directory / "nowhere")]
    with icefield.connect(directory / "lake", durable=False) as lake:
        table = lake.create_table("a.t", "id long")
        for python in pythons:
            spark.sparkContext.pythonExec = python
            try:
                table.append(spark.range(3))
            except Unsupported as error:
                assert table.snapshots() == []
                print(f"{error} {error.hint}")
            shutil.rmtree(shadow, ignore_errors=True)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
