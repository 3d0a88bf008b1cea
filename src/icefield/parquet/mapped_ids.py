"""Field ids of a Parquet file's columns: its own, or those of a name mapping. (spec: Column Projection)"""

import pyarrow as pa

from icefield.codec.json.name_mapping import NameMapping
from icefield.types.arrow import FIELD_ID_KEY, field_id_of

VARIANT_PARTS = ({"metadata", "value"}, {"metadata", "value", "typed_value"}, {"metadata", "typed_value"})


def has_ids(physical: pa.Schema) -> bool:
    """Return whether every column of a file, and every field of its structs, has an id."""
    return all(_has_ids(f) for f in physical)


def with_mapped_ids(physical: pa.Schema, mapping: NameMapping) -> pa.Schema:
    """Return a file's schema with missing ids filled in from a mapping; unmapped columns stay without."""
    return pa.schema([_mapped(f, f.name, mapping) for f in physical])


def _has_ids(field: pa.Field) -> bool:
    """Return whether a field and the fields of its structs have ids (not inside lists, maps and variants)."""
    own = field_id_of(field) is not None
    if pa.types.is_struct(field.type) and not _is_variant(field.type):
        return own and all(_has_ids(inner) for inner in _inside(field.type))
    return own


def _is_variant(kind: pa.StructType) -> bool:
    # Its fields are identified by name and must not have ids. (spec: Appendix A, Parquet)
    return set(kind.names) in VARIANT_PARTS and all(field_id_of(f) is None for f in _inside(kind))


def _mapped(field: pa.Field, name: str, mapping: NameMapping) -> pa.Field:
    found = mapping.find(name)
    inner = found.fields if found else NameMapping(())
    field = field.with_type(_mapped_type(field.type, inner))
    if found is None or found.field_id is None or field_id_of(field) is not None:
        return field
    return field.with_metadata({FIELD_ID_KEY: str(found.field_id).encode()})


def _mapped_type(kind: pa.DataType, mapping: NameMapping) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_mapped(f, f.name, mapping) for f in _inside(kind)])
    if pa.types.is_map(kind):
        return pa.map_(_mapped(kind.key_field, "key", mapping), _mapped(kind.item_field, "value", mapping))
    if pa.types.is_list(kind):
        return pa.list_(_mapped(kind.value_field, "element", mapping))
    if pa.types.is_large_list(kind):
        return pa.large_list(_mapped(kind.value_field, "element", mapping))
    return kind


def _inside(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [kind.value_field]
    return [kind.field(i) for i in range(kind.num_fields)] if pa.types.is_struct(kind) else []
