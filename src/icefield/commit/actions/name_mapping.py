"""Add a name mapping to a table, so that files without field ids can be read."""

from collections.abc import Sequence

from icefield.codec.json.name_mapping import PROPERTY, encode_name_mapping, map_schema
from icefield.commit.action import NOTHING_TO_DO, ProposedChange, WriteContext
from icefield.model.metadata import TableMetadata
from icefield.model.updates import AssertCurrentSchemaId, SetProperties


class EnsureNameMapping:
    """Maps the columns by their current names, unless the table already has a mapping."""

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        if PROPERTY in base.properties:
            return NOTHING_TO_DO
        mapping = encode_name_mapping(map_schema(base.schema))
        return ProposedChange([SetProperties({PROPERTY: mapping})], [AssertCurrentSchemaId(base.current_schema_id)])

    def reusable_files(self) -> Sequence[str]:
        return ()
