"""All procedures, by name."""

from collections.abc import Mapping

from icefield.sql.procedures import rewrites, snapshots, tables, upkeep
from icefield.sql.procedures.procedure import Procedure

PROCEDURES: Mapping[str, Procedure] = {
    each.name: each for module in (snapshots, rewrites, upkeep, tables) for each in module.PROCEDURES
}
