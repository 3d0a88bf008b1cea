"""SQL's LIKE patterns: `%` is any text, `_` any one character, the escape character makes the next one literal."""

import re
from dataclasses import dataclass
from enum import Enum
from functools import cached_property


class Wildcard(Enum):
    ANY_TEXT = "%"
    ANY_CHARACTER = "_"


_REGEX = {Wildcard.ANY_TEXT: ".*", Wildcard.ANY_CHARACTER: "."}


@dataclass(frozen=True)
class LikePattern:
    """A parsed pattern: literal strings and wildcards; adjacent literals are joined."""

    tokens: tuple[str | Wildcard, ...]

    @cached_property
    def prefix(self) -> str:
        """The literal text that every match begins with."""
        first = self.tokens[0] if self.tokens else ""
        return first if isinstance(first, str) else ""

    @property
    def is_literal(self) -> bool:
        """Whether only the prefix itself matches."""
        return not any(isinstance(token, Wildcard) for token in self.tokens)

    @property
    def is_prefix(self) -> bool:
        """Whether every string that begins with the prefix matches."""
        rest = self.tokens[1:] if self.prefix else self.tokens
        return bool(rest) and all(token is Wildcard.ANY_TEXT for token in rest)

    @cached_property
    def regex(self) -> str:
        """The pattern as a regular expression without anchors; `.` must also match line ends."""
        return "".join(re.escape(token) if isinstance(token, str) else _REGEX[token] for token in self.tokens)

    def matches(self, text: str) -> bool:
        return re.fullmatch(self.regex, text, re.DOTALL) is not None

    def sql(self, escape: str) -> str:
        """Write the pattern as SQL text with the given escape character."""
        return "".join(_escaped(t, escape) if isinstance(t, str) else t.value for t in self.tokens)


def parse_like(pattern: str, escape: str = "\\") -> LikePattern:
    """Parse a pattern; raises ValueError where Spark would refuse it."""
    if len(escape) != 1:
        raise ValueError(f"the escape character must be a single character, not {escape!r}")
    tokens: list[str | Wildcard] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            _append_text(tokens, _escaped_character(next(characters, None), pattern, escape))
        elif character in ("%", "_"):
            tokens.append(Wildcard(character))
        else:
            _append_text(tokens, character)
    return LikePattern(tuple(tokens))


def _escaped_character(character: str | None, pattern: str, escape: str) -> str:
    if character is None:
        raise ValueError(f"the pattern {pattern!r} ends with its escape character")
    if character not in ("%", "_", escape):
        raise ValueError(f"in the pattern {pattern!r} the escape character precedes {character!r}")
    return character


def _append_text(tokens: list[str | Wildcard], text: str) -> None:
    if tokens and isinstance(tokens[-1], str):
        tokens[-1] += text
    else:
        tokens.append(text)


def _escaped(text: str, escape: str) -> str:
    return "".join(escape + c if c in ("%", "_", escape) else c for c in text)
