"""Ids that mean "the one that was just added". (rest-catalog-open-api.yaml: SetCurrentSchemaUpdate and its like)

Whoever applies a list of updates may give a new schema, spec or order another id than the writer thought, and a schema
that was there before keeps its old one. So the list itself says `-1` where it means what it has just added.
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

# What adds, what points at what was added, and where either has its id.
_PAIRS: tuple[tuple[type, type, str, str], ...] = (
    (AddSchema, SetCurrentSchema, "schema", "schema_id"),
    (AddPartitionSpec, SetDefaultSpec, "spec", "spec_id"),
    (AddSortOrder, SetDefaultSortOrder, "order", "order_id"),
)


def mark_last_added(updates: Iterable[T]) -> list[T]:
    """Write `-1` for the id of what was added last before."""
    return _rewritten(updates, lambda known, added: LAST_ADDED if known == added else known)


def resolve_last_added(updates: Iterable[T]) -> list[T]:
    """Write the id of what was added last before for `-1`; where nothing was, it stays and fits nothing."""
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
