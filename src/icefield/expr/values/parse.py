"""Parse expressions in Spark's dialect, with Spark's own precedence of operators.

    OR < AND < NOT < IS, IN, LIKE, BETWEEN < comparisons < + - || < * / % < unary minus

Only what this package evaluates is parsed. Any other syntax raises NeedsSpark, since it may be valid in Spark; a quote
that is not closed and the like raise InvalidInput.
"""

from collections.abc import Callable
from functools import lru_cache

from icefield.errors import InvalidInput, NeedsSpark
from icefield.expr.query.tokens import Token, TokenKind, tokenize
from icefield.expr.values.constants import NULL, from_hex, from_number, from_string, typed
from icefield.expr.values.syntax import Call, Case, Cast, Constant, Default, Name, OnlySpark, Syntax
from icefield.types.datatypes import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
    Type,
)

MAX_DEPTH = 60

_BINARY = {
    "*": 3,
    "/": 3,
    "%": 3,
    "+": 2,
    "-": 2,
    "||": 2,
    **dict.fromkeys(("=", "<", "<=", ">", ">=", "!=", "<=>"), 1),
}
_SPELLINGS = {"==": "=", "<>": "!="}
_UNSUPPORTED_OPERATORS = {"div", "collate", "over", "filter", "within", "ignore", "respect"}
# Words that end or join expressions, and so are never taken for a column.
_RESERVED = {
    *("and", "or", "not", "in", "is", "between", "like", "ilike", "rlike", "regexp", "escape", "distinct", "from"),
    *("case", "when", "then", "else", "end", "cast", "try_cast", "exists", "select", "interval", "as"),
}
_TYPES: dict[str, Type] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "integer": IntegerType(),
    "bigint": LongType(),
    "long": LongType(),
    "float": FloatType(),
    "real": FloatType(),
    "double": DoubleType(),
    "string": StringType(),
    "binary": BinaryType(),
    "date": DateType(),
    "timestamp": TimestamptzType(),
    "timestamp_ltz": TimestamptzType(),
    "timestamp_ntz": TimestampType(),
}


@lru_cache(maxsize=256)
def parse(text: str) -> Syntax:
    """Parse an expression."""
    if not text.strip():
        raise InvalidInput("the expression is empty")
    if "${" in text:
        raise NeedsSpark("a variable such as ${name}")
    try:
        tokens = tokenize(text)
    except InvalidInput as error:
        raise InvalidInput(f"cannot parse the expression {_short(text)!r}: {error.message}", hint=error.hint) from error
    if not tokens:
        raise InvalidInput("the expression is empty")
    return _Parser(text, tokens).whole()


def _short(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:97]}..."


class _Parser:
    """A parser by recursive descent."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self._text = text
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def whole(self) -> Syntax:
        if [token.word for token in self._tokens] == ["default"]:
            return Default()
        found = self._expression()
        if self._at < len(self._tokens):
            raise self._unexpected()
        return found

    def _expression(self) -> Syntax:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise InvalidInput("the expression is nested too deeply")
        found = self._joined("or", lambda: self._joined("and", self._negation))
        self._depth -= 1
        return found

    def _joined(self, word: str, part: Callable[[], Syntax]) -> Syntax:
        parts = [part()]
        while self._take(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Call(word, tuple(parts))

    def _negation(self) -> Syntax:
        negated = False
        while self._take("not") or self._take_operator("!"):
            negated = not negated
        found = self._predicate(self._value())
        return Call("not", (found,)) if negated else found

    def _predicate(self, left: Syntax) -> Syntax:
        if self._take("is"):
            return self._is(left)
        start = self._at
        negated = self._take("not") or self._take_operator("!")
        found = self._test(left)
        if found is None:
            self._at = start
            return left
        return Call("not", (found,)) if negated else found

    def _test(self, left: Syntax) -> Syntax | None:
        if self._take("between"):
            low = self._value()
            self._expect("and")
            return Call("and", (Call(">=", (left, low)), Call("<=", (left, self._value()))))
        if self._take("in"):
            return Call("in", (left, *self._arguments()))
        if self._take("like"):
            pattern = self._value()
            escape = (self._string_token(),) if self._take("escape") else ()
            return Call("like", (left, pattern, *escape))
        return None

    def _is(self, left: Syntax) -> Syntax:
        negated = self._take("not")
        if self._take("null") or self._take("unknown"):
            found: Syntax = Call("isnull", (left,))
        elif self._take("true"):
            found = Call("<=>", (left, Constant(BooleanType(), value=True)))
        elif self._take("false"):
            found = Call("<=>", (left, Constant(BooleanType(), value=False)))
        elif self._take("distinct"):
            self._expect("from")
            found, negated = Call("<=>", (left, self._value())), not negated
        else:
            raise self._unexpected()
        return Call("not", (found,)) if negated else found

    def _value(self, least: int = 1) -> Syntax:
        left = self._unary()
        while True:
            operator = self._operator()
            level = _BINARY.get(operator, 0)
            if level < least:
                return left
            self._at += 1
            left = Call(operator, (left, self._value(level + 1)))

    def _operator(self) -> str:
        token = self._peek()
        if token is None or token.kind is not TokenKind.OPERATOR:
            return ""
        return _SPELLINGS.get(token.text, token.text)

    def _unary(self) -> Syntax:
        signs = 0
        while self._take_operator("-"):
            number = self._peek()
            if number is not None and number.kind is TokenKind.NUMBER:
                # The sign belongs to the number: -2147483648 is an int.
                return self._signed(signs, from_number(self._next().text, negative=True))
            signs += 1
        if self._take_operator("+"):
            return self._signed(signs, Call("positive", (self._unary(),)))
        return self._signed(signs, self._primary())

    def _signed(self, signs: int, value: Syntax) -> Syntax:
        for _ in range(signs):
            value = Call("negative", (value,))
        return value

    def _primary(self) -> Syntax:
        token = self._next()
        match token.kind:
            case TokenKind.NUMBER:
                return from_number(token.text)
            case TokenKind.STRING:
                return self._string(token)
            case TokenKind.BINARY:
                return from_hex(token.text)
            case TokenKind.OPERATOR if token.text == "(":
                found = self._expression()
                self._close()
                return found
            case TokenKind.WORD | TokenKind.QUOTED:
                return self._word(token)
        self._at -= 1
        raise self._unexpected()

    def _string_token(self) -> Constant:
        if self._next().kind is not TokenKind.STRING:
            self._at -= 1
            raise self._unexpected()
        return self._string(self._tokens[self._at - 1])

    def _string(self, token: Token) -> Constant:
        parts = [from_string(token.text)]
        while (following := self._peek()) is not None and following.kind is TokenKind.STRING:
            parts.append(from_string(self._next().text))
        return Constant(StringType(), "".join(str(part.value) for part in parts))

    def _word(self, token: Token) -> Syntax:
        constants = {"null": NULL, "true": Constant(BooleanType(), True), "false": Constant(BooleanType(), False)}
        following = self._peek()
        if token.word in constants:
            return constants[token.word]
        if token.word == "case":
            return self._case()
        if following is not None and following.text == "(":
            return self._call(token)
        if token.word and following is not None and following.kind is TokenKind.STRING:
            return self._typed(token)
        if token.word in _RESERVED:
            self._at -= 1
            raise self._unexpected()
        return self._name(token)

    def _typed(self, token: Token) -> Syntax:
        text = str(self._string(self._next()).value)
        try:
            return typed(token.word, text)
        except NeedsSpark as error:
            # The other parts of a condition can still be used for planning.
            return OnlySpark(error.part, error.hint)

    def _name(self, token: Token) -> Name:
        parts = [token.name]
        while self._take_operator("."):
            if not self._next().is_name:
                self._at -= 1
                raise self._unexpected()
            parts.append(self._tokens[self._at - 1].name)
        following = self._peek()
        if following is not None and (
            following.text in ("(", "[", ":", "::") or following.word in _UNSUPPORTED_OPERATORS
        ):
            raise self._unexpected()
        return Name(tuple(parts))

    def _call(self, token: Token) -> Syntax:
        if token.word == "cast":
            return self._cast()
        if not token.word or token.word in _RESERVED:
            raise self._unexpected()
        return Call(token.word, self._arguments())

    def _arguments(self) -> tuple[Syntax, ...]:
        if not self._take_operator("("):
            raise self._unexpected()
        if self._take_operator(")"):
            return ()
        found = [self._expression()]
        while self._take_operator(","):
            found.append(self._expression())
        self._close()
        return tuple(found)

    def _close(self) -> None:
        if not self._take_operator(")"):
            raise self._unexpected()
        following = self._peek()
        if following is not None and (
            following.text in (".", "[", "::", ":", "->") or following.word in _UNSUPPORTED_OPERATORS
        ):
            raise self._unexpected()

    def _case(self) -> Case:
        subject = None if self._is_word("when") else self._expression()
        branches = []
        while self._take("when"):
            test = self._expression()
            self._expect("then")
            branches.append((test if subject is None else Call("=", (subject, test)), self._expression()))
        otherwise: Syntax = self._expression() if self._take("else") else NULL
        self._expect("end")
        if not branches:
            raise self._unexpected()
        return Case(tuple(branches), otherwise)

    def _cast(self) -> Cast:
        self._at += 1
        value = self._expression()
        self._expect("as")
        kind = self._type(self._next().word)
        self._close()
        return Cast(value, kind)

    def _type(self, word: str) -> Type:
        if word in ("decimal", "dec", "numeric"):
            return self._decimal()
        if word not in _TYPES:
            self._at -= 1
            raise self._unexpected()
        return _TYPES[word]

    def _decimal(self) -> DecimalType:
        following = self._peek()
        if following is None or following.text != "(":
            return DecimalType(10, 0)
        sizes = [a.value if isinstance(a, Constant) else None for a in self._arguments()]
        precision, scale = [*sizes, 0][:2]
        if len(sizes) > 2 or not isinstance(precision, int) or not isinstance(scale, int):
            raise self._unexpected()
        return DecimalType(precision, scale)

    def _peek(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _next(self) -> Token:
        if self._at >= len(self._tokens):
            raise self._unexpected()
        self._at += 1
        return self._tokens[self._at - 1]

    def _is_word(self, word: str) -> bool:
        token = self._peek()
        return token is not None and token.word == word

    def _take(self, word: str) -> bool:
        taken = self._is_word(word)
        self._at += taken
        return taken

    def _take_operator(self, operator: str) -> bool:
        token = self._peek()
        taken = token is not None and token.kind is TokenKind.OPERATOR and token.text == operator
        self._at += taken
        return taken

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise self._unexpected()

    def _unexpected(self) -> NeedsSpark:
        token = self._peek()
        near = f"near {token.text!r}" if token is not None else "at its end"
        return NeedsSpark(f"the expression {_short(self._text)!r}, whose syntax is not known {near},")
