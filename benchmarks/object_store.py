"""Plan on an object store with a high latency: icefield against PyIceberg, in one run.

    python -m benchmarks object_store [manifests [milliseconds]]

The store is SeaweedFS on loopback behind a proxy that forwards each request after the given time. Each plan is the
first of a process: it loads the table and reads the manifest list and all manifests. Wall time, because they wait
rather than work; the best of some alternating rounds. The result is the ratio.
"""

import json
import subprocess
import sys

from tests.s3_server import s3_server

import icefield
from benchmarks.planning_tables import Bucket, Shape, make_table_in
from benchmarks.slow_store import delayed

ROUNDS = 3
_OURS = """
import json, sys, time
import icefield
target, properties = sys.argv[1], json.loads(sys.argv[2])
with icefield.connect(target, properties=properties) as lake:
    lake.has_table("a.b")  # the client is there
    begin = time.perf_counter()
    files = lake.table("bench.files").scan().files().num_rows
    print(json.dumps([time.perf_counter() - begin, files]))
"""
_THEIRS = """
import json, sys, time
from pyiceberg.table import StaticTable
location, properties = sys.argv[1], json.loads(sys.argv[2])
begin = time.perf_counter()
files = len(list(StaticTable.from_metadata(location, properties).scan().plan_files()))
print(json.dumps([time.perf_counter() - begin, files]))
"""


def run(manifests: int = 1_000, delay_ms: int = 50) -> None:
    """Print the time of both, and the ratio."""
    server = s3_server()
    root = server.new_root()
    with icefield.connect(root, properties=server.properties) as lake:
        location = make_table_in(lake, Bucket(lake.store, f"{root}/files"), Shape(manifests, 1))
    with delayed(server.endpoint, delay_ms / 1000) as endpoint:
        ours = json.dumps({**server.properties, "s3.endpoint": endpoint})
        theirs = json.dumps(
            {
                "s3.endpoint": endpoint,
                "s3.access-key-id": server.properties["s3.access-key-id"],
                "s3.secret-access-key": server.properties["s3.secret-access-key"],
                "s3.region": "us-east-1",
            }
        )
        mine, them = [], []
        for _ in range(ROUNDS):
            mine.append(_seconds(_OURS, root, ours, manifests))
            them.append(_seconds(_THEIRS, location, theirs, manifests))
    sys.stdout.write(
        f"plan {manifests:,} manifests, {delay_ms} ms per request (at most 1.5 s for 1,000 at 50 ms)\n"
        f"    icefield {min(mine):.2f} s  pyiceberg {min(them):.2f} s  {min(them) / min(mine):.1f}x\n"
    )


def _seconds(code: str, target: str, properties: str, files: int) -> float:
    command = [sys.executable, "-c", code, target, properties]
    seconds, found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert found == files, f"{found} files planned, not {files}"
    return float(seconds)
