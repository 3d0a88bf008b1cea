"""The id -1, which means "last added". (rest-catalog-open-api.yaml: SetCurrentSchemaUpdate and others)

The server that applies a list of updates may assign a new schema, spec or order another id than the client expects, and
a schema that exists already keeps its old id. So the list has `-1` where it means the last one that it added.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from icefield.model.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
)

LAST_ADDED = -1

T = TypeVar("T")

# The update that adds, the update that refers to the added one, and the attributes of their ids.
_PAIRS: tuple[tuple[type, type, str, str], ...] = (
    (AddSchema, SetCurrentSchema, "schema", "schema_id"),
    (AddPartitionSpec, SetDefaultSpec, "spec", "spec_id"),
    (AddSortOrder, SetDefaultSortOrder, "order", "order_id"),
)


def mark_last_added(updates: Iterable[T]) -> list[T]:
    """Replace the id of the last added schema, spec or order by `-1`."""
    return _rewritten(updates, lambda known, added: LAST_ADDED if known == added else known)


def resolve_last_added(updates: Iterable[T]) -> list[T]:
    """Replace `-1` by the id of the last added schema, spec or order; if there is none, `-1` stays and is refused."""
    return _rewritten(updates, lambda known, added: added if known == LAST_ADDED and added is not None else known)


def _rewritten(updates: Iterable[T], id_of: Callable[[int, int | None], int]) -> list[T]:
    added: dict[type, int] = {}
    found: list[T] = []
    for each in updates:
        update: Any = each
        for adds, points, what, key in _PAIRS:
            if isinstance(update, adds):
                added[points] = getattr(getattr(update, what), key)
            elif isinstance(update, points):
                update = _with_id(update, key, id_of(getattr(update, key), added.get(points)))
        found.append(update)
    return found


def _with_id(update: Any, key: str, value: int) -> Any:
    return replace(update, **{key: value})
