"""ALTER TABLE: its name, properties, location, partition fields, write order and identifier fields.

Columns are in `alter_columns`, branches and tags in `refs`. Each statement is one commit.
Raises NoSuchTable, InvalidInput, LocationRefused, Unsupported.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from icefield.errors import InvalidInput, Unsupported
from icefield.model.partition import PartitionSpec
from icefield.properties.table import DISTRIBUTION_MODE
from icefield.sql.schema.alter_columns import (
    parse_add_columns,
    parse_alter_columns,
    parse_drop_columns,
    parse_rename_column,
    parse_replace_columns,
)
from icefield.sql.schema.change import find_table, one_commit, refuse_in_transaction
from icefield.sql.schema.properties import Properties, parse_keys, parse_properties
from icefield.sql.schema.refs import REF_WORDS, parse_create_ref, parse_drop_ref
from icefield.sql.schema.transforms import Term, WriteOrder, column_text, parse_term, parse_write
from icefield.sql.schema.types import parse_text
from icefield.sql.session import NOTHING, Rows, Run, Statement
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place, pointing_at
from icefield.types.schema import Schema

_COLUMNS = ("column", "columns")


@dataclass(frozen=True)
class RenameTable:
    """ALTER TABLE RENAME TO; a name of one part stays in the namespace of the table."""

    table: Name
    new: Name

    def run(self, run: Run) -> Rows:
        """Rename the table."""
        refuse_in_transaction(run, self.table.place, "rename tables")
        found = find_table(run, self.table)
        parts = self.new.parts if len(self.new.parts) > 1 else (*found.namespace, *self.new.parts)
        with pointing_at(self.new.place):
            run.lake.rename_table(str(found), str(run.new_name(Name(parts, self.new.place))))
        return NOTHING


@dataclass(frozen=True)
class SetProperties:
    """SET TBLPROPERTIES; the format version is a property there."""

    table: Name
    properties: Properties

    def run(self, run: Run) -> Rows:
        """Set the properties."""
        updates, version = self.properties.for_table(), self.properties.format_version
        with pointing_at(self.table.place), one_commit(run, find_table(run, self.table)) as table:
            if version is not None:
                table.upgrade_format_version(version)
            if updates:
                table.set_properties(updates)
        return NOTHING


@dataclass(frozen=True)
class UnsetProperties:
    """UNSET TBLPROPERTIES; one that is not set is ignored, as in Iceberg."""

    table: Name
    keys: tuple[str, ...]

    def run(self, run: Run) -> Rows:
        """Remove the properties."""
        run.open(find_table(run, self.table)).set_properties({}, removals=self.keys)
        return NOTHING


@dataclass(frozen=True)
class SetLocation:
    """SET LOCATION: where new files go."""

    table: Name
    location: str
    place: Place

    def run(self, run: Run) -> Rows:
        """Set the location."""
        table = run.open(find_table(run, self.table))
        with pointing_at(self.place):
            table.set_location(self.location)
        return NOTHING


@dataclass(frozen=True)
class ChangePartitionField:
    """ADD, DROP and REPLACE PARTITION FIELD."""

    table: Name
    dropped: Term | None
    added: Term | None
    name: str | None = None

    def run(self, run: Run) -> Rows:
        """Change the partition spec."""
        table = run.open(find_table(run, self.table))
        term = self.dropped or self.added
        with pointing_at(term.place if term else self.table.place), table.evolve() as change:
            if self.dropped is not None:
                change.drop_partition_field(_field_name(self.dropped, change.schema, table.spec))
            if self.added is not None:
                with pointing_at(self.added.place):
                    change.add_partition_field(self.added.text, name=self.name or self.added.added_name(change.schema))
        return NOTHING


@dataclass(frozen=True)
class SetWriteOrder:
    """WRITE ORDERED BY, LOCALLY ORDERED BY, DISTRIBUTED BY PARTITION, UNORDERED."""

    table: Name
    write: WriteOrder

    def run(self, run: Run) -> Rows:
        """Set the sort order and the distribution mode."""
        with pointing_at(self.table.place), one_commit(run, find_table(run, self.table)) as table:
            with table.evolve() as change:
                change.set_sort_order(self.write.order_by(change.schema))
            if self.write.distribution is not None:
                table.set_properties({DISTRIBUTION_MODE.key: self.write.distribution})
        return NOTHING


@dataclass(frozen=True)
class ChangeIdentifierFields:
    """SET and DROP IDENTIFIER FIELDS."""

    table: Name
    fields: tuple[Name, ...]
    drops: bool

    def run(self, run: Run) -> Rows:
        """Set or drop them."""
        table = run.open(find_table(run, self.table))
        names = [column_text(name.parts) for name in self.fields]
        with table.evolve() as change:
            for name, text in zip(self.fields, names, strict=True):
                with pointing_at(name.place):
                    field = change.schema.find_field(text)
                    if not self.drops and not field.required:
                        raise InvalidInput(f"cannot identify rows by {name}: the column is not required")
            with pointing_at(self.fields[0].place):
                (change.drop_identifier_fields if self.drops else change.set_identifier_fields)(names)
        return NOTHING


def parse_alter_table(cursor: Cursor) -> Statement:
    """Parse what follows ALTER."""
    cursor.expect("table")
    table = cursor.name("the name of a table")
    word = cursor.peek()
    parser = _PARSERS.get(word)
    if parser is None:
        raise cursor.expected("ADD, ALTER, CHANGE, CREATE, DROP, RENAME, REPLACE, SET, UNSET or WRITE")
    return parser(cursor, table)


def _parse_rename(cursor: Cursor, table: Name) -> Statement:
    if cursor.is_at("rename", "column"):
        return parse_rename_column(cursor, table)
    cursor.expect("rename", "to")
    new = cursor.name("the new name")
    cursor.expect_end()
    return RenameTable(table, new)


def _parse_set(cursor: Cursor, table: Name) -> Statement:
    cursor.expect("set")
    statement: Statement
    if cursor.accept("tblproperties"):
        statement = SetProperties(table, parse_properties(cursor))
    elif cursor.accept("location"):
        place = cursor.place
        statement = SetLocation(table, parse_text(cursor, "a location"), place)
    elif cursor.accept("identifier", "fields"):
        statement = ChangeIdentifierFields(table, _names(cursor), drops=False)
    else:
        raise cursor.expected("TBLPROPERTIES, LOCATION or IDENTIFIER FIELDS")
    cursor.expect_end()
    return statement


def _parse_unset(cursor: Cursor, table: Name) -> Statement:
    cursor.expect("unset", "tblproperties")
    cursor.accept("if", "exists")
    keys = parse_keys(cursor)
    cursor.expect_end()
    return UnsetProperties(table, keys)


def _parse_add(cursor: Cursor, table: Name) -> Statement:
    if cursor.peek(1) in _COLUMNS:
        return parse_add_columns(cursor, table)
    cursor.expect("add")
    _expect_field(cursor, "COLUMN, COLUMNS or PARTITION FIELD")
    added = parse_term(cursor)
    return ChangePartitionField(table, None, added, _field_alias(cursor))


def _parse_drop(cursor: Cursor, table: Name) -> Statement:
    if cursor.peek(1) in _COLUMNS:
        return parse_drop_columns(cursor, table)
    if cursor.peek(1) in REF_WORDS:
        return parse_drop_ref(cursor, table)
    cursor.expect("drop")
    if cursor.accept("identifier", "fields"):
        fields = _names(cursor)
        cursor.expect_end()
        return ChangeIdentifierFields(table, fields, drops=True)
    _expect_field(cursor, "COLUMN, COLUMNS, PARTITION FIELD, IDENTIFIER FIELDS, BRANCH or TAG")
    dropped = parse_term(cursor)
    cursor.expect_end()
    return ChangePartitionField(table, dropped, None)


def _parse_replace(cursor: Cursor, table: Name) -> Statement:
    if cursor.peek(1) == "columns":
        return parse_replace_columns(cursor, table)
    if cursor.peek(1) in REF_WORDS:
        return parse_create_ref(cursor, table)
    cursor.expect("replace")
    _expect_field(cursor, "COLUMNS, PARTITION FIELD, BRANCH or TAG")
    dropped = parse_term(cursor)
    cursor.expect("with")
    return ChangePartitionField(table, dropped, parse_term(cursor), _field_alias(cursor))


def _parse_write(cursor: Cursor, table: Name) -> Statement:
    cursor.expect("write")
    write = parse_write(cursor)
    cursor.expect_end()
    return SetWriteOrder(table, write)


def _expect_field(cursor: Cursor, what: str) -> None:
    if cursor.is_at("partition", "("):
        raise cursor.error(
            "the partitions of an Iceberg table come and go with its rows",
            hint="Use ADD PARTITION FIELD for the definition, DELETE FROM for the rows of a partition",
            kind=Unsupported,
        )
    if not cursor.accept("partition", "field"):
        raise cursor.expected(what)


def _field_alias(cursor: Cursor) -> str | None:
    name = cursor.identifier("a name") if cursor.accept("as") else None
    cursor.expect_end()
    return name


def _field_name(term: Term, schema: Schema, spec: PartitionSpec) -> str:
    """Return the partition field that a term means: by name if there is no such column, else by its transform."""
    try:
        source = schema.find_field(term.column).field_id
    except InvalidInput:
        if len(term.parts) != 1:
            raise
        return term.parts[0]
    for field in spec.fields:
        if field.source_id == source and field.transform == term.transform:
            return field.name
    known = ", ".join(f"{field.name}" for field in spec.fields) or "none"
    raise InvalidInput(f"the table is not partitioned by {term.place.text} (partition fields: {known})")


def _names(cursor: Cursor) -> tuple[Name, ...]:
    names = [cursor.name("a column")]
    while cursor.accept(","):
        names.append(cursor.name("a column"))
    return tuple(names)


_PARSERS: Mapping[str, Callable[[Cursor, Name], Statement]] = {
    "rename": _parse_rename,
    "set": _parse_set,
    "unset": _parse_unset,
    "add": _parse_add,
    "alter": parse_alter_columns,
    "change": parse_alter_columns,
    "create": parse_create_ref,
    "drop": _parse_drop,
    "replace": _parse_replace,
    "write": _parse_write,
}
