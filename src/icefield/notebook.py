r"""SQL in notebooks: `%load_ext icefield`, then `%icefield lake/` names the lake, and `%%icefield` runs a cell.

    %%icefield recent
    SELECT * FROM shop.orders WHERE day > :since

The variable `recent` is then the result: a Spark DataFrame, or an Arrow table with `--engine local`. A value `:since`
and a DataFrame `{frame}` are variables of the notebook. The first rows of the last result are shown.
"""

import argparse
import shlex
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NoReturn

import pyarrow as pa

from icefield.config.connect import connect
from icefield.engine.choose import ENGINES
from icefield.engine.rows import load_spark_engine
from icefield.errors import IcefieldError, InvalidInput
from icefield.expr.query.lexer import Lexeme, lex
from icefield.lake import Lake
from icefield.showing import html_table, text_table
from icefield.table.reading.readable import python_values

MAGIC = "icefield"
SHOWN_ROWS = 20


class _Arguments(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InvalidInput(f"%{MAGIC}: {message}", hint=f"Write {self.format_usage().removeprefix('usage: ').strip()}")


_OF_CELL = _Arguments(prog=f"%%{MAGIC}", add_help=False)
_OF_CELL.add_argument("variable", nargs="?")
_OF_CELL.add_argument("--engine", choices=ENGINES)
_OF_CELL.add_argument("--limit", type=int, default=SHOWN_ROWS)


class Shown:
    """The first rows of a result, as a notebook shows them."""

    def __init__(self, rows: pa.Table, limit: int) -> None:
        self._names = rows.column_names
        self._rows = list(zip(*(python_values(column) for column in rows.slice(0, limit).columns), strict=True))
        self._note = f"the first {limit:,} rows" if rows.num_rows > limit else ""

    def __repr__(self) -> str:
        return "\n".join(filter(None, [text_table(self._names, self._rows), self._note]))

    def _repr_html_(self) -> str:
        return html_table(self._note, self._names, self._rows)


class Magics:
    """The magics of one notebook, and the lake that they use."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._lake: Lake | None = None

    def run(self, line: str, cell: str | None = None) -> object:
        """Name the lake, or run a cell; an error is shown without its traceback."""
        try:
            return self._name_lake(line) if cell is None else self._run_cell(line, cell)
        except IcefieldError as error:
            self._shell.showtraceback((type(error), error, None), exception_only=True)
            return None

    def _name_lake(self, line: str) -> Lake:
        """Use the lake of a variable, else that of a target; without one, return the lake that is used."""
        named = line.strip()
        if named:
            found = self._shell.user_ns.get(named)
            self._lake = found if isinstance(found, Lake) else connect(shlex.split(named)[0])
        return self._used()

    def _used(self) -> Lake:
        """Return the lake; without a name the one that the environment or the configuration file names."""
        if self._lake is None:
            self._lake = connect()
        return self._lake

    def _run_cell(self, line: str, cell: str) -> Shown | None:
        asked = _OF_CELL.parse_args(shlex.split(line))
        if asked.variable is not None and not asked.variable.isidentifier():
            raise InvalidInput(f"{asked.variable!r} is not the name of a variable")
        variables = self._shell.user_ns
        tokens = list(lex(cell))
        values = _variables(tokens, ":", variables)
        frames = _variables(tokens, "{", variables)
        results = self._used().sql_script(cell, values, engine=asked.engine, **frames)
        if not results:
            raise InvalidInput("the cell has no statement")
        if asked.variable is not None:
            variables[asked.variable] = results[-1]
        rows = results[-1]
        if not isinstance(rows, pa.Table):
            rows = load_spark_engine().to_arrow(rows.limit(asked.limit + 1))
        return Shown(rows, asked.limit) if rows.num_columns else None


def _variables(tokens: list[Lexeme], mark: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables that are named after a mark; the statement says what is missing."""
    names = [after.name for before, after in pairwise(tokens) if before.text == mark]
    return {name: variables[name] for name in names if name in variables}


def load_ipython_extension(shell: Any) -> None:
    """Register the magics; `%load_ext icefield` calls it."""
    magics = Magics(shell)
    shell.register_magic_function(magics.run, magic_kind="line_cell", magic_name=MAGIC)
