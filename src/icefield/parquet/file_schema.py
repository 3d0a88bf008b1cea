"""The columns of a data file: those of the table that files can store. (spec: Appendix A, Parquet)

Raises Unsupported for a table whose rows cannot be written by Icefield; it can still be read.
"""

from dataclasses import replace

from icefield.errors import Unsupported
from icefield.types.datatypes import (
    EdgeAlgorithm,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    UnknownType,
    VariantType,
    walk,
)
from icefield.types.schema import Schema


def file_schema(schema: Schema) -> Schema:
    """Return the columns of new files of a table."""
    for path, field in walk(schema.struct):
        _check_writable(field, path)
    stored = stored_fields(schema)
    if not stored:
        # Parquet counts rows by the values of columns: rows without columns would be lost.
        held = ", ".join(f"{field.name} {field.type}" for field in schema.fields)
        raise Unsupported(
            f"cannot write rows of this table: data files cannot store any of its columns ({held})",
            hint="Add a column of another type first",
        )
    return replace(schema, fields=stored)


def stored_fields(schema: Schema) -> tuple[NestedField, ...]:
    """Return the columns that files of a table store, whether or not Icefield can write them."""
    return _stored(schema.fields)


def _check_writable(field: NestedField, path: tuple[str, ...]) -> None:
    inner = len(path) > 1
    if not _is_writable(field.type, inner=inner):
        where = " inside another column" if inner else ""
        raise Unsupported(
            f"cannot write rows of this table: column {'.'.join(path)!r} is {field.type}{where}, "
            "which Arrow's Parquet writer cannot store",
            hint="Its rows can be read; write them with another engine",
        )
    if isinstance(field.type, ListType | MapType) and any(_is_unknown(f.type) for _, f in walk(field.type)):
        raise Unsupported(f"cannot write rows of this table: column {'.'.join(path)!r} has parts of unknown type")


def _is_writable(kind: Type, *, inner: bool) -> bool:
    match kind:
        case VariantType():
            return False
        case GeometryType():
            return not inner
        case GeographyType():
            return not inner and kind.algorithm is EdgeAlgorithm.SPHERICAL
        case _:
            return True


def _stored(fields: tuple[NestedField, ...]) -> tuple[NestedField, ...]:
    """Omit columns of unknown type, and structs without any other field."""
    kept = (replace(f, type=_stored_type(f.type)) for f in fields if not _is_unknown(f.type))
    return tuple(kept)


def _stored_type(kind: Type) -> Type:
    return StructType(_stored(kind.fields)) if isinstance(kind, StructType) else kind


def _is_unknown(kind: Type) -> bool:
    if isinstance(kind, StructType):
        return all(_is_unknown(f.type) for f in kind.fields)
    return isinstance(kind, UnknownType)
