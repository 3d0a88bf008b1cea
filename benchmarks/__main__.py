"""Run all benchmarks, or one by name: `python -m benchmarks [name [size]]`."""

import sys
from collections.abc import Callable

from benchmarks import (
    append,
    change_large,
    changes,
    collector,
    compaction,
    contention,
    decode_manifest,
    driver_memory,
    history,
    metadata_size,
    object_store,
    planning,
    small_files,
    small_work,
    spark_rows,
    sql,
    start_up,
    wide,
)

ALL: dict[str, Callable[..., None]] = {
    "append": append.run,
    "changes": changes.run,
    "changes_large": change_large.run,
    "collector": collector.run,
    "compaction": compaction.run,
    "contention": contention.run,
    "decode_manifest": decode_manifest.main,
    "driver_memory": driver_memory.run,
    "history": history.run,
    "metadata_size": metadata_size.run,
    "object_store": object_store.run,
    "planning": planning.run,
    "small_files": small_files.run,
    "small_work": small_work.run,
    "spark_rows": spark_rows.run,
    "sql": sql.run,
    "start_up": start_up.run,
    "wide": wide.run,
}


def main(arguments: list[str]) -> None:
    """Run the benchmarks that the arguments name."""
    for name in arguments[:1] or list(ALL):
        if name not in ALL:
            sys.exit(f"no measurement {name!r}; there are: {', '.join(ALL)}")
        ALL[name](*(int(a) for a in arguments[1:]))


if __name__ == "__main__":
    main(sys.argv[1:])
