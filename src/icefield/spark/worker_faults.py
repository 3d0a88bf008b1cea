"""Faults of Spark's Python workers that are not of the rows: told in one line, not in a stack trace."""

from pyspark.errors import PySparkException

from icefield.errors import Unsupported

_MISSING = "No module named 'icefield'"


def explain_worker_fault(error: BaseException) -> Unsupported | None:
    """Return the error to raise in place of Spark's, if it is one of how the workers are set up."""
    if isinstance(error, PySparkException) and _MISSING in str(error):
        return Unsupported(
            "the Python of Spark's executors has no icefield",
            hint="Install the version of this process there, or ship the package with spark.submit.pyFiles, "
            "spark.archives or, over Spark Connect, spark.addArtifacts(..., pyfile=True)",
        )
    return None
