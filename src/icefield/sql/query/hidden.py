"""Metadata columns of rows in queries: `_file`, `_pos`, `_partition` and others.

    SELECT *, _file FROM shop.orders  ->  SELECT * EXCEPT (_file), _file FROM <orders with _file>

A table has them only where a query names them, and `*` does not show them, as in Iceberg's Spark runtime.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from icefield.errors import Unsupported
from icefield.plan.partition.values import partition_fields
from icefield.sql.query.references import Reference
from icefield.sql.text.rewrite import Edit
from icefield.sql.text.shape import Mention, Qualified, Scope, Shape, Star
from icefield.types.metadata_columns import with_metadata_columns


def with_hidden_columns(reference: Reference, shape: Shape) -> Reference:
    """Return a reference that reads the metadata columns of its table that the query names.

    Raises Unsupported in a natural join, which would compare them.
    """
    if not reference.is_table or reference.table is None:
        return reference
    hidden = _hidden_of(reference)
    wanted = sorted({found for name in shape.qualified for found in _named(name, reference.mention, hidden)})
    if not wanted:
        return reference
    if reference.mention.scope.is_natural:
        raise reference.mention.place.error(
            f"cannot read the metadata column {wanted[0]} in a natural join",
            hint="Name the columns of the join: USING (...)",
            kind=Unsupported,
        )
    return replace(reference, columns=[*reference.version.schema.column_names, *wanted])


def edits_of_stars(shape: Shape, references: Sequence[Reference]) -> Iterator[Edit]:
    """Yield edits that leave metadata columns out of `*`."""
    for star in shape.stars:
        shown = sorted({name for each in references if _is_in(star, each.mention) for name in _added_to(each)})
        if shown and star.excepts is not None:
            yield Edit(star.excepts, star.excepts, f"{', '.join(shown)}, ")
        elif shown:
            yield Edit(star.token.end, star.token.end, f" EXCEPT ({', '.join(shown)})")


def _hidden_of(reference: Reference) -> frozenset[str]:
    """Return the names of metadata columns that the columns of the table leave free."""
    assert reference.table is not None
    schema = reference.version.schema
    readable = with_metadata_columns(schema, partition_fields(reference.table.commit_head.load().metadata))
    return frozenset(readable.column_names) - frozenset(schema.column_names)


def _added_to(reference: Reference) -> frozenset[str]:
    if reference.columns is None:
        return frozenset()
    return frozenset(reference.columns) - frozenset(reference.version.schema.column_names)


def _named(name: Qualified, mention: Mention, hidden: frozenset[str]) -> Iterator[str]:
    parts = tuple(token.name.lower() for token in name.tokens)
    if parts[0] in hidden and _nearest(name.scope) is mention.scope:
        yield parts[0]
    for width in range(1, len(parts)):
        if parts[width] in hidden and _is_called(mention, parts[:width]):
            yield parts[width]


def _is_in(star: Star, mention: Mention) -> bool:
    return star.scope is mention.scope and (not star.owner or _is_called(mention, star.owner))


def _is_called(mention: Mention, parts: tuple[str, ...]) -> bool:
    if mention.alias is not None:
        return parts == (mention.alias.lower(),)
    return tuple(part.lower() for part in mention.parts)[-len(parts) :] == parts


def _nearest(scope: Scope) -> Scope:
    """Return the scope itself, or the nearest one around it that reads a relation."""
    while not scope.mentions and not scope.aliases and scope.outer is not None:
        scope = scope.outer
    return scope
