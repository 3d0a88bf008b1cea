r"""A shell for SQL: statements over several lines up to a semicolon, with history and completion of names.

    icefield> SELECT count(*)
           -> FROM shop.orders;

Lines that begin with a backslash are commands of the shell. An error ends the statement, not the shell.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from icefield.cli.output import print_error, print_text, talk
from icefield.cli.sql.completion import DELIMITERS, Names, complete
from icefield.cli.sql.runner import StatementRunner
from icefield.cli.streams import OutputFailed
from icefield.errors import IcefieldError
from icefield.expr.query.lexer import LexemeKind, lex
from icefield.sql.syntax.place import as_written
from icefield.sql.syntax.script import split_script

try:
    import readline
except ImportError:  # some builds of Python do not have it
    readline = None  # type: ignore[assignment]

PROMPT, MORE = "icefield> ", "       -> "
HISTORY_LINES = 2_000

RunStatement = Callable[[StatementRunner, str], None]
# Prints an error that is not of this package, such as one of Spark.
Report = Callable[[Exception], object]

_HELP = r"""
\d           list tables and views
\d NAME      describe a table or view
\?           this help
\q           quit; Ctrl-D does too
A statement ends with a semicolon, and may have several lines. Ctrl-C drops it. Tab completes keywords and names.
Commands may also be between the lines of a statement.
""".strip()


class Quit(Exception):
    """The user leaves the shell."""


def run_shell(runner: StatementRunner, run: RunStatement, report: Report) -> None:
    """Read statements from the terminal and run them, until the user leaves."""
    shell = Shell(runner, run, report)
    editor: Any = readline
    talk(f"Icefield SQL on {runner.lake.warehouse}. \\? shows help, \\q quits.")
    with suppress(Quit, EOFError), _history(editor):
        shell.complete_with(editor)
        while True:
            shell.read_line()
    print_text("")
    if runner.roll_back():
        talk("The open transaction was rolled back.")


class Shell:
    """The statement that is being typed, and what is done when it is complete."""

    def __init__(self, runner: StatementRunner, run: RunStatement, report: Report) -> None:
        self._runner = runner
        self._run = run
        self._report = report
        self._lines: list[str] = []
        self._names = Names(runner.lake)
        self._editor: Any = None
        self._candidates: list[str] = []

    def read_line(self) -> None:
        """Read a line; run what is complete."""
        try:
            self.take(input(MORE if self._lines else PROMPT))
        except KeyboardInterrupt:
            self._lines.clear()
            talk("")

    def take(self, line: str) -> None:
        """Take a line as if it was typed."""
        if line.lstrip().startswith("\\") and not is_open("\n".join(self._lines)):
            self._remember(line)
            self._command(line.strip())
            return
        if not self._lines and not line.strip():
            return
        self._lines.append(line)
        text = "\n".join(self._lines)
        if is_complete(text):
            self._lines.clear()
            self._remember(text)
            for statement in split_script(text):
                if not self._execute(statement, text):
                    break
            self._names = Names(self._runner.lake)

    def complete_with(self, editor: Any) -> None:
        """Let the line editor complete words."""
        self._editor = editor
        if editor is None:
            return
        editor.set_auto_history(False)
        editor.set_completer_delims(DELIMITERS)
        editor.set_completer(self._completion)
        is_libedit = "libedit" in (editor.__doc__ or "")
        editor.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")

    def _completion(self, _: str, state: int) -> str | None:
        if state == 0:
            typed = self._editor.get_line_buffer()[: self._editor.get_endidx()]
            self._candidates = complete("\n".join([*self._lines, typed]), self._names)
        return self._candidates[state] if state < len(self._candidates) else None

    def _remember(self, text: str) -> None:
        """Add to the history: a statement as one line, unless it has a comment that ends with its line."""
        if self._editor is not None:
            for line in text.split("\n") if "--" in text else [" ".join(text.split("\n"))]:
                self._editor.add_history(line)

    def _execute(self, statement: str, written: str) -> bool:
        try:
            with as_written(written):
                self._run(self._runner, statement)
        except IcefieldError as error:
            print_error(error.message, error.hint, error.excerpt)
            return False
        except KeyboardInterrupt:
            print_error("interrupted")
            return False
        except OutputFailed:
            raise
        except Exception as error:  # the shell goes on, and an open transaction stays open
            self._report(error)
            return False
        return True

    def _command(self, line: str) -> None:
        name, _, rest = line.partition(" ")
        command = _COMMANDS.get(name)
        if command is None:
            print_error(f"no command {name}", f"There are: {', '.join(_COMMANDS)}")
        else:
            command(self, rest.strip().rstrip(";"))

    def describe(self, name: str) -> None:
        """List tables and views, or describe one."""
        if name:
            text = f"DESCRIBE EXTENDED {name}"
            self._execute(text, text)
        else:
            print_text("\n".join(Names(self._runner.lake).tables) or "There are no tables.")

    def help(self, _: str) -> None:
        """Show the commands."""
        print_text(_HELP)

    def quit(self, _: str) -> None:
        """Leave the shell."""
        raise Quit


_COMMANDS: Mapping[str, Callable[[Shell, str], None]] = {
    "\\d": Shell.describe,
    "\\?": Shell.help,
    "\\q": Shell.quit,
}


def is_complete(text: str) -> bool:
    """Return whether the last statement of a text ends with a semicolon, outside of quotes and comments."""
    last = None
    for token in lex(text):
        last = token
    return last is None or (last.kind is not LexemeKind.UNCLOSED and last.text == ";")


def is_open(text: str) -> bool:
    """Return whether a text ends inside of quotes or of a comment."""
    return any(token.kind is LexemeKind.UNCLOSED for token in lex(text))


@contextmanager
def _history(editor: Any) -> Iterator[None]:
    """Load the history of earlier shells, and save it in the end."""
    if editor is None:
        yield
        return
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    path = Path(home, "icefield", "sql_history")
    with suppress(OSError):
        editor.read_history_file(path)
    try:
        yield
    finally:
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            editor.set_history_length(HISTORY_LINES)
            editor.write_history_file(path)
            path.chmod(0o600)
