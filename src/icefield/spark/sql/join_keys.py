"""Which tables of an optimised plan are joined by a column: rows of one matter only if the other one has their key.

    Join Inner (id = order_id)              rows of orders matter only if their id is an order_id of the items that
      Project / Filter / orders             pass the filter above items, and the other way round
      Project / Filter / items

A column is followed from the join down to its table through nodes that only drop rows. In an outer join, rows of the
side that is kept whole are never dropped.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from icefield.engine.queries.probe import ExpressionJson, Keys
from icefield.types.schema import Schema

# Whether keys of the other side restrict the left side, and the right side.
_RESTRICTED = {
    "Inner": (True, True),
    "Cross": (True, True),
    "LeftSemi": (True, True),
    "LeftOuter": (False, True),
    "LeftAnti": (False, True),
    "RightOuter": (True, False),
}
# Into which sides a column can be followed so that dropping rows there drops only their rows of the result.
_FOLLOWED = {
    "Inner": (0, 1),
    "Cross": (0, 1),
    "LeftSemi": (0,),
    "LeftOuter": (0,),
    "LeftAnti": (0,),
    "RightOuter": (1,),
}


@dataclass(frozen=True)
class PlanNode:
    """A node of a plan. occurrence, table: of a placeholder."""

    kind: str
    plan: Any
    children: tuple["PlanNode", ...]
    occurrence: int | None = None
    table: int | None = None


@dataclass(frozen=True)
class _Attribute:
    """A column in a plan: its name as written, and its number."""

    name: str
    number: int


def find_keys(root: PlanNode, schemas: Sequence[Schema]) -> Iterator[Keys]:
    """Find the columns by which tables are joined."""
    if root.kind == "Join":
        restricted = _RESTRICTED.get(_join_type(root), (False, False))
        for columns in _equal_columns(root) if any(restricted) else ():
            for left, right in (columns, columns[::-1]):
                found = _origin(root.children[0], left, schemas), _origin(root.children[1], right, schemas)
                if found[0] is not None and found[1] is not None:
                    if restricted[0]:
                        yield Keys(*found[0], *found[1])
                    if restricted[1]:
                        yield Keys(*found[1], *found[0])
    for child in root.children:
        yield from find_keys(child, schemas)


def _join_type(join: PlanNode) -> str:
    return str(join.plan.joinType().toString())


def _equal_columns(join: PlanNode) -> Iterator[tuple[_Attribute, _Attribute]]:
    """Yield the pairs of columns that are equal by a conjunct of a join's condition."""
    condition = join.plan.condition()
    if not condition.isDefined():
        return
    nodes: ExpressionJson = json.loads(condition.get().toJSON())
    kinds = [str(node["class"]).rpartition(".")[2] for node in nodes]
    pending, at = 1, 0
    while pending:
        if kinds[at] == "And":
            pending, at = pending + 1, at + 1
            continue
        if kinds[at : at + 3] == ["EqualTo", "AttributeReference", "AttributeReference"]:
            yield _attribute(nodes[at + 1]), _attribute(nodes[at + 2])
        pending, at = pending - 1, _end_of(nodes, at)


def _end_of(nodes: ExpressionJson, at: int) -> int:
    """Return the index after an expression."""
    left = 1
    while left:
        left += int(nodes[at]["num-children"]) - 1
        at += 1
    return at


def _attribute(node: dict[str, Any]) -> _Attribute:
    return _Attribute(str(node["name"]), int(node["exprId"]["id"]))


def _origin(node: PlanNode, column: _Attribute, schemas: Sequence[Schema]) -> tuple[int, str] | None:
    """Follow a column down to its table. Return the occurrence of the table, and the name of the column there."""
    match node.kind:
        case "Filter":
            return _origin(node.children[0], column, schemas)
        case "Project":
            below = _below(node.plan.projectList(), column)
        case "Aggregate":
            grouping = {int(each.exprId().id()) for each in _items(node.plan.groupingExpressions()) if _is_plain(each)}
            below = _below(node.plan.aggregateExpressions(), column)
            below = below if below is not None and below.number in grouping else None
        case "Join":
            sides = [node.children[side] for side in _FOLLOWED.get(_join_type(node), ())]
            found = [_origin(side, column, schemas) for side in sides]
            return next((each for each in found if each is not None), None)
        case _:
            return _in_table(node, column, schemas)
    return None if below is None else _origin(node.children[0], below, schemas)


def _below(expressions: Any, column: _Attribute) -> _Attribute | None:
    """Return what a column is below a list of expressions: the column itself, or the one that it is an alias of."""
    for each in _items(expressions):
        if int(each.exprId().id()) == column.number:
            inner = each.child() if each.nodeName() == "Alias" else each
            return _Attribute(inner.name(), int(inner.exprId().id())) if _is_plain(inner) else None
    return None


def _in_table(node: PlanNode, column: _Attribute, schemas: Sequence[Schema]) -> tuple[int, str] | None:
    if node.occurrence is None or node.table is None:
        return None
    names = [field.name for field in schemas[node.table].fields]
    places = [at for at, name in enumerate(names) if name.lower() == column.name.lower()]
    if len(places) != 1 or int(node.plan.output().apply(places[0]).exprId().id()) != column.number:
        return None
    return node.occurrence, names[places[0]]


def _is_plain(expression: Any) -> bool:
    return bool(expression.nodeName() == "AttributeReference")


def _items(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(at) for at in range(sequence.size()))
