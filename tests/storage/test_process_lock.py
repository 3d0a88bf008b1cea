"""A lock between threads: exclusive in a process, and free in a forked child whatever the parent's threads do."""

import os
import threading
import time

import pytest

from icefield.cache.decoded_files import DecodedFiles
from icefield.cache.manifests import Key, ManifestCache
from icefield.cache.plans import SmallAnswers
from icefield.storage.process_lock import ProcessLock


def test_one_thread_at_a_time_has_it() -> None:
    lock, inside, most = ProcessLock(), 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(20):
            with lock:
                inside += 1
                most = max(most, inside)
                time.sleep(0.0001)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def ends_in_a_child(work: object) -> bool:
    """Fork, do the work in the child, and return whether it came to its end."""
    assert callable(work)
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    for _ in range(1000):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return False


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_can_use_caches_that_a_thread_of_the_parent_has_locked() -> None:
    cache, files, plans = ManifestCache(), DecodedFiles(1000), SmallAnswers[str]()
    with cache._lock, files._lock, plans._lock:
        assert ends_in_a_child(lambda: cache.note(Key("m", 1)))
        assert ends_in_a_child(lambda: files.decoded(b"1", "a", lambda data, _: data))
        assert ends_in_a_child(lambda: plans.note("question"))
        plain = threading.Lock()
        with plain:
            assert not ends_in_a_child(lambda: plain.acquire(timeout=0.2) or os._exit(1))
