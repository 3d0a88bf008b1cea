"""Rows of files as a stream that fits a table: checked before the first row is written, with progress."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from icefield.cli.files.csv_dialect import delimiter_name
from icefield.cli.files.row_files import columns_with_decimal_commas, read_row_file, row_file_schema, sniffed_delimiter
from icefield.cli.files.row_format import CSV, POINT, RowFormat, kind_of
from icefield.cli.output import talk
from icefield.cli.progress import Steps
from icefield.errors import InvalidInput, SchemaMismatch
from icefield.parquet.write.conform import check_arrow_schema, conform_batch
from icefield.types.arrow import arrow_schema, arrow_type, schema_from_arrow
from icefield.types.schema import Schema


@dataclass(frozen=True)
class RowFiles:
    """Files of rows, and how they are read."""

    paths: Sequence[Path]
    form: RowFormat

    def show_formats(self) -> None:
        """Say what was found out about the files."""
        found = {path: sniffed_delimiter(path, self.form) for path in self.paths}
        for delimiter in sorted({each for each in found.values() if each is not None}):
            names = [path.name for path, each in found.items() if each == delimiter]
            more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
            talk(f"{', '.join(names[:3])}{more}: cells are separated by {delimiter_name(delimiter)}")

    def columns(self) -> pa.Schema:
        """Infer the columns of all files together. A column without any value is text."""
        schemas = [row_file_schema(path, None, self.form) for path in self.paths]
        self._tell_of_decimal_commas()
        try:
            united = pa.unify_schemas(schemas, promote_options="permissive")
        except pa.ArrowException as error:
            raise InvalidInput(
                f"the files have different types: {error}", hint="Create the table with `icefield create` first"
            ) from error
        fields = [f.with_type(pa.string()) if pa.types.is_null(f.type) else f for f in united.remove_metadata()]
        return pa.schema(fields)

    def _tell_of_decimal_commas(self) -> None:
        """Say which columns of text look like numbers that another option would read."""
        for path in self.paths if self.form.decimal == POINT else ():
            if kind_of(path, self.form) == CSV and (names := columns_with_decimal_commas(path, self.form)):
                talk(f"{path.name}: numbers with decimal commas are text in {', '.join(names)}; --decimal , reads them")

    def read_all(self, table: Schema, steps: Steps) -> pa.Table:
        """Read all rows. Columns that the table has are read as its types, as far as the format has none."""
        schemas = [self._own_columns(path, table) for path in self.paths]
        for path, schema in zip(self.paths[1:], schemas[1:], strict=True):
            if schema.column_names != schemas[0].column_names:
                raise InvalidInput(f"{path} has other columns than {self.paths[0]}", hint="Run one command for each")
        rows = []
        for path, schema in zip(self.paths, schemas, strict=True):
            for batch in read_row_file(path, schema, self.form):
                rows.append(pa.Table.from_batches([batch]))
                steps.advance(batch.num_rows, path.name)
        try:
            return pa.concat_tables(rows or [arrow_schema(schemas[0]).empty_table()], promote_options="permissive")
        except pa.ArrowTypeError as error:
            raise InvalidInput(f"the files have different types: {error}", hint="Run one command for each") from error

    def _own_columns(self, path: Path, table: Schema) -> Schema:
        """Return the columns that a file has: as the table has them, or else as they look."""
        if self._has_no_names(path):
            return table
        known = {f.name: f for f in table.fields}
        found = schema_from_arrow(row_file_schema(path, None, self.form)).fields
        return table.derive(known.get(f.name, f) for f in found)

    def _has_no_names(self, path: Path) -> bool:
        return not self.form.has_header and kind_of(path, self.form) == CSV

    def with_new_columns(self, table: Schema) -> Schema:
        """Return the columns of a table, and behind them those that only the files have, as they look."""
        if any(self._has_no_names(path) for path in self.paths):
            raise InvalidInput("--merge-schema needs the names of columns", hint="Leave out --no-header")
        known = [pa.field(f.name, arrow_type(f.type), nullable=not f.required) for f in table.fields]
        fresh = [f for f in self.columns() if f.name not in {each.name for each in known}]
        return schema_from_arrow(pa.schema([*known, *fresh]))

    def fitting(self, schema: Schema, steps: Steps) -> pa.RecordBatchReader:
        """Return the rows as a stream of the schema; raise SchemaMismatch now if a file has other columns."""
        for path in self.paths:
            with _named(path):
                check_arrow_schema(row_file_schema(path, schema, self.form), schema)
        batches = (batch for path in self.paths for batch in self._fitting(path, schema, steps))
        return pa.RecordBatchReader.from_batches(arrow_schema(schema), batches)

    def _fitting(self, path: Path, schema: Schema, steps: Steps) -> Iterator[pa.RecordBatch]:
        for batch in read_row_file(path, schema, self.form):
            with _named(path):
                fitted = conform_batch(batch, schema)
            yield fitted
            steps.advance(batch.num_rows, path.name)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the file in an error about its columns."""
    try:
        yield
    except SchemaMismatch as error:
        raise SchemaMismatch(f"{path}: {error.message}", hint=error.hint) from error
