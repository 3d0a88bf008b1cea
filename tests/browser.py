"""Debian's Chromium without a window, for tests of pages.

It is used where it is installed. As root on Debian or Ubuntu it is installed on first use, which takes a few hundred
megabytes; where that is not possible, `find_chromium` says why.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--hide-scrollbars", "--virtual-time-budget=2000"),
)
SCHEMES = {"dark": 0, "light": 1}  # as Blink numbers them


class NoBrowser(Exception):
    """There is no browser here; the message says why."""


@cache
def find_chromium() -> str:
    """Return the path of the browser; install it first if that is possible."""
    found = _installed()
    if found is None:
        _install()
        found = _installed()
    if found is None:
        raise NoBrowser("chromium is not installed, and apt-get did not install it")
    return found


def _installed() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def _install() -> None:
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        raise NoBrowser("chromium is not installed, and only root can install it by apt-get")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with (Path(tempfile.gettempdir()) / "icefield-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        if _installed() is not None:
            return
        for command in ("update", "install"):
            packages = ["--no-install-recommends", "chromium"] if command == "install" else []
            done = subprocess.run(
                [apt, command, "--yes", "--quiet", *packages],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise NoBrowser(f"apt-get {command} failed: {done.stderr.strip()[-300:]}")


def show(page: Path, picture: Path, scheme: str) -> str:
    """Open a page in a light or dark browser, take a picture of it, and return the document that the browser made."""
    with tempfile.TemporaryDirectory(prefix="icefield-browser-") as profile:
        options = [f"--user-data-dir={profile}", f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}"]
        size = ["--window-size=1000,1100", f"--screenshot={picture}"]
        command = [find_chromium(), *QUIET, *options, *size, "--dump-dom", page.absolute().as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout
