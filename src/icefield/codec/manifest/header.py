"""The key-value metadata in the header of a manifest. (spec: Manifests)

Raises CorruptFile for a header that is not that of a manifest.
"""

from dataclasses import dataclass

from icefield.codec.avro.container import parse_header
from icefield.errors import CorruptFile

DATA_MANIFEST, DELETE_MANIFEST = 0, 1

_CONTENTS = {"data": DATA_MANIFEST, "deletes": DELETE_MANIFEST}


@dataclass(frozen=True)
class ManifestHeader:
    """The table's schema and the partition spec as JSON text, with their ids, the format version and the content."""

    schema_json: str
    partition_spec_json: str
    partition_spec_id: int = 0
    schema_id: int | None = None
    format_version: int = 2
    content: int = DATA_MANIFEST

    def metadata(self) -> dict[str, str]:
        """Return the keys to write to the file."""
        metadata = {"schema": self.schema_json}
        if self.schema_id is not None:
            metadata["schema-id"] = str(self.schema_id)
        metadata |= {
            "partition-spec": self.partition_spec_json,
            "partition-spec-id": str(self.partition_spec_id),
            "format-version": str(self.format_version),
        }
        if self.format_version > 1:
            metadata["content"] = next(word for word, content in _CONTENTS.items() if content == self.content)
        return metadata


def decode_manifest_header(data: bytes, location: str) -> ManifestHeader:
    """Decode the header alone; keys that v1 may omit have the defaults of v1."""
    metadata = parse_header(data, location).metadata
    try:
        strings = {key: value.decode() for key, value in metadata.items() if not key.startswith("avro.")}
        return ManifestHeader(
            schema_json=strings["schema"],
            partition_spec_json=strings["partition-spec"],
            partition_spec_id=int(strings.get("partition-spec-id", "0")),
            schema_id=int(strings["schema-id"]) if "schema-id" in strings else None,
            format_version=int(strings.get("format-version", "1")),
            content=_CONTENTS[strings.get("content", "data")],
        )
    except (KeyError, ValueError) as error:
        raise CorruptFile(location, f"its header has missing or malformed metadata ({error})") from error
