"""Statements about Spark itself, which it runs. Raises Unsupported."""

from dataclasses import dataclass
from typing import Any

from icefield.engine.local import LOCAL
from icefield.errors import Unsupported
from icefield.sql.session import Run
from icefield.sql.syntax.place import Place


@dataclass(frozen=True)
class LeftToSpark:
    """A statement that Spark runs as it is written."""

    place: Place

    def run(self, run: Run) -> Any:
        """Run it in the lake's session."""
        if run.engine == LOCAL:
            raise self.place.error("only Spark can run this statement", kind=Unsupported, hint="Leave out the engine")
        return run.lake.spark.sql(self.place.text)
