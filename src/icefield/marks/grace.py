"""How long marked files wait before they are deleted.

Raises InvalidInput for a grace period that does not protect other engines.
"""

from collections.abc import Mapping

from icefield.errors import InvalidInput
from icefield.marks.mark import RETIRED
from icefield.properties.upkeep import GC_FOREIGN_READERS, GC_GRACE_MS, GC_METADATA_GRACE_MS

DAY_MS = 24 * 3600 * 1000


def grace_of(properties: Mapping[str, str], reason: str | None = None) -> int:
    """Return the grace period of a table in milliseconds; of marks for one reason if it is given."""
    grace_ms = GC_GRACE_MS.read(properties)
    if grace_ms < DAY_MS and GC_FOREIGN_READERS.read(properties):
        raise InvalidInput(
            f"cannot delete files after {grace_ms / 3_600_000:g} hours: other engines may read the table, and only the "
            f"grace period ({GC_GRACE_MS.key}) protects them",
            hint=f"Set {GC_FOREIGN_READERS.key} to false if none does, or a grace period of a day",
        )
    return min(grace_ms, GC_METADATA_GRACE_MS.read(properties)) if reason == RETIRED else grace_ms
