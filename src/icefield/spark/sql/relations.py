"""The names of relations that Spark's parser finds in a query, by its plan."""

import json
from collections.abc import Iterator, Sequence
from typing import Any


def find_relations(spark: Any, text: str) -> list[str]:
    """Return the names of relations that Spark's parser finds in a query, each as `[a, b]`."""
    parser = spark._jsparkSession.sessionState().sqlParser()  # noqa: SLF001 - pyspark has no other way to it
    return list(_names_in(json.loads(parser.parsePlan(text).toJSON())))


def _names_in(value: Any, children: Sequence[Any] = ()) -> Iterator[str]:
    """Yield the names in a plan, its common table expressions and its subqueries.

    A tree is the list of its nodes, each before its children. A field of a node may have a child once more, as the
    branches of CASE and the condition of FILTER do. children: those of the node that a value is a field of.
    """
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list) or value in children:
        return
    if not _is_tree(value):
        for each in value:
            yield from _names_in(each, children)
        return
    sizes = _sizes(value)
    for at, node in enumerate(value):
        if node["class"].endswith(".UnresolvedRelation"):
            yield str(node["multipartIdentifier"])
        fields = [each for each in node.values() if isinstance(each, dict | list)]
        below = _children(value, at, sizes) if fields else []
        for each in fields:
            yield from _names_in(each, below)


def _is_tree(value: list[Any]) -> bool:
    return bool(value) and isinstance(value[0], dict) and "num-children" in value[0]


def _sizes(nodes: list[Any]) -> list[int]:
    """Return how many nodes each node and those below it are."""
    sizes = [1] * len(nodes)
    for at in reversed(range(len(nodes))):
        for _ in range(nodes[at]["num-children"]):
            sizes[at] += sizes[at + sizes[at]]
    return sizes


def _children(nodes: list[Any], at: int, sizes: Sequence[int]) -> list[list[Any]]:
    """Return the trees below a node."""
    found, start = [], at + 1
    for _ in range(nodes[at]["num-children"]):
        found.append(nodes[start : start + sizes[start]])
        start += sizes[start]
    return found
