"""The clauses of CREATE TABLE after the columns, and the parsers of its forms.

    USING iceberg     PARTITIONED BY (days(ts), region AS place)     CLUSTERED BY (id) INTO 4 BUCKETS     LOCATION 's3://…'
    COMMENT 'text'    TBLPROPERTIES ('format-version' = '3')     OPTIONS (…)     WRITE ORDERED BY ts

Iceberg has no sort order in CREATE TABLE: WRITE is that of ALTER TABLE, and the properties `sort-order` and
`identifier-fields` are those that SHOW CREATE TABLE shows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from icefield.errors import IcefieldError, InvalidInput, Unsupported
from icefield.properties.table import DISTRIBUTION_MODE
from icefield.sql.schema.columns import Column, parse_column, refuse_twice
from icefield.sql.schema.properties import (
    IDENTIFIER_FIELDS,
    NO_PROPERTIES,
    SORT_ORDER,
    Properties,
    comment_property,
    parse_properties,
)
from icefield.sql.schema.transforms import (
    Term,
    WriteOrder,
    checked_partition,
    column_text,
    parse_order,
    parse_term,
    parse_write,
)
from icefield.sql.schema.types import parse_text
from icefield.sql.syntax.cursor import Cursor
from icefield.sql.syntax.place import Place, pointing_at
from icefield.types.evolve import set_identifier_fields
from icefield.types.schema import Schema
from icefield.types.transforms import Identity

ICEBERG = "iceberg"
_REFUSED = {
    "cluster": "Iceberg tables have no CLUSTER BY: use PARTITIONED BY, WRITE ORDERED BY or CALL rewrite_data_files",
    "skewed": "Iceberg tables have no SKEWED BY",
    "row": "Iceberg tables have no row formats",
    "stored": "Iceberg tables have no STORED AS: the files are Parquet",
    "default": "Iceberg tables have no collations",
}


@dataclass(frozen=True)
class TableShape:
    """The definition of a table as the handles take it."""

    schema: Schema
    partition_by: list[str]
    order_by: list[str]
    properties: dict[str, str]
    format_version: int | None


@dataclass(frozen=True)
class TableClauses:
    """What follows the columns. place: of the location."""

    place: Place
    partitions: tuple[Term, ...] = ()
    partition_columns: tuple[Column, ...] = ()
    properties: Properties = NO_PROPERTIES
    location: str | None = None
    write: WriteOrder | None = None

    def shape(self, schema: Schema) -> TableShape:
        """Return the definition of a table with these columns; an error points at its clause."""
        stored = self.properties.values
        if IDENTIFIER_FIELDS in stored:
            with pointing_at(self.properties.places[IDENTIFIER_FIELDS]):
                names = stored[IDENTIFIER_FIELDS].strip("[] ").split(",")
                schema = set_identifier_fields(schema, [name.strip() for name in names if name.strip()])
        write = self.write or self._stored_order()
        properties = self.properties.without(SORT_ORDER, IDENTIFIER_FIELDS).for_table()
        if write is not None and write.distribution is not None:
            properties[DISTRIBUTION_MODE.key] = write.distribution
        return TableShape(
            schema,
            checked_partition(self.partitions, schema),
            [] if write is None else write.order_by(schema),
            properties,
            self.properties.format_version,
        )

    def _stored_order(self) -> WriteOrder | None:
        text = self.properties.values.get(SORT_ORDER)
        if text is None:
            return None
        place = self.properties.places[SORT_ORDER]
        try:
            cursor = Cursor(text)
            order = parse_order(cursor)
            cursor.expect_end()
        except IcefieldError as error:
            raise place.error(f"{text!r} is not a sort order: {error.message}", kind=InvalidInput) from error
        return WriteOrder(tuple(replace(term, place=place) for term in order), None)


def parse_clauses(cursor: Cursor) -> TableClauses:
    """Read the clauses, in any order, each once."""
    clauses = TableClauses(cursor.place)
    seen: set[str] = set()
    while (word := cursor.peek()) in _CLAUSES or word in _REFUSED:
        if word in _REFUSED:
            raise cursor.error(_REFUSED[word], kind=Unsupported)
        if word in seen:
            raise cursor.error(f"{word.upper()} is there twice")
        seen.add(word)
        clauses = _CLAUSES[word](clauses, cursor)
    return clauses


def _using(clauses: TableClauses, cursor: Cursor) -> TableClauses:
    cursor.expect("using")
    name = cursor.name("a format")
    if str(name).lower() != ICEBERG:
        raise name.place.error(
            f"the tables of a lake are Iceberg tables, not {name}",
            hint="Write USING iceberg, or leave it out; data files are Parquet",
            kind=Unsupported,
        )
    return clauses


def _partitioned(clauses: TableClauses, cursor: Cursor) -> TableClauses:
    cursor.expect("partitioned", "by", "(")
    terms: list[Term] = []
    columns: list[Column] = []
    while not (terms or columns) or cursor.accept(","):
        start, after = cursor.place, cursor.token(1)
        if after is not None and after.is_name and after.word != "as":
            columns.append(parse_column(cursor))
        else:
            terms.append(_named(parse_term(cursor), cursor))
        if terms and columns:
            raise start.error("PARTITIONED BY has columns with types, or columns without, not both", kind=InvalidInput)
    cursor.expect(")")
    refuse_twice(columns)
    for column in columns:
        text = column_text(column.name.parts)
        terms.append(Term(text, column.name.place, Identity(), text))
    return replace(clauses, partitions=(*clauses.partitions, *terms), partition_columns=tuple(columns))


def _named(term: Term, cursor: Cursor) -> Term:
    """Read the name of a partition field, if it has one: `bucket(4, id) AS shard`, as in ALTER TABLE."""
    if not cursor.accept("as"):
        return term
    return replace(term, text=f"{term.text} as {column_text([cursor.identifier('a name')])}")


def _clustered(clauses: TableClauses, cursor: Cursor) -> TableClauses:
    start = cursor.position
    cursor.expect("clustered", "by", "(")
    column = cursor.name("a column")
    if cursor.is_at(","):
        raise cursor.error("Iceberg tables have buckets of one column", kind=Unsupported)
    cursor.expect(")")
    if cursor.is_at("sorted"):
        raise cursor.error("buckets have no order", hint="Use WRITE ORDERED BY", kind=Unsupported)
    cursor.expect("into")
    count = cursor.integer("the number of buckets")
    cursor.expect("buckets")
    text = f"bucket({count}, {column_text(column.parts)})"
    inside = Cursor(text)
    with pointing_at(cursor.since(start)):
        term = replace(parse_term(inside), place=cursor.since(start))
    return replace(clauses, partitions=(*clauses.partitions, term))


def _properties(clauses: TableClauses, cursor: Cursor) -> TableClauses:
    cursor.expect_any("tblproperties", "options")
    return replace(clauses, properties=clauses.properties.merged(parse_properties(cursor)))


def _comment(clauses: TableClauses, cursor: Cursor) -> TableClauses:
    cursor.expect("comment")
    place = cursor.place
    return replace(
        clauses, properties=clauses.properties.merged(comment_property(parse_text(cursor, "a comment"), place))
    )


def _location(clauses: TableClauses, cursor: Cursor) -> TableClauses:
    cursor.expect("location")
    return replace(clauses, place=cursor.place, location=parse_text(cursor, "a location"))


def _write(clauses: TableClauses, cursor: Cursor) -> TableClauses:
    cursor.expect("write")
    return replace(clauses, write=parse_write(cursor))


_CLAUSES: Mapping[str, Callable[[TableClauses, Cursor], TableClauses]] = {
    "using": _using,
    "partitioned": _partitioned,
    "clustered": _clustered,
    "tblproperties": _properties,
    "options": _properties,
    "comment": _comment,
    "location": _location,
    "write": _write,
}
