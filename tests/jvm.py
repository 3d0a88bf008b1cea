"""The JVMs of the tests, and the environment of the processes that start one of their own."""

import os

# Small queries on a JVM that soon ends: code compiled once, and not again for speed, takes half of the CPU time, and
# classes of Spark's own jars that are loaded without verification a fifth less of the rest.
OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
SUBMIT_OPTIONS = "SPARK_SUBMIT_OPTS"
EXECUTOR_OPTIONS = f'--conf "spark.executor.extraJavaOptions={OPTIONS}"'


def own_environment(*more_prefixes: str, **more: str) -> dict[str, str]:
    """Return this environment without what pytest and Spark Connect say to processes that they start."""
    prefixes = ("PYTEST_", "SPARK_", *more_prefixes)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(prefixes)}
    return {**kept, SUBMIT_OPTIONS: OPTIONS, **more}
