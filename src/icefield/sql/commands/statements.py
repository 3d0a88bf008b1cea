"""The parsers of commands, by the first word of a statement."""

from collections.abc import Callable, Mapping

from icefield.sql.session import Statement
from icefield.sql.syntax.cursor import Cursor

COMMANDS: Mapping[str, Callable[[Cursor], Statement]] = {}
