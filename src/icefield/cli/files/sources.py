"""Which files a command reads: files, patterns such as `in/*.csv`, directories, and standard input as `-`.

Raises InvalidInput for a pattern or directory without files, and for a file that is named twice.
"""

import glob
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import rich_click as click

from icefield.cli.files.row_format import BY_NAME, COMPRESSED, CSV, JSON, KINDS, PARQUET, POINT, RowFormat, kind_of
from icefield.cli.files.streams_of_bytes import UTF_8
from icefield.errors import InvalidInput

F = TypeVar("F", bound=Callable[..., Any])
STANDARD_INPUT = "-"
_PATTERN_CHARACTERS = "*?["
_MAGIC = {b"PAR1": PARQUET, b"{": JSON, b"[": JSON}
_OF_ONE_FORMAT = (
    ("--delimiter", "delimiter", CSV),
    ("--quote", "quote", CSV),
    ("--no-header", "has_header", CSV),
    ("--null", "nulls", CSV),
    ("--decimal", "decimal", CSV),
    ("--records", "records", JSON),
)
_ENDINGS = {PARQUET: ".parquet", CSV: ".csv", JSON: ".json"}


def files_argument() -> Callable[[F], F]:
    """The files that a command reads."""
    return click.argument("files", metavar="FILE...", nargs=-1, required=True)


def format_options() -> Callable[[F], F]:
    """How files are read; `row_format` makes a value of them."""

    def decorate(command: F) -> F:
        for option in reversed(_FORMAT):
            command = option(command)
        return command

    return decorate


def row_format(  # noqa: PLR0913 - one parameter per option
    *,
    format_: str | None = None,
    delimiter: str | None = None,
    quote: str = '"',
    no_header: bool = False,
    nulls: Sequence[str] = (),
    decimal: str = POINT,
    encoding: str = UTF_8,
    records: str | None = None,
) -> RowFormat:
    """Check the options of a format."""
    cell_end = {"tab": "\t", r"\t": "\t"}.get(delimiter, delimiter) if delimiter is not None else None
    for option, value in (("--delimiter", cell_end), ("--quote", quote or None)):
        if value is not None and (len(value) != 1 or not value.isascii()):
            raise InvalidInput(f"{option} is one ASCII character, not {value!r}")
    return RowFormat(format_, cell_end, quote, not no_header, ("", *nulls), decimal, encoding, records)


@contextmanager
def open_sources(named: Sequence[str], form: RowFormat) -> Iterator[list[Path]]:
    """Yield the files that are named; standard input is copied to a temporary file."""
    if list(named).count(STANDARD_INPUT) > 1:
        raise InvalidInput("standard input is named twice")
    with tempfile.TemporaryDirectory(prefix="icefield-") as folder:
        found = [path for name in named for path in _expand(name, Path(folder), form)]
        twice = [str(path) for path, count in Counter(found).items() if count > 1]
        if twice:
            raise InvalidInput(f"{min(twice)} is named twice", hint="Name each file once")
        _check_options(found, form)
        yield found


def _check_options(paths: Sequence[Path], form: RowFormat) -> None:
    """Refuse options that no file is read by."""
    kinds = {kind_of(path, form) for path in paths}
    for option, name, kind in _OF_ONE_FORMAT:
        if kind not in kinds and getattr(form, name) != getattr(BY_NAME, name):
            raise InvalidInput(
                f"{option} is for {kind.upper()} files, and there is none", hint="Leave it out, or give --format"
            )


def _expand(name: str, folder: Path, form: RowFormat) -> list[Path]:
    path = Path(name)
    if name == STANDARD_INPUT:
        return [_spool(folder, form)]
    if path.is_dir():
        return _files_below(path, form)
    if path.exists() or not any(character in name for character in _PATTERN_CHARACTERS):
        return [path]
    found = sorted(Path(each) for each in glob.glob(name, recursive=True))  # noqa: PTH207 - it may be absolute
    files = [each for each in found if each.is_file()]
    if not files:
        raise InvalidInput(f"no file matches {name}")
    return files


def _files_below(directory: Path, form: RowFormat) -> list[Path]:
    """List the files of a directory, also in directories inside it, without those that writers hide."""
    files = [path for path in sorted(directory.rglob("*")) if path.is_file() and not _is_hidden(path, directory)]
    chosen = [path for path in files if form.kind is not None or _is_known(path)]
    if not chosen:
        raise InvalidInput(
            f"there is no file of rows in {directory}", hint=f"Names end in {', '.join(KINDS)}; or give --format"
        )
    return chosen


def _is_hidden(path: Path, directory: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.relative_to(directory).parts)


def _is_known(path: Path) -> bool:
    suffix = path.suffix.lower()
    return (Path(path.stem).suffix.lower() if suffix in COMPRESSED else suffix) in KINDS


def _spool(folder: Path, form: RowFormat) -> Path:
    """Write standard input to a file: a schema is inferred in one pass, and rows are read in another."""
    if sys.stdin.isatty():
        raise InvalidInput("standard input is a terminal", hint="Pipe rows into it, or name a file")
    source = sys.stdin.buffer
    first = source.read(4)
    if not first:
        raise InvalidInput("standard input is empty")
    kind = form.kind or next((kind for magic, kind in _MAGIC.items() if first.lstrip().startswith(magic)), CSV)
    path = folder / f"stdin{_ENDINGS[kind]}"
    with path.open("wb") as sink:
        sink.write(first)
        shutil.copyfileobj(source, sink)
    return path


_FORMAT = (
    click.option(
        "--format", "format_", type=click.Choice([CSV, JSON, PARQUET]), help="The format. [default: by the file's name]"
    ),
    click.option("--delimiter", metavar="C", help="What separates cells of CSV. [default: found in the file]"),
    click.option("--quote", metavar="C", default='"', show_default=True, help="What quotes cells; empty for nothing."),
    click.option("--no-header", is_flag=True, help="The first line of CSV is a row; columns are in the table's order."),
    click.option("--null", "nulls", metavar="TEXT", multiple=True, help="A cell of CSV that is null, such as NA."),
    click.option(
        "--decimal",
        type=click.Choice([POINT, ","]),
        default=POINT,
        show_default=True,
        help="What separates the decimals of numbers in CSV.",
    ),
    click.option("--encoding", metavar="NAME", default=UTF_8, show_default=True, help="The encoding of CSV and JSON."),
    click.option("--records", metavar="PATH", help="Where the rows are in a JSON document, such as data.items."),
)
