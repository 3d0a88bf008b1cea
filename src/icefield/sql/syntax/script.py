"""Scripts: statements separated by semicolons, outside of quotes, comments and parentheses. Raises InvalidInput."""

from collections.abc import Iterator

from icefield.errors import InvalidInput
from icefield.expr.query.lexer import Lexeme, LexemeKind, lex
from icefield.sql.syntax.place import Place


def split_script(text: str) -> Iterator[str]:
    """Yield the statements of a script, each without its semicolon; empty ones are left out.

    Blanks stand for what is before a statement, so that errors name its line in the script.
    """
    start: int | None = None
    for token in lex(text):
        if token.text == ";":
            if start is not None:
                yield _with_blanks(text, start, token.start)
            start = None
        elif start is None:
            start = token.start
    if start is not None:
        yield _with_blanks(text, start, len(text))


def _with_blanks(text: str, start: int, end: int) -> str:
    place = Place(text, start, end)
    return "\n" * (place.line - 1) + " " * place.column + place.text


def check_single(text: str) -> int:
    """Return where the only statement of a text ends; refuse a second one, and what is not closed."""
    end: Lexeme | None = None
    for token in lex(text):
        if token.kind is LexemeKind.UNCLOSED:
            place = Place(text, token.start, token.end)
            raise place.error("a quote or comment is not closed", kind=InvalidInput)
        if end is not None and token.text != ";":
            raise Place(text, token.start, token.end).error(
                "the text has more than one statement", hint="Run scripts with sql_script", kind=InvalidInput
            )
        if token.text == ";" and end is None:
            end = token
    return len(text) if end is None else end.start
