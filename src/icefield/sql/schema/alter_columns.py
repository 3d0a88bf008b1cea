"""Columns in ALTER TABLE: ADD, DROP, RENAME, ALTER and CHANGE COLUMN, REPLACE COLUMNS.

REPLACE COLUMNS keeps the values of columns that stay: those with the same name, and the same type or a wider one. In
Iceberg Java it drops all of them. Names are compared without their case. Raises InvalidInput, at the name.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from icefield.dml.evolution import TableEvolution
from icefield.errors import InvalidInput
from icefield.sql.schema.change import find_table
from icefield.sql.schema.column_paths import (
    existing_column,
    find_column,
    is_same_type,
    parent_path,
    refuse_taken,
    sibling_name,
)
from icefield.sql.schema.columns import Column, ColumnPosition, parse_column, parse_position, refuse_twice
from icefield.sql.schema.defaults import DefaultText, parse_default
from icefield.sql.schema.transforms import column_text
from icefield.sql.schema.types import parse_text, parse_type
from icefield.sql.session import NOTHING, Rows, Run
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place, pointing_at
from icefield.types.datatypes import Type

# A step of a statement; it may fail at the place that it comes with.
Step = Callable[[Run, TableEvolution], None]


@dataclass(frozen=True)
class AlterColumns:
    """Changes of columns, in one commit."""

    table: Name
    steps: tuple[tuple[Place, Step], ...]

    def run(self, run: Run) -> Rows:
        """Make the changes."""
        table = run.open(find_table(run, self.table))
        with pointing_at(self.steps[0][0]), table.evolve() as change:
            for place, step in self.steps:
                with pointing_at(place):
                    step(run, change)
        return NOTHING


@dataclass(frozen=True)
class CommentOnColumn:
    """COMMENT ON COLUMN: the name of a table, and the path of a column in it."""

    name: Name
    comment: str | None

    def run(self, run: Run) -> Rows:
        """Set the comment of the column, or remove it."""
        parts, place = self.name.parts, self.name.place
        for at in range(len(parts) - 1, 0, -1):
            table = Name(parts[:at], place)
            if run.find(table) is not None:
                return AlterColumns(table, ((place, _commenting(Name(parts[at:], place), self.comment)),)).run(run)
        raise run.missing(self.name, "column")


def parse_add_columns(cursor: Cursor, table: Name) -> AlterColumns:
    """Parse ADD COLUMN or COLUMNS, after the name of the table."""
    cursor.expect("add")
    cursor.expect_any("column", "columns")
    is_inside = cursor.accept("(")
    columns: list[Column] = []
    while not columns or cursor.accept(","):
        columns.append(parse_column(cursor, has_position=True))
    if is_inside:
        cursor.expect(")")
    cursor.expect_end()
    refuse_twice(columns)
    return AlterColumns(table, tuple((column.name.place, _adding(column)) for column in columns))


def parse_drop_columns(cursor: Cursor, table: Name) -> AlterColumns:
    """Parse DROP COLUMN or COLUMNS, after the name of the table."""
    cursor.expect("drop")
    cursor.expect_any("column", "columns")
    if_exists = cursor.accept("if", "exists")
    is_inside = cursor.accept("(")
    names: list[Name] = []
    while not names or cursor.accept(","):
        names.append(cursor.name("the name of a column"))
    if is_inside:
        cursor.expect(")")
    cursor.expect_end()
    return AlterColumns(table, tuple((name.place, _dropping(name, if_exists=if_exists)) for name in names))


def parse_rename_column(cursor: Cursor, table: Name) -> AlterColumns:
    """Parse RENAME COLUMN, after the name of the table."""
    cursor.expect("rename", "column")
    name = cursor.name("the name of a column")
    cursor.expect("to")
    place, new = cursor.place, cursor.identifier("the new name")
    cursor.expect_end()

    def rename(run: Run, change: TableEvolution) -> None:
        known = existing_column(change.schema, name)
        with pointing_at(place):
            refuse_taken(change.schema, name, new, besides=known.field_id)
            change.rename_column(change.schema.name_of(known.field_id), new)

    return AlterColumns(table, ((name.place, rename),))


def parse_alter_columns(cursor: Cursor, table: Name) -> AlterColumns:
    """Parse ALTER or CHANGE COLUMN, after the name of the table."""
    is_change = cursor.expect_any("alter", "change") == "change"
    cursor.accept("column")
    steps: list[tuple[Place, Step]] = []
    while not steps or cursor.accept(","):
        name = cursor.name("the name of a column")
        steps += _hive_change(cursor, name) if is_change and _is_hive_change(cursor) else [_alteration(cursor, name)]
    cursor.expect_end()
    return AlterColumns(table, tuple(steps))


def parse_replace_columns(cursor: Cursor, table: Name) -> AlterColumns:
    """Parse REPLACE COLUMNS, after the name of the table."""
    cursor.expect("replace", "columns", "(")
    columns: list[Column] = []
    while not columns or cursor.accept(","):
        columns.append(parse_column(cursor))
    cursor.expect(")")
    cursor.expect_end()
    refuse_twice(columns)
    steps = [(column.name.place, _keeping(column)) for column in columns]
    steps.append((columns[0].name.place, _dropping_others(columns)))
    steps += [
        (column.name.place, _moving(column.name, ColumnPosition(before.name if before else None)))
        for before, column in zip([None, *columns], columns, strict=False)
    ]
    return AlterColumns(table, tuple(steps))


def _adding(column: Column) -> Step:
    def add(run: Run, change: TableEvolution) -> None:
        refuse_taken(change.schema, column.name, column.name.parts[-1])
        parent = parent_path(change.schema, column.name)
        name = column_text((*parent, column.name.parts[-1]))
        before = None if column.position is None else column.position.after
        after = None if before is None else sibling_name(change.schema, parent, before)
        change.add_column(
            name,
            column.type,
            doc=column.comment,
            default=None if column.default is None else column.default.value(run, column.type),
            required=column.required,
            first=column.position is not None and after is None,
            after=after,
        )

    return add


def _dropping(name: Name, *, if_exists: bool) -> Step:
    def drop(run: Run, change: TableEvolution) -> None:
        if if_exists and find_column(change.schema, name.parts) is None:
            return
        change.drop_column(change.schema.name_of(existing_column(change.schema, name).field_id))

    return drop


def _moving(name: Name, position: ColumnPosition) -> Step:
    def move(run: Run, change: TableEvolution) -> None:
        path = change.schema.paths[existing_column(change.schema, name).field_id]
        after = None if position.after is None else sibling_name(change.schema, path[:-1], position.after)
        change.move_column(column_text(path), first=after is None, after=after)

    return move


def _retyping(name: Name, kind: Type, place: Place) -> Step:
    def retype(run: Run, change: TableEvolution) -> None:
        known = existing_column(change.schema, name)
        with pointing_at(place):
            if not is_same_type(known.type, kind):
                change.update_column_type(change.schema.name_of(known.field_id), kind)

    return retype


def _commenting(name: Name, comment: str | None) -> Step:
    def set_doc(run: Run, change: TableEvolution) -> None:
        change.set_doc(change.schema.name_of(existing_column(change.schema, name).field_id), comment)

    return set_doc


def _requiring(name: Name, place: Place, *, required: bool) -> Step:
    def require(run: Run, change: TableEvolution) -> None:
        known = existing_column(change.schema, name)
        if not required:
            change.make_optional(change.schema.name_of(known.field_id))
        elif not known.required:
            raise place.error(
                f"cannot require the column {name}: there may be nulls in it already",
                hint="Create another table with the column as NOT NULL, and copy the rows",
                kind=InvalidInput,
            )

    return require


def _defaulting(name: Name, default: DefaultText | None) -> Step:
    def set_default(run: Run, change: TableEvolution) -> None:
        known = existing_column(change.schema, name)
        value = None if default is None else default.value(run, known.type)
        with pointing_at(name.place if default is None else default.place):
            change.set_default(change.schema.name_of(known.field_id), value)

    return set_default


def _alteration(cursor: Cursor, name: Name) -> tuple[Place, Step]:
    """Read one change of a column."""
    place = cursor.place
    if cursor.accept("type"):
        start = cursor.position
        kind = parse_type(cursor)
        return name.place, _retyping(name, kind, cursor.since(start))
    if cursor.accept("comment"):
        return name.place, _commenting(name, parse_text(cursor, "a comment"))
    if cursor.is_at("first") or cursor.is_at("after"):
        return name.place, _moving(name, parse_position(cursor))
    if cursor.is_at("set", "default"):
        cursor.expect("set")
        return name.place, _defaulting(name, parse_default(cursor))
    if cursor.accept("drop", "default"):
        return name.place, _defaulting(name, None)
    if (word := cursor.accept_any("set", "drop")) is not None:
        cursor.expect("not", "null")
        return name.place, _requiring(name, cursor.since(place.start), required=word == "set")
    raise cursor.expected("TYPE, COMMENT, FIRST, AFTER, SET NOT NULL, DROP NOT NULL, SET DEFAULT or DROP DEFAULT")


def _is_hive_change(cursor: Cursor) -> bool:
    """Return whether a whole definition follows, as Hive writes it: CHANGE COLUMN name new_name type."""
    after = cursor.token(1)
    is_action = cursor.peek() in ("type", "comment", "first", "after", "set", "drop")
    return after is not None and after.is_name and not is_action


def _hive_change(cursor: Cursor, name: Name) -> list[tuple[Place, Step]]:
    column = parse_column(cursor, has_position=True)
    place = column.name.place
    steps: list[tuple[Place, Step]] = [(place, _retyping(name, column.type, column.type_place))]
    if column.comment is not None:
        steps.append((place, _commenting(name, column.comment)))
    if column.required:
        steps.append((place, _requiring(name, place, required=True)))
    if column.position is not None:
        steps.append((place, _moving(name, column.position)))
    if str(column.name).lower() != name.parts[-1].lower():
        raise place.error(
            "CHANGE COLUMN does not rename columns",
            hint=f"Use RENAME COLUMN {name} TO {column.name}",
            kind=InvalidInput,
        )
    return steps


def _keeping(column: Column) -> Step:
    """Return a step of REPLACE COLUMNS: the column stays, if there is one of this name, or else is added."""

    def keep(run: Run, change: TableEvolution) -> None:
        known = find_column(change.schema, column.name.parts)
        if known is None:
            _adding(column)(run, change)
            return
        _retyping(column.name, column.type, column.type_place)(run, change)
        _commenting(column.name, column.comment)(run, change)
        if known.required and not column.required:
            change.make_optional(change.schema.name_of(known.field_id))
        if column.required:
            _requiring(column.name, column.name.place, required=True)(run, change)

    return keep


def _dropping_others(columns: Sequence[Column]) -> Step:
    kept = {str(column.name).lower() for column in columns}

    def drop(run: Run, change: TableEvolution) -> None:
        for field in change.schema.fields:
            if field.name.lower() not in kept:
                change.drop_column(column_text((field.name,)))

    return drop
