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

MAX_TOKENS = 100_000

_BLANK = re.compile(r"[ \t\r\n\f\v]+")
_LINE_COMMENT = re.compile(r"--(?:\\\n|[^\r\n])*")
_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")
_TOKEN = re.compile(
    r"""
      (?P<raw>      [rR](?:'[^']*'|"[^"]*") )
    | (?P<binary>   [xX]'[0-9A-Fa-f]*' )
    | (?P<string>   '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" )
    | (?P<quoted>   `(?:[^`]|``)+` )
    | (?P<number>   (?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:[lLsSyYdDfF]|[bB][dD])?(?![A-Za-z0-9_]) )
    | (?P<word>     [A-Za-z_][A-Za-z0-9_]* )
    | (?P<operator> /\*\+|\*/|<=>|>>>|\|\||<=|>=|<>|!=|==|<<|>>|->|=>|::|[()\[\],.+\-*/%~&|^<>=!:] )
    """,
    re.VERBOSE | re.DOTALL,
)
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
    at = 0
    while at < len(text):
        if found := _BLANK.match(text, at) or _LINE_COMMENT.match(text, at):
            at = found.end()
        elif text.startswith("/*", at) and not text.startswith("/*+", at):
            at = _end_of_comment(text, at)
        else:
            token, end = _next_token(text, at, tokens[-1].token if tokens else None)
            tokens.append(PlacedToken(token, at, end))
            at = end
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


def _next_token(text: str, at: int, before: Token | None) -> tuple[Token, int]:
    found = _TOKEN.match(text, at)
    if found is None and text[at] == ";":
        raise InvalidInput("the text must be a single SELECT or expression, but contains a ;")
    if found is None:
        raise InvalidInput(f"cannot parse the query: {_fault(text, at)}")
    kind, written = found.lastgroup, found.group()
    if kind == "number" and written.startswith(".") and before and _ends_operand(before):
        raise InvalidInput(f"cannot parse the query: invalid field name {written!r}", hint="Write it in backquotes")
    if kind == "raw":
        return _string([("\\" if c in "\\'" else "") + c for c in written[2:-1]]), found.end()
    if kind == "string":
        return _string(_units(written)), found.end()
    return Token(TokenKind(kind), written), found.end()


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


def _end_of_comment(text: str, start: int) -> int:
    """Find the end of a comment, which may contain nested ones; a hint does not begin one."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    raise InvalidInput("cannot parse the query: a quote or comment is not closed")


def _fault(text: str, at: int) -> str:
    if text[at] in "'\"`":
        return "a quote or comment is not closed"
    if text[at].isdigit():
        return f"a name begins with a digit near {text[at : at + 20]!r}; quote it with backticks"
    return f"{text[at]!r} is not allowed outside quotes"
