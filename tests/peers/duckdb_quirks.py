"""What DuckDB 1.5.5 gets wrong on anybody's tables; those cells are left out."""

import datetime as dt

from tests.peers.case import TableCase
from tests.peers.predicates import Predicate

# It fails with an internal error on equality deletes in partitions of two specs ("Comparison on NULL values").
DELETES_OF_TWO_SPECS = "by_key_evolved"
EPOCH = dt.datetime(1970, 1, 1)


def can_judge(case: TableCase, ask: Predicate) -> bool:
    """Return whether DuckDB is able to answer."""
    return not (_bucket_of_uuid(case, ask) or _rounds_up(case, ask))


def _bucket_of_uuid(case: TableCase, ask: Predicate) -> bool:
    """It computes other buckets of uuids than the specification, and so rules out the right one."""
    return case.name == "bucket_uuid" and ask.operator in ("=", "in")


def _rounds_up(case: TableCase, ask: Predicate) -> bool:
    """Before 1970 it takes the next day or month for that of a moment, and so rules out the right one."""
    by_day = any(field.startswith(("day(", "month(")) for field in case.partition_by)
    return by_day and any(isinstance(v, dt.datetime) and v.replace(tzinfo=None) < EPOCH for v in ask.values)
