"""The standard streams of the command line, which may be closed, full, or a pipe without a reader.

A failed write raises OutputFailed, which distinguishes it from a failure of the lake. Buffers are flushed before Python
exits: at exit, a failed flush could only print a traceback.
"""

import errno
import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

STDOUT, STDERR = 1, 2


class OutputFailed(OSError):
    """Standard output or standard error cannot be written to."""

    @property
    def is_unread(self) -> bool:
        """Whether the reader closed the pipe on purpose, as `head` does."""
        return self.errno == errno.EPIPE


def open_streams() -> None:
    """Make standard output and standard error writable, whatever this process was started with."""
    for descriptor in (0, STDOUT, STDERR):
        # The next file to be opened would reuse a closed descriptor: the catalog, for example.
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = _stream(STDOUT, sys.stdout)
    sys.stderr = _stream(STDERR, sys.stderr)


def run_to_the_end(run: Callable[[], int], report: Callable[[str], None]) -> int:
    """Run, flush the streams, and return the exit code. `report` prints a failure."""
    try:
        code = run()
        sys.stdout.flush()
    except OutputFailed as error:
        code = 1
        if not error.is_unread:
            with suppress(OutputFailed):
                report(f"cannot write the output: {error.strerror}")
    _discard_the_rest()
    return code


def _discard_the_rest() -> None:
    """Discard the unwritten output, so that Python's flush at exit does not fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream, descriptor in ((sys.stdout, STDOUT), (sys.stderr, STDERR)):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, descriptor)
    os.close(nowhere)


class _Descriptor(io.FileIO):
    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OutputFailed(error.errno, error.strerror) from error


def _stream(descriptor: int, opened: object) -> io.TextIOWrapper:
    encoding = opened.encoding if isinstance(opened, io.TextIOWrapper) else "utf-8"
    raw = _Descriptor(descriptor, "w", closefd=False)
    # A terminal that cannot show a character gets an escape instead of a traceback.
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=descriptor == STDERR or raw.isatty(),
    )
