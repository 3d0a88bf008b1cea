"""The reports of a lake: who gets them."""

from __future__ import annotations

from icefield.arguments import check_arguments
from icefield.deferred import deferred_imports

with deferred_imports(__name__):
    from icefield.backend import Backend
    from icefield.metrics import Listener


@check_arguments
class Reporting:
    """The part of a lake that tells what its scans and commits did."""

    backend: Backend

    def on_report(self, listener: Listener) -> Listener:
        """Call a function with the report of every scan and commit from now on; return it, for use as a decorator.

        Args:
            listener: Gets a `ScanReport` when a scan was planned, and a `CommitReport` for each snapshot that was
                committed through this lake, in the thread that did so. What it raises is logged.
        """
        self.backend.listeners.add(listener)
        return listener
