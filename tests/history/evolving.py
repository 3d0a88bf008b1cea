"""A table of three columns whose definition changes between the changes of its branches, and its rows by field id."""

import random
from collections.abc import Mapping

import pyarrow as pa

from icefield.table.table import Table

ID, PART, VALUE = 1, 2, 3
NAMES = {ID: "id", PART: "part", VALUE: "value"}
DEFINITIONS = ("add column", "drop column", "rename", "promote", "spec", "order", "format version")


def arrow(rows: Mapping[int, str], names: Mapping[int, str] = NAMES) -> pa.Table:
    """Build the rows; columns that were added have the number of the row."""
    columns = {
        names[ID]: pa.array(rows.keys(), pa.int64()),
        names[PART]: pa.array([key % 2 for key in rows], pa.int32()),
        names[VALUE]: pa.array(list(rows.values()), pa.string()),
    }
    more = {name: pa.array(rows.keys(), pa.int32()) for field_id, name in names.items() if field_id not in NAMES}
    return pa.table({**columns, **more})


def names_of(table: Table) -> dict[int, str]:
    """Return the names that the columns have now, by field id."""
    return {field.field_id: field.name for field in table.schema.fields}


def rows_of(table: Table) -> dict[int, str]:
    """Return the values by key; each key is there once."""
    names = names_of(table)
    found = table.scan(select=[names[ID], names[VALUE]]).to_arrow().read_all()
    keys, values = (column.to_pylist() for column in found.columns)
    assert len(set(keys)) == len(keys), "a row is there twice"
    return dict(zip(keys, values, strict=True))


def redefine(table: Table, chosen: random.Random, number: int) -> None:
    """Change the definition of the table, which all branches share."""
    what = chosen.choice(DEFINITIONS)
    names = names_of(table)
    if what == "format version":
        if table.metadata.format_version < 3:
            table.upgrade_format_version(table.metadata.format_version + 1)
        return
    with table.evolve() as change:
        if what == "add column":
            change.add_column(f"c{number}", "int", default=number if table.metadata.format_version == 3 else None)
        elif what == "drop column":
            for name in [field.name for field in table.schema.fields if field.field_id not in NAMES][:1]:
                change.drop_column(name)
        elif what == "rename":
            field_id = chosen.choice([PART, VALUE])
            change.rename_column(names[field_id], f"{NAMES[field_id]}{number}")
        elif what == "promote":
            change.update_column_type(names[PART], "long")
        elif what == "order":
            change.set_sort_order(chosen.choice([[], [names[VALUE]], [names[ID]]]))
        elif table.spec.fields and chosen.random() < 0.5:
            change.drop_partition_field(table.spec.fields[0].name)
        else:
            field_id, text = chosen.choice(
                [(ID, "bucket(2, {})"), (VALUE, "truncate(5, {})"), (PART, "{}"), (ID, "truncate(4, {})")]
            )
            if not any(field.source_id == field_id for field in table.spec.fields):
                change.add_partition_field(text.format(names[field_id]), name=f"p{number}")
