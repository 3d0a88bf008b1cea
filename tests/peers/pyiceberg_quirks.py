"""What PyIceberg 0.12.0 gets wrong on anybody's tables, its own included; those cells are left out."""

import math
from typing import Any

from tests.peers.case import TableCase
from tests.peers.normal import Row, normal_rows
from tests.peers.predicates import Predicate

FIRST_YEAR, LAST_YEAR = 1, 9999


def can_judge(case: TableCase, ask: Predicate) -> bool:
    """Return whether PyIceberg is able to answer."""
    faults = (_beyond_float, _partition_of_uuid, _partition_of_double, _past_calendar)
    return not any(fault(case, ask) for fault in faults)


def nulls_match(ask: Predicate) -> bool:
    """`not in` matches nulls, as nowhere else."""
    return ask.operator == "not in"


def nulls_as_it_reads_them(case: TableCase) -> list[Row]:
    """Return the rows with a null list of structs as an empty one."""
    rows = normal_rows(case.rows, case.schema)
    if case.name != "nested":
        return rows
    at = case.schema.get_field_index("ls")
    return sorted([(*row[:at], row[at] or (), *row[at + 1 :]) for row in rows], key=repr)


def _beyond_float(case: TableCase, ask: Predicate) -> bool:
    """An infinity is above all floats, which makes `= infinity` false."""
    return ask.column == "c_float" and any(map(math.isinf, ask.values))


def _partition_of_uuid(case: TableCase, ask: Predicate) -> bool:
    """Partition values come as UUID, literals as bytes, and these never compare."""
    return case.name == "identity_uuid" and bool(ask.values)


def _partition_of_double(case: TableCase, ask: Predicate) -> bool:
    """Partition values that are doubles are read as floats, where the least one becomes 0 and the greatest infinite."""
    return case.name == "identity_double" and ask.operator in ("!=", ">", "not in")


def _past_calendar(case: TableCase, ask: Predicate) -> bool:
    """`<` and `>=` look at the moment before, which year 1 does not have, and so on."""
    return case.name.startswith(("year_", "month_")) and any(_is_end(value) for value in ask.values)


def _is_end(value: Any) -> bool:
    return value.year in (FIRST_YEAR, LAST_YEAR)
