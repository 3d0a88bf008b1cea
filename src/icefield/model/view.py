"""View metadata: the query of a view, in its versions, and its columns. (view spec)

Each version of the metadata file is an immutable value; `create_view`, `replace_version` and `set_properties` return
the next one. View versions never change: a definition that existed before is made current again.

Raises InvalidInput for an invalid definition or property.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput
from icefield.properties.property import Property

with deferred_imports(__name__):
    from icefield.model.names import Namespace
    from icefield.types.schema import Schema

VIEW_FORMAT_VERSION = 1
FIRST_VERSION_ID = 1


def _positive(text: str) -> int:
    if int(text) < 1:
        raise ValueError("it must be at least 1")
    return int(text)


HISTORY_ENTRIES = Property("version.history.num-entries", _positive, 10, "How many versions of a view are kept.")
DROP_DIALECT = Property(
    "replace.drop-dialect.allowed",
    lambda text: text.lower() == "true",
    False,
    "Whether a replacement may leave out a SQL dialect that the view has.",
)


@dataclass(frozen=True)
class SqlRepresentation:
    """A query in one dialect."""

    sql: str
    dialect: str


@dataclass(frozen=True)
class OtherRepresentation:
    """A representation of an unknown type, preserved as it is."""

    raw: bytes


Representation = SqlRepresentation | OtherRepresentation


@dataclass(frozen=True)
class ViewDefinition:
    """The definition of a view: its columns, its query in one or more dialects, and how names in it are resolved."""

    schema: Schema
    representations: tuple[Representation, ...]
    default_namespace: Namespace
    default_catalog: str | None = None
    summary: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        dialects = [r.dialect.lower() for r in self.representations if isinstance(r, SqlRepresentation)]
        if not self.representations:
            raise InvalidInput("a view needs a query")
        if len(set(dialects)) < len(dialects):
            raise InvalidInput(f"a view has one query per dialect, but got: {', '.join(dialects)}")


@dataclass(frozen=True)
class ViewVersion:
    """A view's definition at some point in time."""

    version_id: int
    schema_id: int
    timestamp_ms: int
    representations: tuple[Representation, ...]
    default_namespace: Namespace
    default_catalog: str | None = None
    summary: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, bytes] = field(default_factory=dict)

    def find_sql(self, dialect: str) -> str | None:
        """Return the query in a dialect."""
        for each in self.representations:
            if isinstance(each, SqlRepresentation) and each.dialect.lower() == dialect:
                return each.sql
        return None

    @property
    def dialects(self) -> tuple[str, ...]:
        """The dialects that the version has a query in."""
        return tuple(r.dialect for r in self.representations if isinstance(r, SqlRepresentation))


@dataclass(frozen=True)
class VersionLogEntry:
    """A time at which a version became current."""

    timestamp_ms: int
    version_id: int


@dataclass(frozen=True)
class ViewMetadata:
    """The contents of a view's metadata.json."""

    view_uuid: uuid.UUID
    location: str
    schemas: tuple[Schema, ...]
    current_version_id: int
    versions: tuple[ViewVersion, ...]
    version_log: tuple[VersionLogEntry, ...]
    properties: Mapping[str, str] = field(default_factory=dict)
    format_version: int = VIEW_FORMAT_VERSION
    unknown: Mapping[str, bytes] = field(default_factory=dict)  # keys of other writers, preserved

    @property
    def current_version(self) -> ViewVersion:
        """The version that readers use."""
        return self.version_by_id(self.current_version_id)

    @property
    def schema(self) -> Schema:
        """The columns of the current version."""
        return self.schema_by_id(self.current_version.schema_id)

    def version_by_id(self, version_id: int) -> ViewVersion:
        """Find a version."""
        for version in self.versions:
            if version.version_id == version_id:
                return version
        raise InvalidInput(f"the view has no version {version_id}")

    def schema_by_id(self, schema_id: int) -> Schema:
        """Find a schema."""
        for schema in self.schemas:
            if schema.schema_id == schema_id:
                return schema
        raise InvalidInput(f"the view has no schema with id {schema_id}")


def create_view(
    view_uuid: uuid.UUID, location: str, definition: ViewDefinition, properties: Mapping[str, str], now_ms: int
) -> ViewMetadata:
    """Return the metadata of a new view."""
    _check_properties(properties)
    version = _version(definition, FIRST_VERSION_ID, 0, now_ms)
    return ViewMetadata(
        view_uuid,
        location,
        (replace(definition.schema, schema_id=0),),
        FIRST_VERSION_ID,
        (version,),
        (VersionLogEntry(now_ms, FIRST_VERSION_ID),),
        dict(properties),
    )


def replace_version(base: ViewMetadata, definition: ViewDefinition, now_ms: int) -> ViewMetadata:
    """Make a definition the current one: an equal version, or else a new one; old versions are dropped."""
    schemas, schema_id = _with_schema(base.schemas, definition.schema)
    newest = max(version.version_id for version in base.versions)
    version = _version(definition, newest + 1, schema_id, now_ms)
    same = next(
        (known for known in base.versions if known.schema_id == schema_id and says_the_same(known, version)), None
    )
    _check_dialects(base, version)
    if same is not None:
        return point_at_version(base, same.version_id, now_ms)
    added = replace(base, schemas=schemas, versions=(*base.versions, version))
    return _expired(point_at_version(added, version.version_id, now_ms))


def set_properties(base: ViewMetadata, updates: Mapping[str, str], removals: Iterable[str] = ()) -> ViewMetadata:
    """Set and remove properties."""
    gone = set(removals)
    properties = {**{k: v for k, v in base.properties.items() if k not in gone}, **updates}
    _check_properties(properties)
    return replace(base, properties=properties)


def point_at_version(base: ViewMetadata, version_id: int, now_ms: int) -> ViewMetadata:
    """Make an existing version current."""
    base.version_by_id(version_id)
    if base.current_version_id == version_id:
        return base
    log = (*base.version_log, VersionLogEntry(now_ms, version_id))
    return replace(base, current_version_id=version_id, version_log=log)


def says_the_same(one: ViewVersion, other: ViewVersion) -> bool:
    """Compare definitions, without author, time and ids."""
    alike = replace(one, version_id=other.version_id, schema_id=other.schema_id)
    return replace(alike, timestamp_ms=other.timestamp_ms, summary=other.summary) == other


def _version(definition: ViewDefinition, version_id: int, schema_id: int, now_ms: int) -> ViewVersion:
    return ViewVersion(
        version_id,
        schema_id,
        now_ms,
        definition.representations,
        definition.default_namespace,
        definition.default_catalog,
        definition.summary,
    )


def _with_schema(schemas: Sequence[Schema], schema: Schema) -> tuple[tuple[Schema, ...], int]:
    for known in schemas:
        if (known.fields, known.identifier_field_ids) == (schema.fields, schema.identifier_field_ids):
            return tuple(schemas), known.schema_id
    fresh = max(known.schema_id for known in schemas) + 1
    return (*schemas, replace(schema, schema_id=fresh)), fresh


def _expired(metadata: ViewMetadata) -> ViewMetadata:
    """Keep the newest versions by id, and the log after the last entry whose version was dropped."""
    keep = HISTORY_ENTRIES.read(metadata.properties)
    if len(metadata.versions) <= keep:
        return metadata
    newest = sorted(metadata.versions, key=lambda version: version.version_id)[-keep:]
    ids = {version.version_id for version in newest}
    log: list[VersionLogEntry] = []
    for entry in metadata.version_log:
        if entry.version_id in ids:
            log.append(entry)
        else:
            log.clear()
    kept = tuple(version for version in metadata.versions if version.version_id in ids)
    return replace(metadata, versions=kept, version_log=tuple(log))


def _check_dialects(base: ViewMetadata, version: ViewVersion) -> None:
    lost = {d.lower() for d in base.current_version.dialects} - {d.lower() for d in version.dialects}
    if lost and not DROP_DIALECT.read(base.properties):
        raise InvalidInput(
            f"the view also has a query in {', '.join(sorted(lost))}, which the replacement would drop",
            hint=f"Set the view's property {DROP_DIALECT.key} to true to allow this",
        )


def _check_properties(properties: Mapping[str, str]) -> None:
    for key, value in properties.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise InvalidInput(f"view properties are strings, got {key!r}: {value!r}")
    HISTORY_ENTRIES.read(properties)
