"""Subqueries of row-level changes: names of tables and views of the lake, resolved once for the whole change.

    id IN (SELECT id FROM returns)     in a change of shop.orders: shop.returns, at the version of this moment

Names are resolved as in views: a name of one part is in the namespace of the changed table, and tables and views of the
lake come first. Any other name is left to Spark, which knows the temporary views of the session.
Raises InvalidInput, Unsupported.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from icefield.catalog.catalog import Catalog, check_new_table
from icefield.dml.write import TableWrite
from icefield.engine.change import Clause, Relations
from icefield.errors import InvalidInput
from icefield.expr.query.select import Parts
from icefield.expr.query.subqueries import Subqueries, has_subquery
from icefield.model.names import Namespace, TableName


def resolve_subqueries(clauses: Sequence[Clause], write: TableWrite) -> tuple[tuple[Clause, ...], Relations]:
    """Give tables and views of the lake in subqueries names that nothing else has."""
    found = {text: Subqueries(text) for clause in clauses for text in _texts(clause) if has_subquery(text)}
    if not found:
        return tuple(clauses), Relations()
    catalog, namespace = write.head.backend.catalog, write.head.name.namespace
    prefix = f"icefield_{write.ambient.random_uuid().hex}"
    known: dict[Parts, TableName] = {}
    for parts in dict.fromkeys(parts for each in found.values() for parts in each.tables):
        if (name := find_relation(catalog, parts, namespace)) is not None:
            known[parts] = name
    names = {parts: f"{prefix}_{at}" for at, parts in enumerate(known)}
    renamed = {text: each.rename(names.get) for text, each in found.items()}
    relations = Relations({names[parts]: name for parts, name in known.items()}, write.head, write.base)
    return tuple(_rewritten(clause, renamed) for clause in clauses), replace(relations, ref=write.target.ref)


def find_relation(catalog: Catalog, parts: Parts, default_namespace: Namespace) -> TableName | None:
    """Return the table or view of the lake that a name in SQL refers to; None if there is none."""
    try:
        name = resolve_relation(catalog, parts, default_namespace)
    except InvalidInput:
        return None  # such as csv.`/path`
    return None if catalog.find(name) is None else name


def resolve_relation(catalog: Catalog, parts: Parts, default_namespace: Namespace) -> TableName:
    """Return the full name of a table or view: in the default namespace, or prefixed with the name of the catalog."""
    if len(parts) == 1:
        return _name(default_namespace, parts[0])
    name = _name(parts[:-1], parts[-1])
    if len(parts) > 2 and parts[0] == catalog.name and catalog.find(name) is None:
        return _name(parts[1:-1], parts[-1])
    return name


def refuse_subqueries_of_merge(on: object, clauses: Sequence[Clause]) -> None:
    """Refuse subqueries in the conditions of a merge, as Spark does."""
    places = [("on", on), *((f"the condition of '{clause.when}'", clause.condition) for clause in clauses)]
    for place, text in places:
        if has_subquery(text):
            raise InvalidInput(
                f"cannot merge: {place} contains a subquery: {text!r}. Only values to assign may",
                hint="Join it to the source first",
            )


def _texts(clause: Clause) -> Iterator[str]:
    values = [clause.condition, *(assignment.value for assignment in clause.assignments)]
    yield from (value for value in values if isinstance(value, str))


def _rewritten(clause: Clause, renamed: dict[str, str]) -> Clause:
    def new(value: object) -> object:
        return renamed.get(value, value) if isinstance(value, str) else value

    assignments = tuple(replace(each, value=new(each.value)) for each in clause.assignments)
    return replace(clause, condition=new(clause.condition), assignments=assignments)


def _name(namespace: Namespace, last: str) -> TableName:
    name = TableName(namespace, last)
    check_new_table(name)
    return name
