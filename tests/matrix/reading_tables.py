"""Tables of the matrix: columns, partitions, files of any writer, changes of both, deletes, and a trimmed history.

Everything is drawn from one seed. The model beside a table says what its rows are, whatever its files hold.
"""

import itertools
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from tests.equality_deletes import delete_keys
from tests.histories.model import KEY_ID, TABLE, Model, Row
from tests.histories.values import arrow_values, plain_field
from tests.matrix import reading_files, reading_parquet_mr
from tests.matrix.reading_files import ForeignFile, commit_file
from tests.matrix.reading_partitions import draw_term, is_partition_source, partition_of, put_into_one_partition
from tests.matrix.reading_values import ColumnValues, fits

from icefield.catalog.catalog import PointerSwap
from icefield.errors import InvalidInput, SchemaMismatch
from icefield.lake import Lake
from icefield.model.names import parse_table_name
from icefield.storage.location import local_path
from icefield.table.table import Table
from icefield.types.datatypes import (
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    Type,
    UnknownType,
    children,
    with_children,
)
from icefield.types.schema import Schema
from icefield.types.text import parse_type
from icefield.types.transforms import Void

# Names that a reader may trip over, and a few that are reused.
NAMES = ("a", "b", "c", "d", "B c", "f.g", "${x}", "é", "_metadata", "icefield_file", "icefield_column_3", "element")
# A type, and those that a column of it may be widened to; from version 3 on there are more.
WIDENINGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("int", ("long",)),
    ("float", ("double",)),
    ("decimal(9,2)", ("decimal(18,2)", "decimal(38,2)", "decimal(12,2)")),
    ("decimal(18,3)", ("decimal(38,3)", "decimal(20,3)")),
    ("decimal(4,0)", ("decimal(9,0)", "decimal(18,0)")),
)
WIDENINGS_3 = (("date", ("timestamp", "timestamp_ns")), ("unknown", ("int", "string", "timestamptz")))
PLAIN = (
    *("boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "string", "binary"),
    *("uuid", "fixed(2)", "decimal(9,2)", "decimal(18,3)", "decimal(38,10)", "double", "timestamp", "timestamptz"),
)
PLAIN_3 = ("timestamp_ns", "timestamptz_ns")
MERGE_ON_READ = {"write.delete.mode": "merge-on-read"}
# A table of version 1 may have no list of schemas. (spec: Table Metadata Fields)
ONLY_LISTS = ("schemas", "current-schema-id")
_PLACEHOLDERS = itertools.count(1_000_000)


@dataclass
class Case:
    """A table, what its rows are, and how it came about."""

    seed: int
    table: Table
    model: Model
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n  ".join([f"seed {self.seed}, format version {self.model.format_version}", *self.notes])


class Drawing:
    """Draws one case."""

    def __init__(self, seed: int, lake: Lake, spark: SparkSession | None) -> None:
        self._random = Random(seed)
        self._seed = seed
        self._lake = lake
        self._spark = spark  # writes files through its JVM; None where it has none of ours
        self._ids = itertools.count(1)
        self._files = itertools.count(1)

    def draw(self) -> Case:
        """Make a table."""
        random = self._random
        version = random.choice([1, 2, 2, 3, 3])
        columns = self._draw_columns(version)
        name = f"m.t{self._seed}"
        terms = [draw_term(random, columns) for _ in range(random.choice([0, 0, 0, 1, 1, 2]))]
        table = self._lake.create_table(
            name,
            Schema(columns),
            partition_by=list(dict.fromkeys(terms)),
            properties=MERGE_ON_READ,
            format_version=version,
        )
        fields = table.schema.fields
        self._case = Case(self._seed, table, Model(fields, version, table.metadata.last_column_id))
        self._note(f"columns {table.schema}, partitioned by {table.spec}")
        without_ids = random.choice([None] * 8 + ["first", "second"])
        for _ in range(random.choice([1, 1, 2])):
            self._add_file(has_ids=without_ids != "first")
        self._evolve()
        self._add_file(has_ids=without_ids != "second")
        if version > 1:
            self._delete(version)
        self._trim_history(version)
        return self._case

    def _note(self, text: str) -> None:
        self._case.notes.append(text)

    def _draw_columns(self, version: int) -> tuple[NestedField, ...]:
        random = self._random
        names = random.sample(NAMES, 7)
        kinds: list[Type] = [self._draw_kind(version) for _ in range(4)]
        inner = tuple(_column(name, self._draw_kind(version)) for name in ("x", "y"))
        kinds.append(StructType(inner))
        if random.random() < 0.4:
            kinds.append(ListType(next(_PLACEHOLDERS), self._draw_kind(version, no_unknown=True)))
        if random.random() < 0.3:
            value = self._draw_kind(version, no_unknown=True)
            kinds.append(MapType(next(_PLACEHOLDERS), StringType(), next(_PLACEHOLDERS), value))
        random.shuffle(kinds)
        key = NestedField(next(_PLACEHOLDERS), "id", LongType(), required=True)
        return (key, *(_column(name, kind) for name, kind in zip(names, kinds, strict=False)))

    def _draw_kind(self, version: int, *, no_unknown: bool = False) -> Type:
        widened = [old for old, _ in (*WIDENINGS, *(WIDENINGS_3 if version >= 3 else ()))]
        plain = [*PLAIN, *(PLAIN_3 if version >= 3 else ())]
        kind = parse_type(self._random.choice(widened if self._random.random() < 0.5 else plain))
        return self._draw_kind(version, no_unknown=True) if no_unknown and isinstance(kind, UnknownType) else kind

    def _add_file(self, *, has_ids: bool) -> None:
        """Add rows in a file of ours or of another writer."""
        random, case = self._random, self._case
        rows = self._draw_rows(random.choice([1, 4, 7]))
        if random.random() < 0.35 and has_ids:
            case.table.append(_arrow_rows(case.model.fields, rows))
            self._note(f"append of {len(rows)} rows")
        else:
            path = Path(local_path(case.table.location)) / "data" / f"foreign-{next(self._files)}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            self._add_foreign(path, rows, has_ids=has_ids)
        case.model.rows += rows

    def _add_foreign(self, path: Path, rows: list[Row], *, has_ids: bool) -> None:
        random, case = self._random, self._case
        absent = put_into_one_partition(random, rows, case.table.spec, case.model)
        fields = [f for f in case.model.fields if not _holds_unknown(f.type) and f.field_id not in absent]
        by_hand = self._spark is not None and has_ids and random.random() < 0.5
        if by_hand:
            fields = [f for f in fields if reading_parquet_mr.can_be_written(f)]
        for missing in case.model.fields:
            if missing not in fields and missing.field_id not in absent:
                for row in rows:
                    row[missing.field_id] = None
        partition = partition_of(rows[0], case.table.spec, case.model)
        fields = [self._narrowed(f, rows) for f in fields]
        names = self._draw_names(fields, plain=by_hand) if has_ids else {}
        file = ForeignFile(fields, rows, names, has_ids)
        if by_hand:
            assert self._spark is not None
            note = reading_parquet_mr.write_by_parquet_mr(random, path, file, self._spark)
        else:
            note = reading_files.write_by_arrow(random, path, file)
        if by_hand and reading_parquet_mr.needs_foreign_commit(note):
            commit_file(case.table, path, len(rows), tuple(partition.values()))
        else:
            try:
                case.table.add_files([path], partition=partition)
            except SchemaMismatch as refused:
                self._note(f"refused: {refused}")
                rows.clear()
        lacks = f", without {sorted(absent)}" if absent else ""
        self._note(f"file of {len(rows)} rows, names {dict(names)}{lacks}: {note}")

    def _draw_names(self, fields: Iterable[NestedField], *, plain: bool) -> dict[int, str]:
        """Draw names under which a file has columns: the table's own, others, or those of other columns."""
        random = self._random
        others = [f for f in fields if f.field_id != KEY_ID]
        names = {f.field_id: f.name for f in others}
        match random.randrange(4):
            case 0:
                shuffled = random.sample(list(names.values()), len(names))
                names = dict(zip(names, shuffled, strict=True))
            case 1:
                names = {field_id: f"n{field_id}" for field_id in names}
        if plain and not all(name.isidentifier() and name.isascii() for name in names.values()):
            names = {i: re.sub(r"[^A-Za-z0-9]", "_", name) + f"_{i}" for i, name in names.items()}
        if random.random() < 0.3:
            for f in others:
                if isinstance(f.type, StructType) and len(f.type.fields) == 2:
                    one, other = f.type.fields
                    names |= {one.field_id: other.name, other.field_id: one.name}
        return names

    def _narrowed(self, wide: NestedField, rows: list[Row]) -> NestedField:
        """Return a field as a file may have it: of a narrower type that the table's can be widened from."""
        older = [parse_type(old) for old, newer in WIDENINGS if str(wide.type).replace(" ", "") in newer]
        values = [row[wide.field_id] for row in rows]
        chosen = [kind for kind in older if all(fits(v, kind) for v in values)]
        return replace(wide, type=self._random.choice(chosen)) if chosen and self._random.random() < 0.5 else wide

    def _draw_rows(self, count: int) -> list[Row]:
        columns = {f.field_id: ColumnValues(self._random, f) for f in self._case.model.fields if f.field_id != KEY_ID}
        return [{KEY_ID: next(self._ids), **{i: column.draw() for i, column in columns.items()}} for _ in range(count)]

    def _evolve(self) -> None:
        model, random = self._case.model, self._random
        steps: list[Callable[[], str | None]] = [self._rename, self._swap, self._add_again, self._reorder]
        notes: list[str | None] = []
        # One commit each, so that the history has every schema that there ever was.
        columns = [f for fields in model.parents().values() for f in fields]
        notes += [self._widen(each) for each in columns if random.random() < 0.8]
        notes += [random.choice(steps)() for _ in range(random.choice([0, 1, 2]))]
        if random.random() < (0.4 if self._case.table.spec.fields else 0.1):
            notes.append(self._partition_otherwise())
        self._note(f"changes {[note for note in notes if note]}")

    def _partition_otherwise(self) -> str | None:
        table = self._case.table
        live = [f.name for f in table.spec.fields if not isinstance(f.transform, Void)]
        with table.evolve() as change:
            for name in live if self._random.random() < 0.7 else ():
                change.drop_partition_field(name)
        term = draw_term(self._random, self._case.model.fields)
        try:
            with table.evolve() as change:
                change.add_partition_field(term)
        except InvalidInput as refused:  # it is there already, or its name is
            return f"partitioned by {table.spec}, not by {term}: {refused}"
        return f"partitioned by {table.spec}"

    def _widen(self, field: NestedField) -> str | None:
        model, table = self._case.model, self._case.table
        if isinstance(field.type, ListType | MapType):
            return self._widen_inside(field)
        wider = self._wider(field.type)
        if wider is None:
            return None
        if str(wider) == "timestamp_ns" and any(abs(v or 0) > 106_000 for v in model.values_of(field.field_id)):
            return None
        path = self._path(field.field_id)
        try:
            with table.evolve() as change:
                change.update_column_type(path, wider)
        except InvalidInput as refused:  # its partitions would change
            assert is_partition_source(table, field)
            return f"{path} not widened: {refused}"
        model.widen(field.field_id, wider)
        return f"{path} {field.type} to {wider}"

    def _widen_inside(self, field: NestedField) -> str | None:
        inner = children(field.type)
        wider = self._wider(inner[-1].type)
        if wider is None or str(inner[-1].type) == "date":
            return None
        path = self._path(inner[-1].field_id)
        with self._case.table.evolve() as change:
            change.update_column_type(path, wider)
        kind = with_children(field.type, (*inner[:-1], replace(inner[-1], type=wider)))
        self._case.model.change(field.field_id, type=kind)
        return f"{path} {inner[-1].type} to {wider}"

    def _wider(self, kind: Type) -> Type | None:
        known = dict((*WIDENINGS, *(WIDENINGS_3 if self._case.model.format_version >= 3 else ())))
        wider = known.get(str(kind).replace(" ", ""))
        return parse_type(self._random.choice(wider)) if wider else None

    def _rename(self) -> str | None:
        one = self._any()
        return self._rename_to(one, f"renamed{one.field_id}")

    def _rename_to(self, one: NestedField, name: str) -> str:
        path, table = self._path(one.field_id), self._case.table
        try:
            with table.evolve() as change:
                change.rename_column(path, name)
        except InvalidInput as refused:  # a partition field has that name
            assert any(spec.fields for spec in table.metadata.specs)
            return f"{path} not renamed: {refused}"
        self._case.model.change(one.field_id, name=name)
        return f"{path} renamed to {name}"

    def _swap(self) -> str | None:
        siblings = self._random.choice([f for f in self._siblings() if len(f) > 1])
        one, other = self._random.sample(siblings, 2)
        steps = [self._rename_to(one, "between"), self._rename_to(other, one.name)]
        steps.append(self._rename_to(self._case.model.field(one.field_id), other.name))
        return f"{one.name} and {other.name} swapped: {steps}"

    def _add_again(self) -> str | None:
        model, one = self._case.model, self._any()
        parent, path = model.parent_of(one.field_id), self._path(one.field_id)
        if len(model.parents()[parent]) == 1 or is_partition_source(self._case.table, one) or "." in one.name:
            return None  # a column with a dot in its name cannot be added
        kind = one.type if self._random.random() < 0.5 and isinstance(one.type, PrimitiveType) else parse_type("int")
        with self._case.table.evolve() as change:
            change.drop_column(path)
        model.drop(one.field_id)
        with self._case.table.evolve() as change:
            change.add_column(path, kind)
        added = NestedField(model.draw_id(), one.name, kind)
        model.add(parent, added, len(model.parents()[parent]))
        return f"{path} dropped and added again as {kind}"

    def _reorder(self) -> str | None:
        one = self._any()
        parent = self._case.model.parent_of(one.field_id)
        with self._case.table.evolve() as change:
            change.move_column(self._path(one.field_id), first=True)
        self._case.model.move(one.field_id, 0)
        return f"{one.name} moved to the front of {parent}"

    def _any(self) -> NestedField:
        return self._random.choice(self._random.choice(self._siblings()))

    def _siblings(self) -> list[list[NestedField]]:
        found = self._case.model.parents()
        return [[f for f in fields if f.field_id != KEY_ID] for fields in [found[TABLE], *found.values()]]

    def _path(self, field_id: int) -> str:
        return self._case.model.schema.name_of(field_id)

    def _delete(self, version: int) -> None:
        random, model, table = self._random, self._case.model, self._case.table
        how = random.choice(["none", "positions", "keys", "both"])
        for way in ("positions", "keys"):
            ids = [row[KEY_ID] for row in model.rows]
            if how not in (way, "both") or len(ids) < 2:
                continue
            gone = random.sample(ids, random.choice([1, len(ids) // 3 + 1]))
            if way == "positions":
                table.delete(f"id IN ({', '.join(map(str, gone))})")
            else:
                # Only where a spec has no fields do keys apply to all files. (spec: Scan Planning)
                unpartitioned = [s.spec_id for s in table.metadata.specs if not s.fields]
                if not unpartitioned:
                    continue
                delete_keys(table, {"id": gone}, spec_id=unpartitioned[0])
            model.rows = [row for row in model.rows if row[KEY_ID] not in gone]
            self._note(f"deleted by {way}: {gone}")

    def _trim_history(self, version: int) -> None:
        how = self._random.choice(["whole", "whole", "trimmed", "none" if version == 1 else "trimmed"])
        if how == "whole" or self._case.table.refresh().current_snapshot_id is None:
            return
        trim_history(self._lake, self._case.table, without_lists=how == "none")
        self._note(f"history {how}")


def trim_history(lake: Lake, table: Table, *, without_lists: bool = False) -> None:
    """Leave the current schema and snapshot alone, as Iceberg's `cleanExpiredMetadata` does.

    without_lists: also take out what version 1 may do without.
    """
    table.refresh()
    held = json.loads(lake.store.read(table.metadata_location))
    current = held["current-snapshot-id"]
    held["snapshots"] = [s for s in held["snapshots"] if s["snapshot-id"] == current]
    held["snapshot-log"] = [s for s in held["snapshot-log"] if s["snapshot-id"] == current]
    kept = {held["current-schema-id"], *(s.get("schema-id") for s in held["snapshots"])}
    held["schemas"] = [s for s in held["schemas"] if s["schema-id"] in kept]
    if without_lists:
        for key in ONLY_LISTS:
            held.pop(key)
        for snapshot in held["snapshots"]:
            snapshot.pop("schema-id", None)
    location = f"{table.location}/metadata/90000-trimmed-{held['last-updated-ms']}.metadata.json"
    lake.store.put_new(location, json.dumps(held).encode())
    lake.catalog.swap([PointerSwap(parse_table_name(table.name), table.metadata_location, location)])
    table.refresh()


def _column(name: str, kind: Type) -> NestedField:
    return NestedField(next(_PLACEHOLDERS), name, kind)


def _holds_unknown(kind: Type) -> bool:
    return isinstance(kind, UnknownType) or any(_holds_unknown(f.type) for f in children(kind))


def _arrow_rows(fields: tuple[NestedField, ...], rows: list[Row]) -> pa.Table:
    arrays: list[Any] = [arrow_values([row[f.field_id] for row in rows], f.type) for f in fields]
    return pa.Table.from_arrays(arrays, schema=pa.schema([plain_field(f) for f in fields]))
