"""The policy of a table: which steps of upkeep are done, from its properties and those of its namespaces.

A property of the table goes before one of its namespace, and that before one of the namespace's parent. Of namespaces,
only `icefield.upkeep.*` counts. Raises InvalidInput for a value that does not parse.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from icefield.catalog.catalog import Catalog
from icefield.errors import InvalidInput, NoSuchNamespace
from icefield.model.metadata import TableMetadata
from icefield.model.names import Namespace, TableName
from icefield.properties.check import check_properties
from icefield.properties.property import Property
from icefield.properties.table import GC_ENABLED
from icefield.properties.upkeep import (
    UPKEEP,
    UPKEEP_COMPACT,
    UPKEEP_CONVERT_DELETES,
    UPKEEP_EXPIRE,
    UPKEEP_INLINE,
    UPKEEP_INLINE_BYTES,
    UPKEEP_ORPHANS,
    UPKEEP_PROPERTIES,
    UPKEEP_REWRITE_DELETES,
    UPKEEP_REWRITE_MANIFESTS,
    UPKEEP_SWEEP,
)

OWN_PREFIX = "icefield."
PREFIX = "icefield.upkeep."


class Step(StrEnum):
    """A step of upkeep, in the order in which a table's steps are done."""

    CONVERT_DELETES = "convert-deletes"
    COMPACT = "compact"
    REWRITE_DELETES = "rewrite-deletes"
    REWRITE_MANIFESTS = "rewrite-manifests"
    EXPIRE = "expire"
    ORPHANS = "orphans"
    SWEEP = "sweep"


SWITCHES: Mapping[Step, Property[bool]] = {
    Step.CONVERT_DELETES: UPKEEP_CONVERT_DELETES,
    Step.COMPACT: UPKEEP_COMPACT,
    Step.REWRITE_DELETES: UPKEEP_REWRITE_DELETES,
    Step.REWRITE_MANIFESTS: UPKEEP_REWRITE_MANIFESTS,
    Step.EXPIRE: UPKEEP_EXPIRE,
    Step.ORPHANS: UPKEEP_ORPHANS,
    Step.SWEEP: UPKEEP_SWEEP,
}
DELETING = (Step.EXPIRE, Step.ORPHANS, Step.SWEEP)


@dataclass(frozen=True)
class Policy:
    """What the properties of a table and of its namespaces say."""

    properties: Mapping[str, str]

    def why_off(self, step: Step) -> str | None:
        """Return why a step is not done, whatever its debt; None if it is."""
        for switch in (UPKEEP, SWITCHES[step]):
            if not switch.read(self.properties):
                return f"{switch.key} is false"
        if step in DELETING and not GC_ENABLED.read(self.properties):
            return f"{GC_ENABLED.key} is false"
        return None


class Policies:
    """Reads the policies of the tables of one catalog; the properties of a namespace are read once."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: dict[Namespace, Mapping[str, str]] = {}

    def of(self, name: TableName, metadata: TableMetadata) -> Policy:
        """Return the policy of a table."""
        merged: dict[str, str] = {}
        for depth in range(1, len(name.namespace) + 1):
            merged |= self._of_namespace(name.namespace[:depth])
        return Policy({**merged, **metadata.properties})

    def _of_namespace(self, namespace: Namespace) -> Mapping[str, str]:
        if namespace not in self._known:
            try:
                found = self._catalog.namespace_properties(namespace)
            except NoSuchNamespace:  # some catalogs have only the last part of a name
                found = {}
            self._known[namespace] = {key: value for key, value in found.items() if key.startswith(PREFIX)}
        return self._known[namespace]


def check_namespace_properties(properties: Mapping[str, str]) -> None:
    """Refuse properties of Icefield that mean nothing for a namespace, or do not parse."""
    own = {key: value for key, value in properties.items() if key.startswith(OWN_PREFIX)}
    known = [each.key for each in UPKEEP_PROPERTIES if each.key.startswith(PREFIX)]
    for key in own:
        if key in (UPKEEP_INLINE.key, UPKEEP_INLINE_BYTES.key) or not key.startswith(PREFIX):
            raise InvalidInput(f"{key} is a property of tables, not of namespaces", hint="Set it on each table")
        if key not in known:
            raise InvalidInput(f"unknown property {key!r}", hint=f"There are: {', '.join(known)}")
    check_properties(own)
