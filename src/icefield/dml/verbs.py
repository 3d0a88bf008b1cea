"""The verbs that change rows: their names in errors, and the properties that set how they work."""

from dataclasses import dataclass

from icefield.properties.property import Property
from icefield.properties.table import (
    DELETE_ISOLATION,
    DELETE_MODE,
    MERGE_DISTRIBUTION,
    MERGE_ISOLATION,
    MERGE_MODE,
    OVERWRITE_ISOLATION,
    OWN_DELETE_MODE,
    OWN_MERGE_MODE,
    OWN_UPDATE_MODE,
    UPDATE_DISTRIBUTION,
    UPDATE_ISOLATION,
    UPDATE_MODE,
)

EQUALITY = "equality"  # the mode of an upsert by equality deletes


@dataclass(frozen=True)
class Verb:
    """The name of a change in errors, and the property that sets its isolation level.

    isolation: None if concurrently added rows never conflict.
    """

    name: str
    isolation: Property[str] | None


@dataclass(frozen=True)
class ChangeVerb(Verb):
    """A verb that changes rows, and the properties that set its mode; Icefield's own comes first.

    distribution: of new rows over the tasks of Spark; None for a verb without new rows.
    """

    own_mode: Property[str | None]
    mode: Property[str]
    distribution: Property[str] | None = None


OVERWRITE = Verb("overwrite", OVERWRITE_ISOLATION)
DELETE = ChangeVerb("delete", DELETE_ISOLATION, OWN_DELETE_MODE, DELETE_MODE)
UPDATE = ChangeVerb("update", UPDATE_ISOLATION, OWN_UPDATE_MODE, UPDATE_MODE, UPDATE_DISTRIBUTION)
MERGE = ChangeVerb("merge", MERGE_ISOLATION, OWN_MERGE_MODE, MERGE_MODE, MERGE_DISTRIBUTION)
UPSERT = ChangeVerb("upsert", MERGE_ISOLATION, OWN_MERGE_MODE, MERGE_MODE, MERGE_DISTRIBUTION)
