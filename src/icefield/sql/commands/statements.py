"""The parsers of commands, by the first word of a statement."""

from collections.abc import Callable, Mapping

from icefield.sql.commands.analyze import parse_analyze, parse_refresh
from icefield.sql.commands.call import parse_call
from icefield.sql.commands.delta import parse_optimize, parse_restore, parse_vacuum
from icefield.sql.commands.describe import parse_describe
from icefield.sql.commands.show import parse_show
from icefield.sql.commands.use import parse_use
from icefield.sql.session import Statement
from icefield.sql.syntax.cursor import Cursor

COMMANDS: Mapping[str, Callable[[Cursor], Statement]] = {
    "show": parse_show,
    "describe": parse_describe,
    "desc": parse_describe,
    "use": parse_use,
    "call": parse_call,
    "optimize": parse_optimize,
    "vacuum": parse_vacuum,
    "restore": parse_restore,
    "analyze": parse_analyze,
    "refresh": parse_refresh,
}
