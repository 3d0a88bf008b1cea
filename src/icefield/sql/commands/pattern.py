"""Patterns of SHOW: `*` is any text, `|` separates alternatives, and case is ignored."""

import re
from collections.abc import Iterable

from icefield.sql.schema.types import parse_text
from icefield.sql.syntax.cursor import Cursor


def matching(names: Iterable[str], pattern: str | None) -> list[str]:
    """Return the names that match a pattern; all without one."""
    known = list(names)
    if pattern is None:
        return known
    found: set[str] = set()
    for part in pattern.strip().split("|"):
        try:
            one = re.compile(part.replace("*", ".*"), re.IGNORECASE)
        except re.error:
            continue  # as Spark does
        found.update(name for name in known if one.fullmatch(name))
    return [name for name in known if name in found]


def parse_pattern(cursor: Cursor) -> str | None:
    """Parse [LIKE] 'pattern'."""
    return None if not cursor.accept("like") and cursor.is_at_end else parse_text(cursor, "a pattern")
