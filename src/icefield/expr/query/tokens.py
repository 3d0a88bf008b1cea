r"""The tokens of a query in Spark's dialect, as Spark's lexer reads them, each in a normal form.

    SELECT "it's" -- ${x}        ->   SELECT 'it\'s' FROM t
    FROM/* /* */ */t

Written with spaces between them, the tokens mean the same to every parser and under every setting of Spark: comments
are removed, strings have single quotes, and no string contains a variable that Spark would substitute. Anything that
the lexers of Spark and sqlglot may read differently (names that begin with a digit, non-ASCII letters and spaces
outside quotes) is refused.

Raises InvalidInput.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from icefield.errors import InvalidInput
from icefield.expr.query.lexer import Lexeme, LexemeKind, lex

MAX_TOKENS = 100_000

_QUOTED = frozenset({LexemeKind.STRING, LexemeKind.RAW, LexemeKind.QUOTED})
_ALLOWED = _QUOTED | {LexemeKind.WORD, LexemeKind.BINARY, LexemeKind.NUMBER, LexemeKind.OPERATOR}
_NOT_HERE = frozenset({"{", "}", "?", "|>"})
_PLAIN_STRING = re.compile(r"[A-Za-z0-9 _.,:/+-]")


class TokenKind(Enum):
    """What a token is."""

    WORD = "word"
    QUOTED = "quoted"
    STRING = "string"
    BINARY = "binary"
    NUMBER = "number"
    OPERATOR = "operator"


@dataclass(frozen=True)
class Token:
    """A token in its normal form."""

    kind: TokenKind
    text: str

    @property
    def name(self) -> str:
        """The name, if the token is a word or a quoted identifier."""
        return self.text[1:-1].replace("``", "`") if self.kind is TokenKind.QUOTED else self.text

    @property
    def word(self) -> str:
        """The word in lower case; empty for any other token."""
        return self.text.lower() if self.kind is TokenKind.WORD else ""

    @property
    def is_name(self) -> bool:
        """Whether the token may be an identifier."""
        return self.kind in (TokenKind.WORD, TokenKind.QUOTED)

    @property
    def depth(self) -> int:
        """How many parentheses and brackets the token opens; -1 if it closes one."""
        return (self.text in ("(", "[")) - (self.text in (")", "]"))

    @property
    def shape(self) -> str:
        """The token for a parser that does not need string values: with the same length, without escapes."""
        if self.kind is not TokenKind.STRING:
            return self.text
        return "'" + "".join(c if _PLAIN_STRING.fullmatch(c) else "x" for c in self.text[1:-1]) + "'"


@dataclass(frozen=True)
class PlacedToken:
    """A token, and where it was in the text: from `start` up to, not including, `end`."""

    token: Token
    start: int
    end: int


def tokenize(text: str) -> list[Token]:
    """Split a query into its tokens, without comments."""
    return [placed.token for placed in tokenize_with_places(text)]


def tokenize_with_places(text: str) -> list[PlacedToken]:
    """Split a query into its tokens, without comments, each with its place in the text."""
    tokens: list[PlacedToken] = []
    for lexeme in lex(text):
        token = _checked(text, lexeme, tokens[-1].token if tokens else None)
        tokens.append(PlacedToken(token, lexeme.start, lexeme.end))
        if len(tokens) > MAX_TOKENS:
            raise InvalidInput(f"the query has more than {MAX_TOKENS:,} tokens")
    return tokens


def find_end(tokens: Sequence[Token], opening: int) -> int:
    """Return the index of the closing parenthesis, or the end of the tokens."""
    depth = 0
    for at in range(opening, len(tokens)):
        depth += tokens[at].depth
        if depth == 0:
            return at
    return len(tokens)


def quoted(name: str) -> str:
    """Write an identifier."""
    return "`" + name.replace("`", "``") + "`"


def _checked(text: str, lexeme: Lexeme, before: Token | None) -> Token:
    """Return a token in its normal form; refuse what views and expressions do not use."""
    written = lexeme.text
    if written == ";":
        raise InvalidInput("the text must be a single SELECT or expression, but contains a ;")
    if lexeme.kind not in _ALLOWED or written in _NOT_HERE or not (written.isascii() or lexeme.kind in _QUOTED):
        raise InvalidInput(f"cannot parse the query: {_fault(text, lexeme)}")
    if lexeme.kind is LexemeKind.NUMBER and written.startswith(".") and before and _ends_operand(before):
        raise InvalidInput(f"cannot parse the query: invalid field name {written!r}", hint="Write it in backquotes")
    if lexeme.kind is LexemeKind.RAW:
        return _string([("\\" if c in "\\'" else "") + c for c in written[2:-1]])
    if lexeme.kind is LexemeKind.STRING:
        return _string(_units(written))
    return Token(TokenKind(lexeme.kind.value), written)


def _ends_operand(token: Token) -> bool:
    return token.is_name or token.text in (")", "]")


def _units(written: str) -> list[str]:
    """Split a string into characters, each escape sequence as one."""
    quote = written[0]
    inner = re.findall(rf"\\.|{quote}{quote}|.", written[1:-1], re.DOTALL)
    return [_unit(unit, quote) for unit in inner]


def _unit(unit: str, quote: str) -> str:
    character = quote if unit == quote * 2 else unit.removeprefix("\\") if unit in ("\\$", '\\"') else unit
    return "\\'" if character == "'" else character


def _string(units: list[str]) -> Token:
    # Spark substitutes variables for ${...} everywhere, even in strings.
    following = [*units, ""][1:]
    inner = "".join(
        "\\u0024" if (unit, after) == ("$", "{") else unit for unit, after in zip(units, following, strict=True)
    )
    return Token(TokenKind.STRING, f"'{inner}'")


def _fault(text: str, lexeme: Lexeme) -> str:
    if lexeme.kind is LexemeKind.UNCLOSED:
        return "a quote or comment is not closed"
    if lexeme.kind is LexemeKind.DIGITS:
        return f"a name begins with a digit near {text[lexeme.start : lexeme.start + 20]!r}; quote it with backticks"
    character = next((c for c in lexeme.text if not c.isascii()), lexeme.text[0])
    return f"{character!r} is not allowed outside quotes"
