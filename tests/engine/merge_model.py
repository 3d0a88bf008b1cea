"""Random row-level changes of a table, and what they must do, by a model of rows in plain Python.

A history creates a table, appends to it, evolves it, and changes its rows by MERGE, UPDATE and DELETE. Each expression
is SQL text together with a Python function of a row of the table and a source row; null is None, and a condition is
true, false or None. After every step the rows of the table are compared with those of the model, and so are row ids
and the numbers of rows that the change reports.
"""

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from icefield import lit
from icefield.dml.result import ChangeResult
from icefield.engine.choose import EngineName
from icefield.errors import InvalidInput
from icefield.lake import Lake
from icefield.types.arrow import arrow_schema

LINEAGE = ("_row_id", "_last_updated_sequence_number")
Values = dict[str, Any]
Evaluate = Callable[[Values, Values], Any]
# Gives the source of a change from Arrow rows.
AsSource = Callable[[pa.Table], object]

KEYS: dict[str, Sequence[Any]] = {
    "long": (*range(7), 2**62),
    "int": (*range(-3, 4), 2**31 - 1),
    "string": ("", "a", "abcdefg", "abcdefgh", "abcdefghi", "é" * 9, "ab" * 20),
    "double": (0.0, -0.0, 1.5, math.nan, -math.inf),
    "decimal(20, 2)": (Decimal("0.00"), Decimal("-1.10"), Decimal("123456789012345678.90"), Decimal("1.10")),
    "date": tuple(dt.date(2026, 1, day) for day in range(1, 6)),
    "timestamp": tuple(dt.datetime(2026, 1, 1, hour) for hour in range(5)),
    "boolean": (True, False),
    "fixed(3)": (b"abc", b"abd", b"\0\0\0"),
}


@dataclass(frozen=True)
class Expression:
    """SQL text, or a literal, and its value for a row of the table and a source row."""

    given: Any
    evaluate: Evaluate


@dataclass(frozen=True)
class ClauseCase:
    """A clause. values: by dotted name; None for all columns."""

    when: str
    effect: str
    condition: Expression | None = None
    values: dict[str, Expression] | None = None


@dataclass(frozen=True)
class MergeCase:
    """A MERGE. keys: columns that are equal in a match. rest: what else must be true for one."""

    source: list[Values]
    on: Any
    keys: tuple[str, ...]
    rest: Expression | None
    clauses: list[ClauseCase]


@dataclass
class ModelRow:
    """A row of the table. row_id: None if the table has none, or if it is not known yet.

    updated: the sequence number of the snapshot that added or updated the row; None if that is the newest one.
    """

    values: Values
    row_id: int | None = None
    updated: int | None = None


@dataclass
class Expected:
    """The rows after a change, and how many it handled. must_fail, may_fail: because of a double match."""

    rows: list[ModelRow]
    counts: Counter[str] = field(default_factory=Counter)
    must_fail: bool = False
    may_fail: bool = False


def check_history(lake: Lake, seed: int, engine: EngineName, as_source: AsSource = lambda rows: rows) -> None:
    """Run a random history on an engine, and compare it with the model after every step."""
    History(lake, Random(seed), engine, as_source).run()


class History:
    """One history in progress."""

    def __init__(
        self,
        lake: Lake,
        random: Random,
        engine: EngineName,
        as_source: AsSource,
        name: str = "t.t",
        location: str | None = None,
    ) -> None:
        self.random, self.engine, self.as_source = random, engine, as_source
        self.version = random.choice((1, 2, 3, 3))
        self.modes = ["copy-on-write", "auto", *(["merge-on-read"] * 2 if self.version > 1 else [])]
        self.kind = random.choice(sorted(KEYS))
        self.table = lake.create_table(
            name,
            f"id {self.kind}, k string, b long, c string, s struct<x long, y string>",
            partition_by=random.choice(([], ["b"], ["bucket(3, b)"], ["truncate(2, k)"])),
            format_version=self.version,
            location=location,
        )
        self.rows: list[ModelRow] = []
        self.has_n = False

    def run(self) -> None:
        for _ in range(self.random.randint(0, 3)):
            self._append()
        for step in range(self.random.randint(2, 4)):
            if self.random.random() < 0.2:
                self._evolve(step)
            if self.random.random() < 0.2:
                self._append()
            self._change()

    def _change(self) -> None:
        if self.random.random() < 0.7:
            merge = random_merge(self)
            self._check(expect_merge(self.rows, merge, self.default), lambda mode: self._merge(merge, mode), merge)
            return
        where = self.random.choice(OF_TABLE)
        values = random_values(self.random, OF_TABLE_VALUES) if self.random.random() < 0.5 else None
        if values is None:
            self._check(expect_change(self.rows, where, None), lambda mode: self._delete(where, mode), where)
        else:
            self._check(
                expect_change(self.rows, where, values), lambda mode: self._update(values, where, mode), (where, values)
            )

    def _merge(self, merge: MergeCase, mode: str) -> ChangeResult:
        rows = self.as_source(pa.Table.from_pylist(merge.source, source_schema(self)))
        building = self.table.merge(rows, merge.on, mode=mode, engine=self.engine)
        for clause in merge.clauses:
            condition = clause.condition.given if clause.condition else None
            begun = getattr(building, f"when_{clause.when}")(condition)
            if clause.effect == "delete":
                building = begun.delete()
            elif clause.values is None:
                building = getattr(begun, f"{clause.effect}_all")()
            else:
                building = getattr(begun, clause.effect)(given_of(clause.values))
        done: ChangeResult = building.execute()
        return done

    def _delete(self, where: Expression, mode: str) -> ChangeResult:
        return self.table.delete(without_sides(where.given), mode=mode, engine=self.engine)

    def _update(self, values: dict[str, Expression], where: Expression, mode: str) -> ChangeResult:
        given = {name: without_sides(value) for name, value in given_of(values).items()}
        return self.table.update(given, without_sides(where.given), mode=mode, engine=self.engine)

    def _check(self, expected: Expected, run: Callable[[str], ChangeResult], what: object) -> None:
        mode = self.random.choice(self.modes)
        before = self._head()
        done, error = _attempt(run, mode)
        if done is None:
            assert expected.may_fail, f"{error} from {what}"
            assert "source rows match" in str(error)
            assert self._head() == before
            return
        assert not expected.must_fail, what
        counts = {name: getattr(done, f"rows_{name}") for name in ("updated", "deleted", "inserted")}
        assert counts == {name: expected.counts[name] for name in counts}, what
        if "matched" in expected.counts:
            assert done.rows_matched == expected.counts["matched"], what
        changes_nothing = not any(counts.values())
        assert (self._head() == before) is changes_nothing
        self.rows = expected.rows
        self._compare((mode, what))

    def _head(self) -> int | None:
        return self.table.scan().snapshot_id

    def _append(self) -> None:
        rows = random_rows(self, self.random.randint(1, 12))
        self.table.append(pa.Table.from_pylist(rows, arrow_schema(self.table.schema)))
        self.rows += [ModelRow(row) for row in rows]
        self._compare("append")

    def _evolve(self, step: int) -> None:
        if self.has_n:
            with self.table.evolve() as change:
                change.add_partition_field(f"bucket({step + 2}, c)", name=f"p{step}")
            return
        with self.table.evolve() as change:
            if self.version >= 3:
                change.add_column("n", "long", default=7)
            else:
                change.add_column("n", "long")
        self.has_n = True
        for row in self.rows:
            row.values = {**row.values, "n": self.default}

    @property
    def default(self) -> int | None:
        """The default of the column that is added."""
        return 7 if self.version >= 3 else None

    def _compare(self, what: object) -> None:
        """Compare the rows of the table and their lineage with the model, and remember the ids of new rows."""
        names = [f.name for f in self.table.schema.fields]
        found = self.table.scan(select=[*names, *(LINEAGE if self.version >= 3 else ())]).to_arrow().read_all()
        actual = [ModelRow(row, *(row.pop(name, None) for name in LINEAGE)) for row in found.to_pylist()]
        assert Counter(shown(row) for row in actual) == Counter(shown(row) for row in self.rows), what
        if self.version < 3:
            return
        ids = [row.row_id for row in actual]
        assert None not in ids, what
        assert len(set(ids)) == len(ids), what
        newest = self.table.metadata.last_sequence_number
        for row in self.rows:
            row.updated = newest if row.updated is None else row.updated
        known = {row.row_id: (shown(row), row.updated) for row in self.rows if row.row_id is not None}
        now = {row.row_id: (shown(row), row.updated) for row in actual}
        assert known.items() <= now.items(), what
        assert {row.updated for row in actual if row.row_id not in known} <= {newest}, what
        fresh: dict[str, list[int | None]] = {}
        for row in actual:
            if row.row_id not in known:
                fresh.setdefault(shown(row), []).append(row.row_id)
        for row in self.rows:
            row.row_id = fresh[shown(row)].pop() if row.row_id is None else row.row_id


def _attempt(run: Callable[[str], ChangeResult], mode: str) -> tuple[ChangeResult | None, InvalidInput | None]:
    try:
        return run(mode), None
    except InvalidInput as error:
        return None, error


def shown(row: ModelRow) -> str:
    """Return the values of a row, so that NaN equals NaN and -0.0 differs from 0.0."""
    return repr(sorted(row.values.items()))


def expect_change(rows: list[ModelRow], where: Expression, values: dict[str, Expression] | None) -> Expected:
    """Return what UPDATE, or DELETE without values, must do."""
    expected = Expected([])
    for row in rows:
        if where.evaluate(row.values, {}) is not True:
            expected.rows.append(row)
        elif values is None:
            expected.counts["deleted"] += 1
        else:
            expected.counts["updated"] += 1
            expected.rows.append(ModelRow(updated(row.values, {}, values), row.row_id))
    return expected


def expect_merge(rows: list[ModelRow], merge: MergeCase, default: object) -> Expected:
    """Return what a MERGE must do."""
    expected, paired = Expected([]), set[int]()
    matched = [clause for clause in merge.clauses if clause.when == "matched"]
    refuses = bool(matched) and not (len(matched) == 1 and matched[0].effect == "delete" and not matched[0].condition)
    has_inserts = any(clause.when == "not_matched" for clause in merge.clauses)
    for row in rows:
        pairs = [at for at, source in enumerate(merge.source) if matches(row.values, source, merge)]
        paired.update(pairs)
        source = merge.source[pairs[0]] if pairs else {}
        clause = chosen(merge, "matched" if pairs else "not_matched_by_source", row.values, source)
        if len(pairs) > 1 and refuses:
            expected.may_fail = True
            # Without inserts, rows that no clause can change need not be read.
            expected.must_fail |= has_inserts or any(
                chosen(merge, "matched", row.values, merge.source[at]) for at in pairs
            )
        if pairs and has_inserts:
            expected.counts["matched"] += 1
        if clause is None:
            expected.rows.append(row)
        elif clause.effect == "delete":
            expected.counts["deleted"] += 1
        else:
            expected.counts["updated"] += 1
            expected.rows.append(ModelRow(updated(row.values, source, clause.values), row.row_id))
    for at, source in enumerate(merge.source):
        clause = None if at in paired else chosen(merge, "not_matched", {}, source)
        if clause is not None:
            expected.counts["inserted"] += 1
            expected.rows.append(ModelRow(inserted(source, clause.values, default)))
    return expected


def matches(row: Values, source: Values, merge: MergeCase) -> bool:
    """Return whether ON is true."""
    if not all(equal(row[name], source[name]) for name in merge.keys):
        return False
    return merge.rest is None or merge.rest.evaluate(row, source) is True


def chosen(merge: MergeCase, when: str, row: Values, source: Values) -> ClauseCase | None:
    """Return the first clause whose condition is true."""
    for clause in merge.clauses:
        if clause.when == when and (clause.condition is None or clause.condition.evaluate(row, source) is True):
            return clause
    return None


def updated(row: Values, source: Values, values: dict[str, Expression] | None) -> Values:
    """Return a row with new values."""
    if values is None:
        return {name: source[name] for name in row}
    new = dict(row)
    for name, expression in values.items():
        column, _, inner = name.partition(".")
        value = expression.evaluate(row, source)
        # As in Spark, a null struct becomes one whose other fields are null.
        new[column] = {**(new[column] or {"x": None, "y": None}), inner: value} if inner else value
    return new


def inserted(source: Values, values: dict[str, Expression] | None, default: object) -> Values:
    """Return a new row."""
    names = [name for name in source if name != "op"]
    if values is None:
        return {name: source[name] for name in names}
    given = {name: expression.evaluate({}, source) for name, expression in values.items()}
    return {name: given.get(name, default if name == "n" else None) for name in names}


def random_rows(history: History, count: int) -> list[Values]:
    """Return rows with few different keys, so that many match, and with nulls."""
    random = history.random
    return [
        {
            "id": random.choice((*KEYS[history.kind], None)),
            "k": random.choice(("k", "kk", None)),
            "b": random.choice((0, 1, 2, 3, None)),
            "c": random.choice(("p", "q", "r", None)),
            "s": random.choice(({"x": 1, "y": "one"}, {"x": None, "y": "two"}, None)),
            **({"n": random.choice((1, None))} if history.has_n else {}),
        }
        for _ in range(count)
    ]


def source_schema(history: History) -> pa.Schema:
    """Return the columns of sources: those of the table, and one more."""
    return pa.schema([*arrow_schema(history.table.schema), pa.field("op", pa.string())])


def random_merge(history: History) -> MergeCase:
    """Return a MERGE with clauses of every kind."""
    random = history.random
    source = [{**row, "op": random.choice(("i", "u", "d"))} for row in random_rows(history, random.randint(0, 7))]
    if random.random() < 0.7:
        # Mostly one row for each key, since two that match are an error.
        source = list({repr(abs(row["id"]) if row["id"] == 0 else row["id"]): row for row in source}.values())
    keys, rest, on = random.choice(ONS)
    clauses = list(_random_clauses(random))
    return MergeCase(source, on, keys, rest, clauses)


def _random_clauses(random: Random) -> Iterator[ClauseCase]:
    kinds = [
        ("matched", OF_BOTH, OF_BOTH_VALUES, ("update", "delete", "update")),
        ("not_matched", OF_SOURCE, OF_SOURCE_VALUES, ("insert",)),
        ("not_matched_by_source", OF_TABLE, OF_TABLE_VALUES, ("update", "delete")),
    ]
    counts = [random.choice((0, 1, 1, 2)), random.choice((0, 1, 1, 2)), random.choice((0, 0, 0, 1, 2))]
    if not any(counts):
        counts[0] = 1
    for (when, conditions, values, effects), count in zip(kinds, counts, strict=True):
        for number in range(count):
            effect = random.choice(effects)
            condition = random.choice(conditions) if number < count - 1 or random.random() < 0.5 else None
            chosen_values = None if effect == "delete" else random_values(random, values)
            if effect != "delete" and when != "not_matched_by_source" and random.random() < 0.4:
                chosen_values = None
            elif effect == "insert":
                chosen_values = {"id": Expression("source.id", lambda t, s: s["id"]), **(chosen_values or {})}
            yield ClauseCase(when, effect, condition, chosen_values)


def random_values(random: Random, known: dict[str, list[Expression]]) -> dict[str, Expression]:
    """Choose some columns and their new values."""
    names = random.sample(sorted(known), random.randint(1, len(known)))
    if "s" in names:
        names = [name for name in names if not name.startswith("s.")]
    return {name: random.choice(known[name]) for name in names}


def given_of(values: dict[str, Expression]) -> Values:
    """Return the values as a caller gives them."""
    return {name: expression.given for name, expression in values.items()}


def without_sides(given: Any) -> Any:
    """Return an expression for a change without a source."""
    return given.replace("target.", "") if isinstance(given, str) else given


def equal(left: Any, right: Any) -> bool | None:
    """Compare as SQL's `=`."""
    if left is None or right is None:
        return None
    return bool(left == right or (left != left and right != right))


def less(left: Any, right: Any) -> bool | None:
    return None if left is None or right is None else left < right


def plus(left: Any, right: Any) -> Any:
    return None if left is None or right is None else left + right


def either(left: bool | None, right: bool | None) -> bool | None:
    return True if left or right else None if left is None or right is None else False


def negated(value: bool | None) -> bool | None:
    return None if value is None else not value


def x_of(row: Values) -> Any:
    return row["s"]["x"] if row["s"] else None


ONS: list[tuple[tuple[str, ...], Expression | None, Any]] = [
    (("id",), None, ["id"]),
    (("id", "k"), None, ["id", "k"]),
    (("id",), None, "target.id = source.id"),
    (
        ("id",),
        Expression(None, lambda t, s: negated(less(t["b"], 1))),
        "target.id = source.id AND target.b >= 1",
    ),
    (
        ("id",),
        Expression(None, lambda t, s: either(equal(t["c"], s["c"]), equal(s["op"], "u"))),
        "(target.c = source.c OR source.op = 'u') AND source.id = target.id",
    ),
]
OF_BOTH = [
    Expression("source.op = 'd'", lambda t, s: s["op"] == "d"),
    Expression("target.b < source.b", lambda t, s: less(t["b"], s["b"])),
    Expression("source.c IS NULL", lambda t, s: s["c"] is None),
    Expression("target.c = 'p' OR source.b > 1", lambda t, s: either(equal(t["c"], "p"), less(1, s["b"]))),
    Expression("target.b >= 1", lambda t, s: negated(less(t["b"], 1))),
]
OF_SOURCE = [
    Expression("source.op <> 'd'", lambda t, s: s["op"] != "d"),
    Expression("source.b > 0", lambda t, s: less(0, s["b"])),
    Expression("source.c IS NOT NULL", lambda t, s: s["c"] is not None),
]
OF_TABLE = [
    Expression("target.b = 0", lambda t, s: equal(t["b"], 0)),
    Expression("target.c IN ('p', 'q')", lambda t, s: None if t["c"] is None else t["c"] in ("p", "q")),
    Expression("target.s.x IS NULL", lambda t, s: x_of(t) is None),
    Expression("target.b + 1 = 2", lambda t, s: equal(t["b"], 1)),
    Expression("NOT (target.c = 'r')", lambda t, s: negated(equal(t["c"], "r"))),
]
OF_BOTH_VALUES = {
    "b": [
        Expression("source.b", lambda t, s: s["b"]),
        Expression("target.b + source.b", lambda t, s: plus(t["b"], s["b"])),
        Expression("coalesce(source.b, target.b)", lambda t, s: t["b"] if s["b"] is None else s["b"]),
        Expression(7, lambda t, s: 7),
    ],
    "c": [
        Expression("source.c", lambda t, s: s["c"]),
        Expression(lit("it's"), lambda t, s: "it's"),
        Expression(None, lambda t, s: None),
        Expression(
            "CASE WHEN source.op = 'u' THEN 'up' ELSE target.c END", lambda t, s: "up" if s["op"] == "u" else t["c"]
        ),
    ],
    "k": [Expression("target.c", lambda t, s: t["c"])],
    "s": [Expression("source.s", lambda t, s: s["s"]), Expression(None, lambda t, s: None)],
    "s.x": [Expression("source.b", lambda t, s: s["b"]), Expression("target.b", lambda t, s: t["b"])],
    "s.y": [Expression("source.c", lambda t, s: s["c"])],
}
OF_SOURCE_VALUES = {
    "b": [Expression("source.b", lambda t, s: s["b"]), Expression(3, lambda t, s: 3)],
    "c": [Expression("source.op", lambda t, s: s["op"]), Expression(None, lambda t, s: None)],
    "k": [Expression("source.k", lambda t, s: s["k"])],
    "s": [Expression("source.s", lambda t, s: s["s"])],
}
OF_TABLE_VALUES = {
    "b": [Expression("target.b + 1", lambda t, s: plus(t["b"], 1)), Expression(0, lambda t, s: 0)],
    "c": [Expression(lit("alone"), lambda t, s: "alone")],
    "s.x": [Expression(5, lambda t, s: 5)],
    "k": [Expression("coalesce(target.c, 'none')", lambda t, s: t["c"] if t["c"] is not None else "none")],
}
