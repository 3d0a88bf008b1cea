"""Random DELETE, UPDATE and MERGE statements against a model of rows, without a JVM.

Each statement is written with random names of its tables, quotes, case, comments and parameters, which must not matter.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import icefield
from icefield.ambient import SeededAmbient
from icefield.errors import InvalidInput
from icefield.lake import Lake
from tests.sql.changing import counts

Row = tuple[int | None, int | None, str | None]
Sides = dict[str, Row]  # by side: `t` for the table, `s` for the source

COLUMNS = ("k", "v", "name")
SCHEMA = "k int, v int, name string"
STRINGS = (None, "", "a", "it's", "b; -- c", "`", "?")

numbers = st.one_of(st.none(), st.integers(-2, 3))
rows = st.tuples(numbers, numbers, st.sampled_from(STRINGS))


@dataclass(frozen=True)
class Expression:
    """An expression: how it is written, given how columns are written, and its value for a row of each side."""

    text: Callable[[Callable[[str, str], str]], str]
    value: Callable[[Sides], Any]


def sql(value: int | str | None) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return "NULL" if value is None else str(value)


def comparison(side: str, column: str, operator: str, literal: Any) -> Expression:
    at = COLUMNS.index(column)

    def value(sides: Sides) -> bool | None:
        left = sides[side][at]
        if left is None or literal is None:
            return None
        outcome = {"=": left == literal, "<": left < literal, ">=": left >= literal, "<>": left != literal}
        return bool(outcome[operator])

    return Expression(lambda name: f"{name(side, column)} {operator} {sql(literal)}", value)


def is_null(side: str, column: str) -> Expression:
    at = COLUMNS.index(column)
    return Expression(lambda name: f"{name(side, column)} IS NULL", lambda sides: sides[side][at] is None)


def joined(word: str, left: Expression, right: Expression) -> Expression:
    absorbing = word == "OR"

    def value(sides: Sides) -> bool | None:
        found = [left.value(sides), right.value(sides)]
        if absorbing in found:
            return absorbing
        return None if None in found else not absorbing

    return Expression(lambda name: f"({left.text(name)} {word} {right.text(name)})", value)


def negated(inner: Expression) -> Expression:
    def value(sides: Sides) -> bool | None:
        found = inner.value(sides)
        return None if found is None else not found

    return Expression(lambda name: f"NOT ({inner.text(name)})", value)


def conditions(*sides: str) -> st.SearchStrategy[Expression]:
    side = st.sampled_from(sides)
    leaf = st.one_of(
        st.builds(comparison, side, st.sampled_from(("k", "v")), st.sampled_from(("=", "<", ">=", "<>")), numbers),
        st.builds(comparison, side, st.just("name"), st.sampled_from(("=", "<>")), st.sampled_from(STRINGS)),
        st.builds(is_null, side, st.sampled_from(COLUMNS)),
    )
    return st.recursive(
        leaf,
        lambda inner: st.one_of(st.builds(joined, st.sampled_from(("AND", "OR")), inner, inner), inner.map(negated)),
        max_leaves=4,
    )


def column_value(side: str, column: str) -> Expression:
    at = COLUMNS.index(column)
    return Expression(lambda name: name(side, column), lambda sides: sides[side][at])


def sum_value(side: str, column: str, number: int) -> Expression:
    at = COLUMNS.index(column)

    def value(sides: Sides) -> Any:
        found = sides[side][at]
        return None if found is None else found + number  # type: ignore[operator]

    return Expression(lambda name: f"{name(side, column)} + {number}", value)


def literal_value(value: int | str | None) -> Expression:
    return Expression(lambda _name: sql(value), lambda _sides: value)


def values(column: str, *sides: str) -> st.SearchStrategy[Expression]:
    side = st.sampled_from(sides)
    if column == "name":
        return st.one_of(st.builds(column_value, side, st.just("name")), st.sampled_from(STRINGS).map(literal_value))
    number = st.sampled_from(("k", "v"))
    return st.one_of(
        st.builds(column_value, side, number),
        st.builds(sum_value, side, number, st.integers(0, 5)),
        numbers.map(literal_value),
    )


def assignments(*sides: str) -> st.SearchStrategy[dict[str, Expression]]:
    chosen = st.fixed_dictionaries({}, optional={column: values(column, *sides) for column in COLUMNS})
    return chosen.filter(bool)


@dataclass(frozen=True)
class Clause:
    """A WHEN clause. assigned: None to delete."""

    when: str
    condition: Expression | None
    assigned: dict[str, Expression] | None


def clauses(when: str, *sides: str, inserts: bool = False) -> st.SearchStrategy[list[Clause]]:
    given_values = assignments(*sides)
    effect = given_values if inserts else st.one_of(st.none(), given_values)
    some = st.lists(st.builds(Clause, st.just(when), conditions(*sides), effect), max_size=2)
    last = st.lists(st.builds(Clause, st.just(when), st.none(), effect), max_size=1)
    return st.builds(lambda first, end: [*first, *end], some, last)


@dataclass
class Names:
    """How a statement writes the names of columns: chosen again for each of them."""

    draw: Any
    labels: dict[str, str]
    can_be_bare: bool
    written: list[str] = field(default_factory=list)

    def __call__(self, side: str, column: str) -> str:
        label = self.labels[side]
        options = [f"{label}.{column}", f"{label}.`{column}`", f"{label} . /* {label}.x */ {column.upper()}"]
        if self.can_be_bare:
            options += [column, f"`{column}`"]
        return str(self.draw(st.sampled_from(options)))


def lake_with(target: Sequence[Row], source: Sequence[Row] = ()) -> Lake:
    lake = icefield.connect("memory:", ambient=SeededAmbient(7))
    for name, content in (("shop.target", target), ("shop.source", source)):
        columns = [pa.array([row[at] for row in content], pa.string() if at == 2 else pa.int32()) for at in range(3)]
        # Two files, so that a statement prunes, drops and rewrites.
        table, data = lake.create_table(name, SCHEMA), pa.table(columns, names=COLUMNS)
        table.append(data.slice(0, len(content) // 2))
        table.append(data.slice(len(content) // 2))
    return lake


def contents(lake: Lake) -> Counter[Row]:
    found = lake.table("shop.target").scan().to_arrow().read_all().to_pylist()
    return Counter(tuple(row.values()) for row in found)


def changed(row: Row, assigned: dict[str, Expression], sides: Sides) -> Row:
    new = [assigned[column].value(sides) if column in assigned else row[at] for at, column in enumerate(COLUMNS)]
    return tuple(new)  # type: ignore[return-value]


@given(
    st.lists(rows, max_size=8), st.one_of(st.none(), conditions("t")), st.one_of(st.none(), assignments("t")), st.data()
)
def test_delete_and_update_do_what_the_model_does(
    target: list[Row], where: Expression | None, assigned: dict[str, Expression] | None, data: st.DataObject
) -> None:
    alias, label = data.draw(st.sampled_from((("", "target"), ("", "shop.target"), ("AS x", "x"), ("`t t`", "`t t`"))))
    name = Names(data.draw, {"t": label}, can_be_bare=True)
    end = "" if where is None else f" WHERE {where.text(name)}"
    sets = ", ".join(f"{column} = {each.text(name)}" for column, each in (assigned or {}).items())
    head = f"DELETE FROM shop.target {alias}" if assigned is None else f"UPDATE shop.target {alias} SET {sets}"
    expected, matched = Counter[Row](), 0
    for row in target:
        if where is not None and where.value({"t": row}) is not True:
            expected[row] += 1
            continue
        matched += 1
        if assigned is not None:
            expected[changed(row, assigned, {"t": row})] += 1
    with lake_with(target) as lake:
        done = counts(lake, head + end)
        assert contents(lake) == expected
    assert done.get("deleted" if assigned is None else "updated", 0) == matched


@dataclass
class Model:
    """What a MERGE makes of rows. fails: a row of the table matches two source rows."""

    rows: Counter[Row] = field(default_factory=Counter)
    updated: int = 0
    deleted: int = 0
    inserted: int = 0
    fails: bool = False

    def change(self, row: Row, applied: Clause | None, sides: Sides) -> None:
        if applied is None:
            self.rows[row] += 1
        elif applied.assigned is None:
            self.deleted += 1
        else:
            self.rows[changed(row, applied.assigned, sides)] += 1
            self.updated += 1


def first(some: Sequence[Clause], sides: Sides) -> Clause | None:
    return next((c for c in some if c.condition is None or c.condition.value(sides) is True), None)


def merged(target: Sequence[Row], source: Sequence[Row], on: Expression | None, parts: Sequence[list[Clause]]) -> Model:
    matched, not_matched, by_source = parts
    model, met = Model(), set[int]()
    for row in target:
        found = [
            at
            for at, other in enumerate(source)
            if row[0] is not None and row[0] == other[0] and (on is None or on.value({"t": row, "s": other}) is True)
        ]
        met.update(found)
        if not found:
            model.change(row, first(by_source, {"t": row}), {"t": row})
            continue
        deletes_all = len(matched) == 1 and matched[0].assigned is None and matched[0].condition is None
        model.fails |= len(found) > 1 and bool(matched) and not deletes_all
        sides = {"t": row, "s": source[found[0]]}
        model.change(row, first(matched, sides), sides)
    for at, other in enumerate(source):
        applied = first(not_matched, {"s": other}) if at not in met else None
        if applied is not None and applied.assigned is not None:
            model.rows[changed((None, None, None), applied.assigned, {"s": other})] += 1
            model.inserted += 1
    return model


@given(
    st.lists(rows, max_size=7),
    st.lists(rows, max_size=5),
    st.one_of(st.none(), conditions("t", "s")),
    st.tuples(
        clauses("MATCHED", "t", "s"),
        clauses("NOT MATCHED", "s", inserts=True),
        clauses("NOT MATCHED BY SOURCE", "t"),
    ).filter(any),
    st.data(),
)
def test_merge_does_what_the_model_does(
    target: list[Row],
    source: list[Row],
    on: Expression | None,
    parts: tuple[list[Clause], list[Clause], list[Clause]],
    data: st.DataObject,
) -> None:
    aliases = data.draw(st.sampled_from((("", ""), ("t", "AS s"), ("AS `s`", "`t;`"))))
    labels = {
        "t": aliases[0].removeprefix("AS ") or data.draw(st.sampled_from(("target", "shop.target"))),
        "s": aliases[1].removeprefix("AS ") or data.draw(st.sampled_from(("source", "shop.source"))),
    }
    name = Names(data.draw, labels, can_be_bare=False)
    keys = data.draw(st.sampled_from((("t", "s"), ("s", "t"))))
    more = "" if on is None else f" AND {on.text(name)}"
    written = "\n".join(_written(clause, name) for some in parts for clause in some)
    text = (
        f"MERGE INTO shop.target {aliases[0]} USING shop.source {aliases[1]} "
        f"ON {name(keys[0], 'k')} = {name(keys[1], 'k')}{more}\n{written}"
    )
    model = merged(target, source, on, parts)
    with lake_with(target, source) as lake:
        if model.fails:
            with pytest.raises(InvalidInput):
                counts(lake, text)
            assert contents(lake) == Counter(target)
            return
        done = counts(lake, text)
        assert contents(lake) == model.rows
    assert {key: done.get(key, 0) for key in ("updated", "deleted", "inserted")} == {
        "updated": model.updated,
        "deleted": model.deleted,
        "inserted": model.inserted,
    }


def _written(clause: Clause, name: Names) -> str:
    condition = "" if clause.condition is None else f" AND {clause.condition.text(name)}"
    head = f"WHEN {clause.when}{condition} THEN"
    if clause.assigned is None:
        return f"{head} DELETE"
    if clause.when == "NOT MATCHED":
        strings = [each.text(name) for each in clause.assigned.values()]
        return f"{head} INSERT ({', '.join(clause.assigned)}) VALUES ({', '.join(strings)})"
    return f"{head} UPDATE SET {', '.join(f'{column} = {each.text(name)}' for column, each in clause.assigned.items())}"
