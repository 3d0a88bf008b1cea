"""Renames in a catalog that replaces one record at a time.

A rename is three writes: the old name records where it is moving (the intent, identified by its token), the new name
gets the pointer and adds that token to its `arrived`, the old name is dropped. Any writer that finds an intent can take
the next step, any number of times: the new name is read before the intent is checked again, and only replaced if
unchanged, so that a late writer, after the table was moved and dropped, writes nothing.
"""

import msgspec

from icefield.catalog.object_store.records import Found, NameRecord, Records
from icefield.errors import CommitConflict
from icefield.model.names import TableName, parse_table_name


def has_arrived(records: Records, record: NameRecord) -> bool:
    """Return whether the entry of a record already exists under its new name."""
    if record.moving_to is None:
        return False
    target = records.read_name(parse_table_name(record.moving_to))
    return target is not None and record.token in target.record.arrived


def finish_rename(records: Records, old: TableName, intent: NameRecord) -> bool:
    """Take the remaining steps of a rename, or undo it if the new name is in use; return whether it took place."""
    assert intent.moving_to is not None
    new = parse_table_name(intent.moving_to)
    while True:
        target = records.read_name(new)
        current = records.read_name(old)
        arrived = target is not None and intent.token in target.record.arrived
        if current is None or current.record.token != intent.token:
            return arrived
        try:
            if arrived:
                dropped = msgspec.structs.replace(intent, token=records.new_token(), pointer=None, moving_to=None)
                records.put_name(old, dropped, current)
                return True
            if target is not None and target.record.pointer is not None:
                kept = msgspec.structs.replace(intent, token=records.new_token(), moving_to=None)
                records.put_name(old, kept, current)
                return False
            _arrive(records, new, intent, target)
        except CommitConflict:
            continue


def _arrive(records: Records, new: TableName, intent: NameRecord, over: Found[NameRecord] | None) -> None:
    arrived = (*(over.record.arrived if over else ()), intent.token)
    fenced = tuple(dict.fromkeys((*(over.record.fenced if over else ()), *intent.fenced)))
    records.put_name(new, NameRecord(records.new_token(), intent.kind, intent.pointer, None, arrived, fenced), over)
