"""The parsers of changes, by the first word of a statement."""

from collections.abc import Callable, Mapping

from icefield.sql.rows.common_tables import parse_with
from icefield.sql.rows.delete import parse_delete, parse_truncate
from icefield.sql.rows.insert import parse_insert
from icefield.sql.rows.merge import parse_merge
from icefield.sql.rows.multi_insert import parse_from
from icefield.sql.rows.transactions import parse_begin, parse_end
from icefield.sql.rows.update import parse_update
from icefield.sql.session import Statement
from icefield.sql.syntax.cursor import Cursor

CHANGES: Mapping[str, Callable[[Cursor], Statement]] = {
    "with": parse_with,
    "from": parse_from,
    "insert": parse_insert,
    "delete": parse_delete,
    "truncate": parse_truncate,
    "update": parse_update,
    "merge": parse_merge,
    "begin": parse_begin,
    "start": parse_begin,
    "commit": parse_end,
    "rollback": parse_end,
}
