"""A lock between the threads of one process, which a fork leaves free in the child."""

import os
import threading


class ProcessLock:
    """A lock for `with`. In a forked child it is free: the thread that holds it in the parent does not exist there."""

    def __init__(self) -> None:
        self._of_process: dict[int, threading.Lock] = {}

    def __enter__(self) -> None:
        process = os.getpid()
        lock = self._of_process.get(process) or self._of_process.setdefault(process, threading.Lock())
        lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._of_process[os.getpid()].release()
