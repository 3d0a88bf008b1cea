"""Updates of views to and from JSON, as in the REST protocol. (rest-catalog-open-api.yaml: ViewUpdate)

Raises InvalidInput for an unknown or malformed update.
"""

from collections.abc import Mapping

import msgspec

from icefield.codec.json.keys import Json
from icefield.codec.json.updates import UPDATES, Decode, Encode, decode_tagged, encode_tagged
from icefield.codec.json.view import decode_view_version, encode_view_version
from icefield.model.view_updates import AddViewVersion, SetCurrentViewVersion, ViewUpdate

_SHARED = (
    "assign-uuid",
    "upgrade-format-version",
    "add-schema",
    "set-location",
    "set-properties",
    "remove-properties",
)

VIEW_UPDATES: Mapping[str, tuple[type, Encode, Decode]] = {
    **{name: UPDATES[name] for name in _SHARED},
    "add-view-version": (
        AddViewVersion,
        lambda u: {"view-version": encode_view_version(u.version)},
        lambda v: AddViewVersion(decode_view_version(msgspec.Raw(msgspec.json.encode(v["view-version"])))),
    ),
    "set-current-view-version": (
        SetCurrentViewVersion,
        lambda u: {"view-version-id": u.version_id},
        lambda v: SetCurrentViewVersion(v["view-version-id"]),
    ),
}


def encode_view_update(update: ViewUpdate) -> Json:
    """Encode one update."""
    return encode_tagged(VIEW_UPDATES, "action", update)


def decode_view_update(value: Json) -> ViewUpdate:
    """Decode one update."""
    found: ViewUpdate = decode_tagged(VIEW_UPDATES, "action", value)
    return found
