"""icefield sql: run SQL statements from an argument, a file or stdin, or in a shell."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from pathlib import Path

import rich_click as click

from icefield.ambient import SystemAmbient
from icefield.cli.lakes import make_lake, open_lake
from icefield.cli.output import counted, talk
from icefield.cli.pairs import parse_pairs
from icefield.cli.row_output import GRID_ROWS, PARQUET, WRITERS, Rows, write_file
from icefield.cli.settings import Settings, SnapshotCommand
from icefield.cli.sql.runner import StatementRunner
from icefield.cli.sql.shell import run_shell
from icefield.cli.unexpected import print_unexpected
from icefield.engine.choose import AUTO, ENGINES, EngineName
from icefield.errors import InvalidInput
from icefield.expr.query.lexer import lex
from icefield.sql.syntax.place import as_written
from icefield.sql.syntax.script import split_script

STDIN = "-"
_WHOLE = re.compile(r"[+-]?(0|[1-9]\d*)")
_DECIMAL = re.compile(r"[+-]?(0|[1-9]\d*)\.\d+")
_WORDS: Mapping[str, object] = {"true": True, "false": False, "null": None}


@click.command(cls=SnapshotCommand)
@click.argument("statement", required=False)
@click.option("--file", "file", metavar="FILE", help="Run the statements of a file; - is stdin.")
@click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default=AUTO,
    help="Where statements run: local starts no JVM, and runs queries with DuckDB; auto runs queries on Spark, and all "
    "else without it if possible. [default: auto]",
)
@click.option(
    "--param",
    "parameters",
    metavar="NAME=VALUE",
    multiple=True,
    callback=parse_pairs,
    help="The value of :NAME in the statements: a number, true, false, null, or a text, which may be in single quotes. "
    "May be repeated.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice([*WRITERS, PARQUET]),
    help="The output format. [default: that of --output, else table]",
)
@click.option("--output", metavar="FILE", help="Write the rows of the only statement to a file.")
@click.option(
    "--limit",
    type=click.IntRange(min=0, max=2**31 - 2),
    help=f"The maximum number of rows of a result; 0 is all. [default: {GRID_ROWS} as a table, else all]",
)
@click.option("--dry-run", is_flag=True, help="Change no rows; return what statements that change them would do.")
@click.option("--timing", is_flag=True, help="Print the time that each statement took.")
@click.pass_obj
def sql(  # noqa: PLR0913 - one parameter per option
    settings: Settings,
    statement: str | None,
    file: str | None,
    engine: EngineName,
    parameters: dict[str, str],
    format_: str | None,
    output: str | None,
    limit: int | None,
    *,
    dry_run: bool,
    timing: bool,
) -> None:
    """Run SQL statements in Spark's dialect, with the statements of Iceberg's extensions.

    STATEMENT may be several, separated by semicolons. Without one, and without --file, they are read from stdin; on a
    terminal a shell starts, which has history and completes names.
    """
    if statement is not None and file is not None:
        raise InvalidInput("a statement and --file cannot be given together", hint="Give one of them")
    target = None if output is None else Path(output)
    form = format_ or _format_of(target) or ("json" if settings.as_json else "table")
    printer = Printer(form, target, limit, is_timed=timing)
    values = {name: typed(text) for name, text in parameters.items()}
    if statement is None and file is None and sys.stdin.isatty() and sys.stdout.isatty():
        with open_lake(settings) as lake:
            run_shell(
                StatementRunner(lake, engine, values, is_dry_run=dry_run),
                replace(printer, is_timed=True).print,
                partial(print_unexpected, settings=settings),
            )
        return
    script = _text(statement, file)
    statements = list(split_script(script))
    if not statements:
        raise InvalidInput("there is no statement", hint="Give one as an argument, with --file, or on stdin")
    if target is not None and len(statements) > 1:
        raise InvalidInput("--output is for one statement", hint="Run the others before")
    makes_one = not dry_run and any(next(lex(each)).word == "create" for each in statements)
    with (make_lake if makes_one else open_lake)(settings) as lake, as_written(script):
        _run_statements(StatementRunner(lake, engine, values, is_dry_run=dry_run), printer, statements)


def _run_statements(runner: StatementRunner, printer: "Printer", statements: Sequence[str]) -> None:
    try:
        for each in statements:
            printer.print(runner, each)
    except BaseException:
        runner.roll_back()
        raise
    if runner.roll_back():
        raise InvalidInput(
            "the statements end in a transaction, which was rolled back", hint="End it with COMMIT or ROLLBACK"
        )


@dataclass(frozen=True)
class Printer:
    """Runs statements and prints their rows. target: a file instead of stdout. limit: the most rows of a result."""

    form: str
    target: Path | None = None
    limit: int | None = None
    is_timed: bool = False

    def __post_init__(self) -> None:
        if self.form == PARQUET and self.target is None:
            raise InvalidInput("Parquet is not for a terminal", hint="Name a file with --output")
        if self.form == "table" and self.target is not None:
            raise InvalidInput("a table is not for a file", hint="Choose --format csv, json or parquet")

    def print(self, runner: StatementRunner, text: str) -> None:
        """Run a statement, and print its rows and the time that it took."""
        clock = SystemAmbient()
        began = clock.monotonic()
        count = self._print(runner, text)
        if self.is_timed:
            rows = "done" if count is None else counted(count, "row")
            talk(f"{rows} ({clock.monotonic() - began:.2f} s)")

    def _print(self, runner: StatementRunner, text: str) -> int | None:
        most = self.limit if self.limit is not None else GRID_ROWS if self.form == "table" else 0
        reader = runner.run(text, most)
        if reader is None:
            if self.form == "json" and self.target is None:
                sys.stdout.write("[]\n")
            return None
        if self.target is not None:
            count = write_file(self.target, self.form, reader)
            talk(f"wrote {counted(count, 'row')} to {self.target}")
            return count
        rows = Rows(reader, most)
        WRITERS[self.form](reader.schema, rows)
        if rows.were_cut:
            talk(f"These are the first {most:,} rows; --limit 0 gives all.")
        return rows.count


def typed(text: str) -> object:
    """Return the value of a parameter: numbers, true, false and null are recognized, and what is quoted is a text."""
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _WHOLE.fullmatch(text):
        return int(text)
    return Decimal(text) if _DECIMAL.fullmatch(text) else text


def _format_of(target: Path | None) -> str | None:
    if target is None:
        return None
    form = target.suffix.lstrip(".").lower()
    if form not in (*WRITERS, PARQUET):
        raise InvalidInput(f"cannot tell the format of {target}", hint="Choose --format csv, json or parquet")
    return form


def _text(statement: str | None, file: str | None) -> str:
    if statement is not None:
        return statement
    try:
        text = sys.stdin.buffer.read() if file in (None, STDIN) else Path(str(file)).read_bytes()
        return text.decode("utf-8-sig")
    except OSError as error:
        raise InvalidInput(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the statements are not UTF-8: {error.reason} at byte {error.start}") from error
