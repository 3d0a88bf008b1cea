"""Change table properties. Changes of different keys do not conflict; for one key the last one wins.

A name mapping is a property too: it lets files without field ids be read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from icefield.codec.json.name_mapping import PROPERTY, encode_name_mapping, map_schema
from icefield.commit.action import NOTHING_TO_DO, ProposedChange, WriteContext
from icefield.commit.actions.location import check_paths
from icefield.model.metadata import TableMetadata
from icefield.model.updates import AssertCurrentSchemaId, AssertTableUUID, RemoveProperties, SetProperties
from icefield.properties.check import check_properties


@dataclass(frozen=True)
class ChangeProperties:
    """Sets some properties and removes others."""

    updates: Mapping[str, str] = field(default_factory=dict)
    removals: tuple[str, ...] = ()

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        # Only new values are checked: an invalid value from another engine must not prevent other changes.
        check_properties(self.updates)
        check_paths(self.updates, context.store)
        return ProposedChange(
            [RemoveProperties(self.removals), SetProperties(self.updates)], [AssertTableUUID(base.table_uuid)]
        )

    def reusable_files(self) -> Sequence[str]:
        return ()


class EnsureNameMapping:
    """Maps the columns by their current names, unless the table already has a mapping."""

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        if PROPERTY in base.properties:
            return NOTHING_TO_DO
        mapping = encode_name_mapping(map_schema(base.schema))
        return ProposedChange([SetProperties({PROPERTY: mapping})], [AssertCurrentSchemaId(base.current_schema_id)])

    def reusable_files(self) -> Sequence[str]:
        return ()
