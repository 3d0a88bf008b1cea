"""A reader of the tokens of one statement, with errors that point at the token that is wrong.

    cursor = Cursor("DROP TABLE IF EXISTS shop.orders PURGE")
    cursor.accept("drop", "table")      True
    cursor.accept("if", "exists")       True
    cursor.name().parts                 ("shop", "orders")
    cursor.accept("purge")              True
    cursor.expect_end()

Words are matched in any case, and no word is reserved: a table may be called `table`. Queries and expressions are not
read here: `until` returns them as places in the text. Raises InvalidInput.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from icefield.errors import IcefieldError, InvalidInput
from icefield.expr.query.lexer import Lexeme, LexemeKind, lex
from icefield.sql.syntax.place import Place
from icefield.sql.syntax.strings import string_value

_END = "the end of the statement"


@dataclass(frozen=True)
class Name:
    """A name of one or more parts, as written."""

    parts: tuple[str, ...]
    place: Place

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True)
class Parameters:
    """The values of `:name` and `?` markers."""

    named: dict[str, Any] = field(default_factory=dict)
    positional: Sequence[Any] = ()


class Cursor:
    """The tokens of a statement, read from left to right."""

    def __init__(
        self, source: str, start: int = 0, end: int | None = None, parameters: Parameters | None = None
    ) -> None:
        self.source = source
        self.parameters = parameters or Parameters()
        last = len(source) if end is None else end
        self._tokens = [token for token in lex(source[:last]) if token.start >= start]
        self._at = 0
        self._end = last

    @property
    def is_at_end(self) -> bool:
        """Whether all tokens are read."""
        return self._at >= len(self._tokens)

    @property
    def position(self) -> int:
        """Where the next token begins in the text."""
        return self._end if self.is_at_end else self._tokens[self._at].start

    @property
    def place(self) -> Place:
        """The place of the next token."""
        if self.is_at_end:
            end = self._tokens[-1].end if self._tokens else self._end
            return Place(self.source, end, end)
        return self._place(self._tokens[self._at])

    def peek(self, ahead: int = 0) -> str:
        """Return a token that follows, a word in lower case; empty at the end."""
        at = self._at + ahead
        if at >= len(self._tokens):
            return ""
        token = self._tokens[at]
        return token.word or token.text

    def token(self, ahead: int = 0) -> Lexeme | None:
        """Return a token that follows."""
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else None

    def is_at(self, *words: str) -> bool:
        """Return whether these words or symbols follow."""
        return all(self._is(ahead, word) for ahead, word in enumerate(words))

    def accept(self, *words: str) -> bool:
        """Read these words or symbols if all of them follow."""
        if not self.is_at(*words):
            return False
        self._at += len(words)
        return True

    def accept_any(self, *words: str) -> str | None:
        """Read one of these words if it follows, and return it."""
        return next((word for word in words if self.accept(word)), None)

    def expect(self, *words: str) -> None:
        """Read these words or symbols; raise an error at the first that is missing."""
        for word in words:
            if not self.accept(word):
                raise self.expected(word.upper())

    def expect_any(self, *words: str) -> str:
        """Read one of these words or symbols."""
        found = self.accept_any(*words)
        if found is None:
            raise self.expected(" or ".join(word.upper() for word in words))
        return found

    def expect_end(self) -> None:
        """Raise an error if anything follows."""
        if not self.is_at_end:
            raise self.expected(_END)

    def take(self) -> Lexeme:
        """Read one token, whatever it is."""
        if self.is_at_end:
            raise self.expected("more")
        self._at += 1
        return self._tokens[self._at - 1]

    def identifier(self, what: str = "a name") -> str:
        """Read a name of one part."""
        token = self.token()
        if token is None or not token.is_name:
            raise self.expected(what)
        self._at += 1
        return token.name

    def name(self, what: str = "a name") -> Name:
        """Read a name of one or more parts, joined by dots, or IDENTIFIER of a text that has it."""
        first = self._at
        if self.accept("identifier", "("):
            return self._name_in_text(first)
        parts = [self.identifier(what)]
        while self.is_at(".") and (after := self.token(1)) is not None and after.is_name:
            self._at += 1
            parts.append(self.identifier(what))
        return Name(tuple(parts), self._between(first, self._at))

    def names(self, what: str) -> tuple[Name, ...]:
        """Read a list of names in parentheses."""
        self.expect("(")
        found = [self.name(what)]
        while not self.accept(")"):
            self.expect(",")
            found.append(self.name(what))
        return tuple(found)

    def string(self, what: str = "a string") -> str:
        """Read a string literal."""
        token = self.token()
        if token is None or token.kind not in (LexemeKind.STRING, LexemeKind.RAW, LexemeKind.DOLLAR):
            raise self.expected(what)
        self._at += 1
        return string_value(token)

    def integer(self, what: str = "a whole number") -> int:
        """Read a whole number, possibly with a sign or a suffix."""
        sign = -1 if self.accept("-") else 1
        token = self.token()
        digits = token.text.rstrip("lLsSyY") if token is not None and token.kind is LexemeKind.NUMBER else ""
        if not digits.isdecimal():
            raise self.expected(what)
        self._at += 1
        return sign * int(digits)

    def number(self) -> int | float | Decimal:
        """Read a number as Spark reads it: digits are an integer, a point makes a decimal, an exponent a double."""
        token = self.token()
        if token is None or token.kind is not LexemeKind.NUMBER:
            raise self.expected("a number")
        self._at += 1
        text = token.text.lower()
        if text.endswith("bd"):
            return Decimal(text[:-2])
        if text[-1] in "df" or "e" in text:
            return float(text.rstrip("df"))
        return Decimal(text) if "." in text else int(text.rstrip("lsy"))

    @property
    def is_at_parameter(self) -> bool:
        """Whether a marker `:name` or `?` follows."""
        after = self.token(1)
        return self.is_at("?") or (self.is_at(":") and after is not None and after.is_name)

    def parameter(self) -> Any:
        """Read a marker, and return its value."""
        start = self.position
        if self.accept("?"):
            index = sum(token.text == "?" for token in lex(self.source[:start]))
            if index < len(self.parameters.positional):
                return self.parameters.positional[index]
            raise self.error(f"there is no value for the {index + 1}. parameter", self.since(start))
        self.expect(":")
        name = self.identifier("the name of a parameter")
        if name in self.parameters.named:
            return self.parameters.named[name]
        known = ", ".join(self.parameters.named) or "none"
        raise self.error(f"there is no value for the parameter :{name} (given: {known})", self.since(start))

    def until(self, *words: str, what: str = "an expression") -> Place:
        """Read up to one of these words or symbols outside parentheses, or to the end; return what was read.

        CASE ... END counts as parentheses.
        """
        first, depth, cases = self._at, 0, 0
        while not self.is_at_end:
            token = self._tokens[self._at]
            if depth == 0 and cases == 0 and any(self._is(0, word) for word in words):
                break
            depth += token.depth
            if depth < 0:
                break
            cases += (token.word == "case") - (token.word == "end" and cases > 0)
            self._at += 1
        if first == self._at:
            raise self.expected(what)
        return self._between(first, self._at)

    def parenthesized(self, what: str = "(") -> Place:
        """Read a text in parentheses; return what is inside, which may be empty."""
        if not self.accept("("):
            raise self.expected(what)
        opened, inside = self._at - 1, self.position
        depth = 1
        while not self.is_at_end:
            token = self.take()
            depth += token.depth
            if depth == 0:
                return Place(self.source, inside, max(inside, self._tokens[self._at - 2].end))
        raise self.error("a parenthesis is not closed", self._place(self._tokens[opened]))

    def rest(self, what: str = "a query") -> Place:
        """Read all that follows."""
        if self.is_at_end:
            raise self.expected(what)
        first, self._at = self._at, len(self._tokens)
        return self._between(first, self._at)

    def since(self, start: int) -> Place:
        """Return the place of what was read since a position in the text."""
        return Place(self.source, start, self._tokens[self._at - 1].end if self._at else start)

    def inside(self, place: Place) -> "Cursor":
        """Return a reader of a part of the text."""
        return Cursor(self.source, place.start, place.end, self.parameters)

    def expected(self, what: str) -> IcefieldError:
        """Return an error: something else was expected here."""
        token = self.token()
        if token is not None and token.kind is LexemeKind.UNCLOSED:
            return self.error("a quote or comment is not closed", self._place(token))
        found = _END if token is None else repr(token.text)
        return self.error(f"expected {what}, but found {found}", self.place)

    def error(
        self,
        message: str,
        place: Place | None = None,
        *,
        hint: str | None = None,
        kind: type[IcefieldError] = InvalidInput,
    ) -> IcefieldError:
        """Return an error that points at a place, by default at the next token."""
        return (place or self.place).error(message, hint=hint, kind=kind)

    def _name_in_text(self, first: int) -> Name:
        """Read a name that is the value of strings and markers, which `||` may join."""
        inside = self._at
        found: list[Any] = []
        while not found or self.accept("||"):
            found.append(self.parameter() if self.is_at_parameter else self.string("a string or a parameter"))
        written = self._between(inside, self._at)
        self.expect(")")
        if not all(isinstance(each, str) for each in found):
            raise self.error("the name in IDENTIFIER is not a text", written)
        try:
            text = Cursor("".join(found))
            name = text.name()
            text.expect_end()
        except IcefieldError as error:
            raise self.error(f"{''.join(found)!r} is not a name: {error.message}", written) from error
        return Name(name.parts, self._between(first, self._at))

    def _is(self, ahead: int, word: str) -> bool:
        at = self._at + ahead
        if at >= len(self._tokens):
            return False
        token = self._tokens[at]
        return token.word == word or (token.kind is LexemeKind.OPERATOR and token.text == word)

    def _between(self, first: int, last: int) -> Place:
        return Place(self.source, self._tokens[first].start, self._tokens[last - 1].end)

    def _place(self, token: Lexeme) -> Place:
        return Place(self.source, token.start, token.end)
