"""Find out which character separates the cells of a CSV file.

    id;name;price          a semicolon: every line has two of them outside of quotes,
    1;"a, b";2,50          and a comma is in one line only

The candidate that is in the first line, and as often in most of the other lines, is taken; a comma if none is.
"""

from collections.abc import Sequence

DELIMITERS = (",", ";", "\t", "|")
SAMPLE_BYTES = 1 << 16
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars", " ": "spaces"}


def find_delimiter(sample: str, quote: str = '"') -> str:
    """Return the most likely delimiter of the first lines of a file."""
    lines = _lines(sample, quote)
    return max(DELIMITERS, key=lambda each: _score(lines, each)) if lines else DELIMITERS[0]


def delimiter_name(delimiter: str) -> str:
    """Return what to call a delimiter in a message."""
    return _NAMES.get(delimiter, repr(delimiter))


def _score(lines: Sequence[str], delimiter: str) -> tuple[int, int]:
    wanted = lines[0].count(delimiter)
    if not wanted:
        return 0, 0
    return sum(line.count(delimiter) == wanted for line in lines), wanted


def _lines(sample: str, quote: str) -> list[str]:
    """Split a sample into lines without what is in quotes; the last line may be cut, so it is left out if it can be."""
    outside = "".join(part for number, part in enumerate(sample.split(quote)) if number % 2 == 0) if quote else sample
    lines = [line for line in outside.splitlines() if line.strip()]
    return lines[:-1] if len(lines) > 2 and not sample.endswith("\n") else lines
