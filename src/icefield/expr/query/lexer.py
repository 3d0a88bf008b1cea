"""The tokens of SQL text as Spark reads them, each with its place; nothing is refused and nothing is changed.

    SELECT 'it''s', x.1a FROM t -- all   ->   SELECT|'it''s'|,|x|.|1a|FROM|t

Comments and blanks are left out; comments may be nested, and a hint (`/*+ ... */`) is not a comment. What Spark would
not read is a token too: a character that belongs nowhere (OTHER), a quote or comment that is not closed (UNCLOSED).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

_BLANK = re.compile(r"[ \t\r\n\f\v]+")
_LINE_COMMENT = re.compile(r"--(?:\\\n|[^\r\n])*")
_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")
_LEXEME = re.compile(
    r"""
      (?P<raw>      [rR](?:'[^']*'|"[^"]*") )
    | (?P<binary>   [xX]'[0-9A-Fa-f]*' )
    | (?P<string>   '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" )
    | (?P<dollar>   \$(?P<tag>\w*)\$.*?\$(?P=tag)\$ )
    | (?P<quoted>   `(?:[^`]|``)+` )
    | (?P<number>   (?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:[lLsSyYdDfF]|[bB][dD])?(?!\w) )
    | (?P<word>     [^\W\d]\w* )
    | (?P<digits>   \d\w* )
    | (?P<operator> /\*\+|\*/|<=>|>>>|\|\||\|>|<=|>=|<>|!=|==|<<|>>|->|=>|::|[()\[\]{},.;?+\-*/%~&|^<>=!:] )
    """,
    re.VERBOSE | re.DOTALL,
)


class LexemeKind(Enum):
    """What a lexeme is. DIGITS is a name that begins with a digit; DOLLAR a string in dollar signs."""

    WORD = "word"
    DIGITS = "digits"
    QUOTED = "quoted"
    STRING = "string"
    RAW = "raw"
    DOLLAR = "dollar"
    BINARY = "binary"
    NUMBER = "number"
    OPERATOR = "operator"
    OTHER = "other"
    UNCLOSED = "unclosed"


_NAMES = frozenset({LexemeKind.WORD, LexemeKind.QUOTED, LexemeKind.DIGITS})


@dataclass(frozen=True)
class Lexeme:
    """A token as it was written, from `start` up to, not including, `end`."""

    kind: LexemeKind
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """The word in lower case; empty for any other token."""
        return self.text.lower() if self.kind is LexemeKind.WORD else ""

    @property
    def is_name(self) -> bool:
        """Whether the token may be an identifier."""
        return self.kind in _NAMES

    @property
    def name(self) -> str:
        """The name, if the token is an identifier."""
        return self.text[1:-1].replace("``", "`") if self.kind is LexemeKind.QUOTED else self.text

    @property
    def depth(self) -> int:
        """How many parentheses and brackets the token opens; -1 if it closes one."""
        is_operator = self.kind is LexemeKind.OPERATOR
        return is_operator * ((self.text in ("(", "[")) - (self.text in (")", "]")))


def lex(text: str) -> Iterator[Lexeme]:
    """Split a text into tokens, without comments."""
    at = 0
    while at < len(text):
        if found := _BLANK.match(text, at) or _LINE_COMMENT.match(text, at):
            at = found.end()
        elif text.startswith("/*", at) and not text.startswith("/*+", at):
            end = _end_of_comment(text, at)
            if end is None:
                yield Lexeme(LexemeKind.UNCLOSED, text[at:], at, len(text))
                return
            at = end
        else:
            lexeme = _next(text, at)
            yield lexeme
            at = lexeme.end


def _next(text: str, at: int) -> Lexeme:
    found = _LEXEME.match(text, at)
    if found is not None:
        # The last group to match may be that of a tag.
        kind = "dollar" if found["dollar"] is not None else str(found.lastgroup)
        return Lexeme(LexemeKind(kind), found.group(), at, found.end())
    if text[at] in "'\"`":
        return Lexeme(LexemeKind.UNCLOSED, text[at:], at, len(text))
    return Lexeme(LexemeKind.OTHER, text[at], at, at + 1)


def _end_of_comment(text: str, start: int) -> int | None:
    """Find the end of a comment, which may contain nested ones; a hint does not begin one."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return None


def has_word(tokens: Sequence[Lexeme], at: int, word: str) -> bool:
    """Return whether a word follows, outside of further parentheses and before the one that closes these."""
    depth = 0
    for token in tokens[at:]:
        depth += token.depth
        if depth < 0 or (depth == 0 and token.word == word):
            return depth == 0
    return False
