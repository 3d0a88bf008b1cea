"""Set the location of a table's new files; existing files stay where they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icefield.commit.action import NOTHING_TO_DO, ProposedChange, WriteContext
from icefield.model.metadata import TableMetadata
from icefield.model.updates import AssertTableUUID, SetLocation
from icefield.properties.table import DATA_PATH, METADATA_PATH
from icefield.storage.store import Store


@dataclass(frozen=True)
class ChangeLocation:
    """Sets the directory of new files."""

    location: str

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        if base.location == self.location:
            return NOTHING_TO_DO
        return ProposedChange([SetLocation(self.location)], [AssertTableUUID(base.table_uuid)])

    def reusable_files(self) -> Sequence[str]:
        return ()


def check_paths(properties: Mapping[str, str], store: Store) -> None:
    """Raise LocationRefused for properties that place new files where the lake must not write."""
    for path in (DATA_PATH.read(properties), METADATA_PATH.read(properties)):
        if path is not None:
            store.check(path)
