"""Schema, partition and sort order changes, collected in a `with` block and committed together.

    with orders.evolve() as change:
        change.add_column("note", "string", after="id")
        change.rename_column("qty", "quantity")
        change.add_partition_field("bucket(16, id)")

Each step is checked immediately; nothing is changed if the block raises. No data file is rewritten.
Raises InvalidInput naming the rule that a step breaks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from icefield.arguments import check_arguments
from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput
from icefield.types.evolve import (
    FIRST,
    NewColumn,
    Position,
    add_column,
    drop_column,
    drop_identifier_fields,
    make_optional,
    move_column,
    rename_column,
    set_default,
    set_doc,
    set_identifier_fields,
    union_by_name,
    update_column_type,
)

with deferred_imports(__name__):
    from icefield.commit.actions.evolve import Draft, Step, shape_updates
    from icefield.engine.rows import as_schema
    from icefield.model.apply import apply
    from icefield.model.evolve_spec import add_partition_field, drop_partition_field, rename_partition_field
    from icefield.model.metadata import TableMetadata
    from icefield.model.partition import PartitionSpec
    from icefield.model.sort_order import parse_order_by
    from icefield.types.datatypes import Default, Type
    from icefield.types.schema import Schema, split_name
    from icefield.types.text import parse_type
    from icefield.types.values.python import python_default
    from icefield.types.versions import check_schema_version


@check_arguments
class TableEvolution:
    """The steps of a schema, partition or sort order change; `Table.evolve` makes one and commits it.

    Each step is checked at once. If the block raises, nothing is changed.
    """

    def __init__(self, base: TableMetadata) -> None:
        self._draft = Draft(base)
        self.steps: list[Step] = []

    @property
    def schema(self) -> Schema:
        """The columns after the steps so far."""
        return self._draft.schema

    def preview(self) -> TableMetadata:
        """Return the metadata of the table after the steps so far. Raise InvalidInput if they do not fit together."""
        draft = Draft(self._draft.base)
        for step in self.steps:
            step(draft)
        draft.check()
        return apply(draft.base, shape_updates(draft), now_ms=draft.base.last_updated_ms)

    def add_column(  # noqa: PLR0913 - all but two are keywords
        self,
        name: str,
        kind: str | Type,
        *,
        doc: str | None = None,
        default: object = None,
        required: bool = False,
        first: bool = False,
        after: str | None = None,
        before: str | None = None,
    ) -> None:
        """Add a column. Dots in the name lead into structs, lists and maps.

        Args:
            name: The name of the column, such as `note` or `address.country`; a name of its own that has a dot is
                written in backticks.
            kind: Its type, as text or as a type object.
            doc: A description.
            default: The value for existing rows, and for new rows that do not name the column (format version 3).
            required: Do not allow nulls. This needs a default.
            first: Put the column first.
            after: Put it after this column.
            before: Put it before this column.
        """
        path, last = split_name(name)
        parsed = parse_type(kind) if isinstance(kind, str) else kind
        column = NewColumn(last, parsed, required, doc, _default(name, default, parsed))
        position = _position(first=first, after=after, before=before)
        self._change_schema(lambda draft: add_column(draft.schema, path, column, draft.draw_column_id, position))

    def drop_column(self, name: str) -> None:
        """Drop a column. Older snapshots keep it."""
        self._change_schema(lambda draft: drop_column(draft.schema, name))

    def rename_column(self, name: str, new_name: str) -> None:
        """Rename a column. The new name is its last part only: the column stays in its struct."""
        self._change_schema(lambda draft: rename_column(draft.schema, name, new_name))

    def move_column(
        self, name: str, *, first: bool = False, after: str | None = None, before: str | None = None
    ) -> None:
        """Move a column first, or after or before another one of the same struct."""
        position = _position(first=first, after=after, before=before)
        if position is None:
            raise InvalidInput(f"no new position for column {name!r}", hint="Give first=True, after=… or before=…")
        self._change_schema(lambda draft: move_column(draft.schema, name, position))

    def update_column_type(self, name: str, kind: str | Type) -> None:
        """Widen the type of a column: int to long, float to double, a decimal to more digits.

        Format version 3 also allows date to timestamp or timestamp_ns, and unknown to any type.
        """
        wider = parse_type(kind) if isinstance(kind, str) else kind
        self._change_schema(
            lambda draft: update_column_type(draft.schema, name, wider, draft.base.format_version, draft.draw_column_id)
        )

    def make_optional(self, name: str) -> None:
        """Allow nulls in a column."""
        self._change_schema(lambda draft: make_optional(draft.schema, name))

    def set_doc(self, name: str, doc: str | None) -> None:
        """Set the description of a column, or remove it with None."""
        self._change_schema(lambda draft: set_doc(draft.schema, name, doc))

    def set_default(self, name: str, default: object) -> None:
        """Set the write default of a column: the value for new rows that do not name it."""
        self._change_schema(
            lambda draft: set_default(draft.schema, name, _default(name, default, draft.schema.find_field(name).type))
        )

    def set_identifier_fields(self, names: Iterable[str]) -> None:
        """Set the columns that identify a row. `Table.upsert` uses them as its key."""
        chosen = tuple(names)
        self._change_schema(lambda draft: set_identifier_fields(draft.schema, chosen))

    def drop_identifier_fields(self, names: Iterable[str]) -> None:
        """Remove columns from those that identify a row."""
        chosen = tuple(names)
        self._change_schema(lambda draft: drop_identifier_fields(draft.schema, chosen))

    def union_by_name(self, schema: object) -> None:
        """Add the columns that only the given schema or DataFrame has, and widen those that are wider there."""
        other = as_schema(schema)
        self._change_schema(lambda draft: _united(draft, other))

    def add_partition_field(self, text: str, *, name: str | None = None) -> None:
        """Partition new files by one more `transform(column)`. Existing files stay as they are."""
        self._change_spec(
            lambda draft: add_partition_field(draft.spec, text, name, draft.schema, draft.draw_partition_id)
        )

    def drop_partition_field(self, name: str) -> None:
        """Stop partitioning new files by a field."""
        self._change_spec(
            lambda draft: drop_partition_field(draft.spec, name, keep_void=draft.base.format_version == 1)
        )

    def rename_partition_field(self, name: str, new_name: str) -> None:
        """Rename a partition field."""
        self._change_spec(lambda draft: rename_partition_field(draft.spec, name, new_name, draft.schema))

    def set_sort_order(self, order_by: Sequence[str]) -> None:
        """Set the sort order of new files; an empty list removes it."""
        terms = order_by if isinstance(order_by, str) else tuple(order_by)

        def step(draft: Draft) -> None:
            draft.order = parse_order_by(terms, draft.schema)

        self._take(step)

    def _change_schema(self, change: Callable[[Draft], Schema]) -> None:
        def step(draft: Draft) -> None:
            draft.schema = change(draft)
            check_schema_version(draft.schema, draft.base.format_version)

        self._take(step)

    def _change_spec(self, change: Callable[[Draft], PartitionSpec]) -> None:
        def step(draft: Draft) -> None:
            draft.spec = change(draft)

        self._take(step)

    def _take(self, step: Step) -> None:
        step(self._draft)
        self.steps.append(step)


def _united(draft: Draft, other: Schema) -> Schema:
    return union_by_name(draft.schema, other, draft.draw_column_id, draft.base.format_version)


def _default(name: str, given: object, kind: Type) -> Default | None:
    try:
        return python_default(given, kind)
    except ValueError as error:
        raise InvalidInput(f"column {name!r} cannot have the default {given!r}: {error}") from error


def _position(*, first: bool, after: str | None, before: str | None) -> Position | None:
    if first and (after is not None or before is not None):
        raise InvalidInput("first, after and before exclude each other")
    if first:
        return FIRST
    return Position(after, before) if after is not None or before is not None else None
