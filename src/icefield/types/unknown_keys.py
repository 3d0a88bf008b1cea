"""Unknown JSON keys, which are preserved and written back.

Other writers, and later format versions, may add keys to schemas, fields, partition specs, sort orders and refs.
Dataclasses have them in `unknown_keys`, which equality ignores: two fields with the same known keys are the same field.
"""

from collections.abc import Mapping
from typing import Any

UnknownKeys = Mapping[str, Any] | None


def find_unknown_keys(value: Mapping[str, Any], known: frozenset[str]) -> UnknownKeys:
    """Return the keys of a JSON object that are not among the known ones; None if there are none."""
    return {key: value[key] for key in value if key not in known} or None
