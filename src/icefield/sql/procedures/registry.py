"""All procedures, by name."""

from collections.abc import Mapping

from icefield.sql.procedures import changelog, rewrites, snapshots, statistics, tables, upkeep
from icefield.sql.procedures.procedure import Procedure

_MODULES = (snapshots, rewrites, upkeep, tables, statistics, changelog)
PROCEDURES: Mapping[str, Procedure] = {each.name: each for module in _MODULES for each in module.PROCEDURES}
