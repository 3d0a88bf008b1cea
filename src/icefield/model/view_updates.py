"""Changes to a view as data, derived from its metadata before and after. (rest-catalog-open-api.yaml: ViewUpdate)

`find_view_updates` compares, `apply_view_updates` applies the changes. New ids are assigned where the updates are
applied, so the list has `-1` for what it has just added. Raises InvalidInput for an invalid update.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput
from icefield.model.creation import AssignUUID
from icefield.model.last_added import LAST_ADDED
from icefield.model.updates import AddSchema, RemoveProperties, SetLocation, SetProperties, UpgradeFormatVersion
from icefield.model.view import (
    VIEW_FORMAT_VERSION,
    ViewDefinition,
    ViewMetadata,
    ViewVersion,
    point_at_version,
    replace_version,
    set_properties,
)

with deferred_imports(__name__):
    from icefield.types.schema import Schema


@dataclass(frozen=True)
class AddViewVersion:
    version: ViewVersion


@dataclass(frozen=True)
class SetCurrentViewVersion:
    version_id: int


ViewUpdate = (
    AssignUUID
    | UpgradeFormatVersion
    | AddSchema
    | SetLocation
    | SetProperties
    | RemoveProperties
    | AddViewVersion
    | SetCurrentViewVersion
)


def find_view_updates(base: ViewMetadata, wanted: ViewMetadata) -> list[ViewUpdate]:
    """Return the updates from the base to the wanted metadata; the server drops old versions itself."""
    updates: list[ViewUpdate] = []
    version, known = wanted.current_version, {each.version_id for each in base.versions}
    if version.version_id not in known:
        if all(each.schema_id != version.schema_id for each in base.schemas):
            updates.append(AddSchema(wanted.schema))
            version = replace(version, schema_id=LAST_ADDED)
        updates.extend((AddViewVersion(version), SetCurrentViewVersion(LAST_ADDED)))
    elif version.version_id != base.current_version_id:
        updates.append(SetCurrentViewVersion(version.version_id))
    changed = {k: v for k, v in wanted.properties.items() if base.properties.get(k) != v}
    if changed:
        updates.append(SetProperties(changed))
    if gone := tuple(sorted(base.properties.keys() - wanted.properties.keys())):
        updates.append(RemoveProperties(gone))
    return updates


def apply_view_updates(base: ViewMetadata, updates: Iterable[ViewUpdate], now_ms: int) -> ViewMetadata:
    """Apply updates in order: the inverse of `find_view_updates`."""
    schemas: dict[int, Schema] = {schema.schema_id: schema for schema in base.schemas}
    added: dict[int, ViewVersion] = {}
    for update in updates:
        match update:
            case AddSchema(schema):
                schemas[LAST_ADDED] = schemas[schema.schema_id] = schema
            case AddViewVersion(version):
                added[LAST_ADDED] = added[version.version_id] = version
            case SetCurrentViewVersion(version_id) if version_id in added:
                base = replace_version(base, _definition(added[version_id], schemas), now_ms)
            case SetCurrentViewVersion(version_id):
                base = point_at_version(base, version_id, now_ms)
            case SetProperties(changed):
                base = set_properties(base, changed)
            case RemoveProperties(gone):
                base = set_properties(base, {}, gone)
            case SetLocation(location):
                base = replace(base, location=location.rstrip("/"))
            case AssignUUID(view_uuid) if view_uuid != base.view_uuid:
                raise InvalidInput(f"the view's uuid {base.view_uuid} cannot be changed")
            case UpgradeFormatVersion(version) if version != VIEW_FORMAT_VERSION:
                raise InvalidInput(f"unsupported view format version {version}")
    return base


def _definition(version: ViewVersion, schemas: dict[int, Schema]) -> ViewDefinition:
    if version.schema_id not in schemas:
        raise InvalidInput(f"the view has no schema with id {version.schema_id}")
    return ViewDefinition(
        schemas[version.schema_id],
        version.representations,
        version.default_namespace,
        version.default_catalog,
        version.summary,
    )
