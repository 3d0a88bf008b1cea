"""Run scripts one after the other in this process, whose JVM they share: one of its own takes half a minute to warm up.

    python tests/spark/one_jvm.py directory script…

Each gets a directory as its argument; what it prints, or how it fails, is in a file beside that.
"""

import runpy
import sys
import traceback
from contextlib import redirect_stdout
from pathlib import Path

from pyspark.sql import SparkSession


def main(directory: Path, scripts: list[Path]) -> None:
    for script in scripts:
        own = directory / script.stem
        own.mkdir()
        sys.argv = [str(script), str(own)]
        with own.with_suffix(".txt").open("w") as printed, redirect_stdout(printed):
            try:
                runpy.run_path(str(script), run_name="__main__")
            except Exception:
                traceback.print_exc(file=printed)
        if left := SparkSession.getActiveSession():
            left.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(script) for script in sys.argv[2:]])
