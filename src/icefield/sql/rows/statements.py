"""The parsers of changes, by the first word of a statement."""

from collections.abc import Callable, Mapping

from icefield.sql.session import Statement
from icefield.sql.syntax.cursor import Cursor

CHANGES: Mapping[str, Callable[[Cursor], Statement]] = {}
