"""Namespaces of a lake, and their properties.

Raises AlreadyExists, NoSuchNamespace, NamespaceNotEmpty, InvalidInput.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from icefield.arguments import check_arguments
from icefield.deferred import deferred_imports
from icefield.errors import AlreadyExists

with deferred_imports(__name__):
    from icefield.backend import Backend
    from icefield.model.names import parse_namespace
    from icefield.policy.settings import check_namespace_properties


@check_arguments
class LakeNamespaces:
    """The part of a lake that deals with namespaces."""

    backend: Backend

    def create_namespace(
        self, name: str, properties: Mapping[str, str] | None = None, *, if_not_exists: bool = False
    ) -> None:
        """Create a namespace. Its properties `icefield.upkeep.*` are defaults for its tables.

        Args:
            name: The namespace; its parts are separated by dots.
            properties: Its properties.
            if_not_exists: Leave a namespace that exists as it is, instead of raising AlreadyExists.
        """
        check_namespace_properties(properties or {})
        with suppress(*([AlreadyExists] if if_not_exists else [])):
            self.backend.catalog.create_namespace(parse_namespace(name), properties)

    def drop_namespace(self, name: str) -> None:
        """Drop an empty namespace."""
        self.backend.catalog.drop_namespace(parse_namespace(name))

    def namespaces(self, parent: str | None = None) -> list[str]:
        """List the namespaces one level below a parent, or at the top level."""
        inside = parse_namespace(parent) if parent is not None else None
        return [".".join(space) for space in self.backend.catalog.list_namespaces(inside)]

    def namespace_properties(self, name: str) -> dict[str, str]:
        """Return the properties of a namespace."""
        return self.backend.catalog.namespace_properties(parse_namespace(name))

    def update_namespace_properties(
        self, name: str, updates: Mapping[str, str] | None = None, *, removals: Iterable[str] = ()
    ) -> None:
        """Set and remove properties of a namespace, in one step. Those of upkeep are defaults for its tables."""
        check_namespace_properties(updates or {})
        self.backend.catalog.update_namespace_properties(parse_namespace(name), removals, dict(updates or {}))
