"""What a table property is: a key, the parser of its value, a default, and one line of doc.

Raises InvalidInput for a value that does not parse.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from icefield.errors import InvalidInput

T = TypeVar("T")

MOST = 2**63 - 1
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_METRICS_MODE = re.compile(r"none|counts|full|truncate\(0*[1-9]\d{0,8}\)")


@dataclass(frozen=True)
class Property(Generic[T]):
    """A table property with its parser and default."""

    key: str
    parse: Callable[[str], T]
    default: T
    doc: str

    def read(self, properties: Mapping[str, str]) -> T:
        """Return the value set in the properties, or the default."""
        text = properties.get(self.key)
        if text is None:
            return self.default
        try:
            return self.parse(text)
        except ValueError as error:
            raise InvalidInput(f"table property {self.key} cannot be {text!r}: {error}", hint=self.doc) from error


@dataclass(frozen=True)
class ColumnProperty(Generic[T]):
    """A property that every column may have: its key is the prefix and the column's name, dots and all."""

    prefix: str
    parse: Callable[[str], T]
    default: T
    doc: str

    def of(self, column: str) -> Property[T]:
        """Return the property of one column."""
        return Property(self.prefix + column, self.parse, self.default, self.doc)


def positive(text: str) -> int:
    """Parse a number of at least 1."""
    return _whole_number(text, 1)


def at_least_two(text: str) -> int:
    """Parse a number of at least 2."""
    return _whole_number(text, 2)


def natural(text: str) -> int:
    """Parse a number that is not negative."""
    return _whole_number(text, 0)


def _whole_number(text: str, least: int) -> int:
    """Parse a number as other engines do, which have 64 bits for it; spellings that only Python knows are refused."""
    if not _WHOLE_NUMBER.fullmatch(text):
        raise ValueError("it must be a whole number")
    number = int(text)
    if number < least:
        raise ValueError(f"it must be at least {least}" if least else "it cannot be negative")
    if number > MOST:
        raise ValueError(f"it must be at most {MOST}")
    return number


def one_of(*words: str) -> Callable[[str], str]:
    """Return the parser of a word among some."""

    def parse(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(f"it must be one of {', '.join(words)}")
        return text.lower()

    return parse


def flag(text: str) -> bool:
    """Parse true or false."""
    return one_of("true", "false")(text) == "true"


def probability(text: str) -> float:
    """Parse a number between 0 and 1."""
    number = float(text)
    if not 0 < number < 1:
        raise ValueError("it must be between 0 and 1")
    return number


def share(text: str) -> float:
    """Parse a number from 0 to 1."""
    number = float(text)
    if not 0 <= number <= 1:
        raise ValueError("it must be from 0 to 1")
    return number


def metrics_mode(text: str) -> str:
    """Parse a metrics mode."""
    word = text.strip().lower()
    if not _METRICS_MODE.fullmatch(word):
        raise ValueError("it must be none, counts, truncate(n) or full")
    return word
