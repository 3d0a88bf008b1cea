"""Files of SQL cases: how they are read, and how a result is compared with what a case expects.

    @ insert-02 | a column list in another order     a case: a lake with an empty namespace `shop`
    $ stock                                          a fixture of cases/fixtures.txt that it begins with
    # seen on …                                      a comment
    let v = SELECT max(snapshot_id) FROM …           keeps the first value of a query, for ${v}
    params {"x": 1}                                  the arguments of the next statement: named, or a list
    > INSERT INTO shop.stock (qty, sku)              a statement
    | VALUES (:x, 'g')                               its further lines
    = ["g", 7, null]                                 a row that it returns; `= ()` for none, `= ...` for any others
    ! NoSuchTable: part of the message  @ line 1 pos 14
    ~ a note

Rows come in any order, unless the statement has ORDER BY or is DESCRIBE. `= ok` is any result. In a text, <id>, <n> and
<ms> stand for numbers, <any> and <warehouse> for any text. Decimals, dates, times and binaries are strings. An error is
a class of `icefield.errors` with its place, or `Spark` and the condition of an error that comes while rows are read.
"""

import datetime
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from icefield.expr.query.lexer import lex

CASES = Path(__file__).parent / "cases"
FIXTURES = CASES / "fixtures.txt"

_WILD = {"<id>": r"-?\d+", "<n>": r"-?\d+", "<ms>": r".+", "<any>": r"(?s:.*)", "<warehouse>": r".*"}
_ERROR = re.compile(r"(?P<kind>\w+)(?:: (?P<part>.*?))?(?:  @ line (?P<line>\d+) pos (?P<column>\d+))?")


@dataclass(frozen=True)
class ExpectedError:
    """An error: its class, a part of its message, and the line and column that it points at."""

    kind: str
    part: str | None = None
    position: tuple[int, int] | None = None


@dataclass
class Step:
    """A statement with what it must return, or a query whose value is kept under a name."""

    text: str
    arguments: Any = None
    keeps: str | None = None
    rows: list[Any] = field(default_factory=list)
    has_more_rows: bool = False
    error: ExpectedError | None = None
    is_checked: bool = False

    @property
    def is_ordered(self) -> bool:
        """Whether the order of the rows counts: ORDER BY in parentheses is that of a window or a subquery."""
        depth, words = 0, list[str]()
        for token in lex(self.text):
            depth += token.depth
            words += [token.word] if depth == 0 else []
        return words[0] in ("desc", "describe") or ("order", "by") in pairwise(words)


@dataclass
class Case:
    """Statements that run one after another in a lake of their own."""

    name: str
    title: str
    section: str
    fixtures: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)


@cache
def all_cases() -> tuple[Case, ...]:
    """Read the cases of all files."""
    files = sorted(path for path in CASES.glob("*.txt") if path != FIXTURES)
    return tuple(case for path in files for case in read_cases(path.read_text(), path.stem))


@cache
def fixtures() -> dict[str, list[Step]]:
    """Read the fixtures, by name."""
    text = re.sub(r"^fixture (\S+)$", r"@ \1 | ", FIXTURES.read_text(), flags=re.MULTILINE)
    return {case.name: case.steps for case in read_cases(text, "fixtures")}


def read_cases(text: str, section: str) -> Iterator[Case]:
    """Read the cases of one file."""
    case: Case | None = None
    arguments = None
    for number, line in enumerate(text.splitlines(), 1):
        mark, _, rest = line.partition(" ")
        if mark in ("", "#", "~"):
            continue
        if mark == "@":
            if case is not None:
                yield case
            name, _, title = rest.partition(" | ")
            case = Case(name, title, section)
            continue
        assert case is not None, f"{section}:{number} is before the first case"
        if mark == "params":
            arguments = json.loads(rest)
        elif mark == ">":
            case.steps.append(Step(rest, arguments))
            arguments = None
        else:
            _read_line(case, mark, rest, f"{section}:{number}")
    if case is not None:
        yield case


def _read_line(case: Case, mark: str, rest: str, where: str) -> None:
    if mark == "$":
        case.fixtures.append(rest)
    elif mark == "let":
        name, _, query = rest.partition(" = ")
        case.steps.append(Step(query, keeps=name))
    elif mark == "|":
        case.steps[-1].text += "\n" + rest
    elif mark == "=":
        _expect_rows(case.steps[-1], rest)
    elif mark == "!":
        found = _ERROR.fullmatch(rest)
        assert found is not None, f"{where}: {rest} is not an error"
        position = (int(found["line"]), int(found["column"])) if found["line"] else None
        case.steps[-1].error = ExpectedError(found["kind"], found["part"], position)
    else:
        raise AssertionError(f"{where}: lines do not begin with {mark!r}")


def _expect_rows(step: Step, text: str) -> None:
    if text in ("ok", "<plan>"):
        return
    step.is_checked = True
    if text == "...":
        step.has_more_rows = True
    elif text != "()":
        step.rows.append(json.loads(text))


def with_values(text: str, kept: Mapping[str, object]) -> str:
    """Replace each ${name} by the value that was kept."""
    return re.sub(r"\$\{(\w+)\}", lambda found: str(kept[found[1]]), text)


def plain(value: object) -> Any:
    """Convert a value from Arrow as cases write it."""
    match value:
        case datetime.datetime():
            return value.replace(tzinfo=None).isoformat()
        case datetime.date():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case bytes():
            return value.hex()
        case dict():
            return {key: plain(inner) for key, inner in value.items()}
        case list() if value and all(isinstance(each, tuple) for each in value):
            return {str(plain(key)): plain(inner) for key, inner in value}
        case list():
            return [plain(inner) for inner in value]
        case _:
            return value


def difference(step: Step, rows: list[list[Any]], kept: Mapping[str, object]) -> str | None:
    """Return how rows differ from what a step expects, or None."""
    left, missing = list(rows), []
    for expected in step.rows:
        most = 1 if step.is_ordered else len(left)
        found = next((row for row in left[:most] if _same(expected, row, kept)), None)
        if found is None:
            missing.append(expected)
        else:
            left.remove(found)
    if missing or (left and not step.has_more_rows):
        shown = "\n    ".join(json.dumps(row, default=str) for row in rows) or "no row"
        return f"returned\n    {shown}\n  and not {missing or 'only what is expected'}"
    return None


def _same(expected: Any, value: Any, kept: Mapping[str, object]) -> bool:
    if isinstance(expected, list) and isinstance(value, list):
        return len(expected) == len(value) and all(_same(*each, kept) for each in zip(expected, value, strict=True))
    if not isinstance(expected, str):
        return bool(type(expected) is type(value) and expected == value)
    if "<" not in expected and "$" not in expected:
        return bool(expected == value)
    parts = re.split(f"({'|'.join(_WILD)})", with_values(expected, kept))
    pattern = "".join(_WILD.get(part, re.escape(part)) for part in parts)
    return re.fullmatch(pattern, str(value)) is not None
