"""Upgrade the format version of a table. Only metadata changes: older manifests are valid in newer tables.

(spec: Writer requirements, Row Lineage for Upgraded Tables)
"""

from collections.abc import Sequence
from dataclasses import dataclass

from icefield.commit.action import ProposedChange, WriteContext
from icefield.model.metadata import TableMetadata
from icefield.model.updates import AssertTableUUID, UpgradeFormatVersion


@dataclass(frozen=True)
class UpgradeTable:
    """Upgrades a table to a format version, from any earlier one."""

    format_version: int

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        return ProposedChange([UpgradeFormatVersion(self.format_version)], [AssertTableUUID(base.table_uuid)])

    def reusable_files(self) -> Sequence[str]:
        return ()
