"""A process that dies while SQLite writes its log leaves the table as before or as after."""

import signal
from pathlib import Path

from tests.crash.scene import Scene, Zygote

FRAME_BYTES = 24 + 4096
HEADER_BYTES = 32
CUTS = [
    frame * FRAME_BYTES + offset
    for frame in range(3)
    for offset in (0, HEADER_BYTES - 1, HEADER_BYTES + 24, FRAME_BYTES // 2)
]


def test_a_commit_that_is_torn_at_any_place_is_in_or_out(zygote: Zygote, tmp_path: Path) -> None:
    scene = Scene(zygote, "append", tmp_path, None)
    signals, done = zip(*(scene.tear(after_bytes) for after_bytes in CUTS), strict=True)
    assert (signals[0], done[0]) == (signal.SIGXFSZ, False)
    assert (signals[-1], done[-1]) == (0, True), "with room enough it lands"
    assert list(done) == sorted(done)
