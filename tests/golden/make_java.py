"""Make the golden tables of Iceberg Java, all or those that are named, with what Java reads in them; and its views.

.venv-interop/bin/python -m tests.golden.make_java [name ...]   (needs to write /icefield-golden)
"""

import shutil
import sys
from pathlib import Path

from tests.golden import java_deletes, java_evolution, java_plain, java_types, java_v3, java_views
from tests.golden.java_maker import ROOT, Recipe, WriteContext, start
from tests.golden.keeping import keep_all

RECIPES: tuple[Recipe, ...] = (
    *java_plain.RECIPES,
    *java_types.RECIPES,
    *java_evolution.RECIPES,
    *java_deletes.RECIPES,
    *java_v3.RECIPES,
)


def main(names: list[str]) -> int:
    """Make the tables; return how many failed."""
    Path(ROOT).mkdir(exist_ok=True)
    spark = start()
    try:
        if not names:
            java_views.make(spark)
        return keep_all(WriteContext(spark, recipe) for recipe in RECIPES if not names or recipe.name in names)
    finally:
        spark.stop()
        shutil.rmtree(ROOT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
