"""Check the schemas that a query passes to functions as strings.

Spark parses the schema of `from_json` as DDL, and if that fails as JSON. JSON can name any class as a user-defined
type, which Spark and pyspark would load. So such an argument must be a string that cannot be JSON (which always has a
brace), or a schema that Spark infers from a sample.

Raises Unsupported.
"""

from collections.abc import Mapping, Sequence

from icefield.errors import Unsupported
from icefield.expr.query.tokens import Token, TokenKind, find_end

# The index of the schema argument, from 0.
SCHEMA_ARGUMENTS: Mapping[str, int] = {"from_json": 1, "from_csv": 1, "variant_get": 2, "try_variant_get": 2}
_INFERRED = frozenset({"schema_of_json", "schema_of_csv"})


def check_schema_argument(tokens: Sequence[Token], at: int) -> None:
    """Refuse the call at a position if its schema may be anything but DDL."""
    function = tokens[at].name.lower()
    if function not in SCHEMA_ARGUMENTS:
        return
    arguments = _arguments(tokens, at + 1)
    names_arguments = any(_token_at(argument, 1) == "=>" for argument in arguments)
    place = SCHEMA_ARGUMENTS[function]
    if names_arguments or (place < len(arguments) and not _is_plain(arguments[place])):
        raise Unsupported(
            f"a view may give {function} a schema only as one string of DDL, without backslashes and braces",
            hint="Write the schema like 'id INT, name STRING', or infer it with schema_of_json('...')",
        )


def _is_plain(argument: Sequence[Token]) -> bool:
    first = argument[0] if argument else None
    if first is not None and first.is_name and first.name.lower() in _INFERRED:
        # The argument is this call alone.
        return _token_at(argument, 1) == "(" and find_end(argument, 1) == len(argument) - 1
    is_string = first is not None and first.kind is TokenKind.STRING and len(argument) == 1
    return is_string and not set(argument[0].text) & {"\\", "{"}


def _arguments(tokens: Sequence[Token], opening: int) -> list[Sequence[Token]]:
    """Return the arguments in a pair of parentheses, each as its tokens."""
    end = find_end(tokens, opening)
    arguments, start, depth = [], opening + 1, 0
    for at in range(opening + 1, end):
        depth += tokens[at].depth
        if tokens[at].text == "," and depth == 0:
            arguments.append(tokens[start:at])
            start = at + 1
    return [*arguments, tokens[start:end]]


def _token_at(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].text if at < len(tokens) else ""
