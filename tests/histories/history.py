"""A random history of a table: what was done to it, and what must be in it afterwards, at every version.

All choices come from one `Random`: of a seed, so that a history can be made again elsewhere, or of hypothesis, which
then finds a shorter history that fails in the same way.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.histories.evolving import Evolving
from tests.histories.features import EVERYTHING, Features
from tests.histories.filters import draw_filter, split
from tests.histories.model import KEY_ID, Fields, Model, Row, initial_value, written_value
from tests.histories.shapes import draw_field, draw_name, draw_partition_term
from tests.histories.values import arrow_values, draw_value, plain_field
from tests.peers.normal import Row as NormalRow

from icefield.errors import InvalidInput, SchemaMismatch, Unsupported
from icefield.lake import Lake
from icefield.table.table import Table
from icefield.types.datatypes import LongType, NestedField, UnknownType, walk
from icefield.types.schema import Schema, assign_fresh_ids

# Unsupported: a struct of nothing but columns of unknown type has no place in a Parquet file.
REFUSALS = (InvalidInput, SchemaMismatch, Unsupported)
MOST_ROWS = 4
LATEST_VERSION = 3


@dataclass(frozen=True)
class Past:
    """A snapshot, and what was in the table then, under the columns of then."""

    snapshot_id: int
    fields: Fields
    rows: list[NormalRow]


class History:
    """A table and its model, step by step."""

    def __init__(self, random: Random, lake: Lake, name: str, features: Features = EVERYTHING) -> None:
        self.random = random
        self.lake = lake
        self.features = features
        self.steps: list[str] = []
        self.refused: list[str] = []
        self.past: list[Past] = []
        self.replaced: set[int] = set()  # the keys of rows that upserts replaced since the last check
        self.reborn: set[int] = set()  # the keys of rows that are other rows now: an equality delete knows no row ids
        self._keys = 0
        self._files = 0
        self.model, self.table = self._create(name)

    def run(self, steps: int) -> "History":
        """Make steps."""
        for _ in range(steps):
            self.step()
        return self

    def step(self) -> None:
        """Do one thing to the table; what the table refuses must leave it as it is."""
        verb = self.random.choice(self._verbs())
        before, head = self._content(), self.table.metadata.current_snapshot_id
        try:
            verb()
        except REFUSALS as refusal:
            self.refused.append(str(refusal))
            self.steps.append("refused")
            assert self._content() == before, "what was refused changed the table"
            return
        metadata = self.table.metadata
        now = metadata.current_snapshot
        # Upkeep that came first in the same step may have made the snapshot before the columns changed.
        if now is not None and now.snapshot_id != head and now.schema_id == metadata.current_schema_id:
            self.past.append(Past(now.snapshot_id, self.model.fields, self.model.normal_rows()))

    def _content(self) -> object:
        """Return what a change that is refused must leave; the mode of deletes is set before."""
        metadata = self.table.metadata
        return metadata.current_snapshot_id, metadata.schema, metadata.spec, metadata.sort_order

    def _verbs(self) -> list[Callable[[], None]]:
        """Return what may be done now; what is done often is there several times."""
        verbs = [self._append, self._append, self._append, self._overwrite, self._overwrite, self._overwrite_all]
        verbs += [self._evolve, self._evolve, self._evolve, self._change_layout]
        if self.model.format_version < max(self.features.versions):
            verbs.append(self._upgrade)
        if self.features.adopts_files:
            verbs.append(self._add_file)
        verbs += [self._delete, self._delete, self._upsert, self._compact, self._rewrite_manifests]
        return verbs

    def _create(self, name: str) -> tuple[Model, Table]:
        version = self.random.choice(self.features.versions)
        names = ["key"]
        fields = [NestedField(1, "key", LongType(), required=True)]
        for _ in range(self.random.randrange(1, 5)):
            names.append(draw_name(self.random, names))
            fields.append(draw_field(self.random, names[-1], self.features.kinds_of(version)))
        schema = assign_fresh_ids(Schema(tuple(fields)))
        terms = [draw_partition_term(self.random, schema, self.features) for _ in range(self.random.randrange(3))]
        partition_by = list(dict.fromkeys(term for term in terms if term))
        table = self.lake.create_table(name, schema, partition_by=partition_by, format_version=version)
        self.steps.append(f"create in version {version}")
        return Model(schema.fields, version, schema.highest_field_id), table

    def _append(self) -> None:
        rows, given = self._draw_rows(self.random.randrange(MOST_ROWS + 1))
        self.table.append(given)
        self.model.rows += rows
        self.steps.append("append")

    def _overwrite(self) -> None:
        where = draw_filter(self.random, self.model)
        _, others = split(self.model, where)
        rows, given = self._draw_rows(self.random.randrange(MOST_ROWS))
        self.table.overwrite(given, where=where, check_rows=False)
        self.model.rows = others + rows
        self.steps.append("overwrite where")

    def _delete(self) -> None:
        where = draw_filter(self.random, self.model)
        _, others = split(self.model, where)
        mode = self._draw_mode("write.delete.mode")
        self.table.delete(where)
        self.model.rows = others
        self.steps.append(f"delete by {mode}")

    def _upsert(self) -> None:
        rows, given = self._draw_rows(self.random.randrange(1, MOST_ROWS))
        known = [row[KEY_ID] for row in self.model.rows]
        keys = [self.random.choice(known) if known and self.random.random() < 0.5 else row[KEY_ID] for row in rows]
        if len(set(keys)) < len(keys):
            keys = [row[KEY_ID] for row in rows]
        for row, key in zip(rows, keys, strict=True):
            row[KEY_ID] = key
        name = self.model.key.name
        given = given.set_column(given.column_names.index(name), given.schema.field(name), pa.array(keys, pa.int64()))
        mode = self._draw_mode("write.merge.mode")
        self.table.upsert(given, on=[name])
        before = {row[KEY_ID]: row for row in self.model.rows}
        self.replaced |= before.keys() & set(keys)
        unnamed = [f.field_id for f in self.model.fields if f.name not in given.column_names]
        for row in rows:
            # What the rows do not name stays as it is.
            row.update({i: before[row[KEY_ID]].get(i) for i in unnamed if row[KEY_ID] in before})
        self.model.rows = [row for row in self.model.rows if row[KEY_ID] not in keys] + rows
        self.steps.append(f"upsert by {mode}")

    def _draw_mode(self, key: str) -> str:
        in_place = self.features.deletes_in_place and self.model.format_version > 1
        mode = self.random.choice(("copy-on-write", "merge-on-read") if in_place else ("copy-on-write",))
        self.table.set_properties({key: mode})
        return mode

    def _compact(self) -> None:
        self.table.compact()
        self.steps.append("compact")

    def _rewrite_manifests(self) -> None:
        self.table.rewrite_manifests()
        self.steps.append("rewrite manifests")

    def _overwrite_all(self) -> None:
        rows, given = self._draw_rows(self.random.randrange(1, MOST_ROWS))
        self.table.overwrite(given)
        self.model.rows = rows
        self.steps.append("overwrite")

    def _evolve(self) -> None:
        draft = copy.deepcopy(self.model)
        with self.table.evolve() as change:
            evolving = Evolving(self.random, self.table, draft, change, self.features)
            done = [evolving.change_columns() for _ in range(self.random.choice((1, 1, 2, 3)))]
        draft.map_names()
        draft.last_id = self.table.metadata.last_column_id  # what ends as it was takes no ids
        self.model = draft
        self.steps.append(", ".join(done))

    def _change_layout(self) -> None:
        with self.table.evolve() as change:
            done = Evolving(self.random, self.table, self.model, change, self.features).change_layout()
        self.steps.append(done)

    def _upgrade(self) -> None:
        later = [v for v in self.features.versions if v > self.model.format_version]
        version = self.random.choice(later)
        self.table.upgrade_format_version(version)
        self.model.format_version = version
        self.steps.append(f"upgrade to {version}")

    def _add_file(self) -> None:
        """Take in a Parquet file without field ids; with one row, whose partition its footer proves."""
        names = copy.copy(self.model.names)
        if self.model.names is None:
            self.model.names = {}
            self.model.map_names()
        try:
            rows, given = self._draw_adoptable()
            location = f"{self.table.location}/added/{self._files}.parquet"
            self._files += 1
            self.lake.store.put_new(location, _parquet(given))
            self.table.add_files(location)
        except REFUSALS:
            self.model.names = names
            raise
        self.model.rows += rows
        self.steps.append("add_files")

    def _draw_rows(self, count: int) -> tuple[list[Row], pa.Table]:
        """Draw rows, and Arrow data for them that leaves out some columns, as callers do."""
        fields = [f for f in self.model.fields if f.field_id == KEY_ID or self.random.random() > 0.1]
        left_out = [f for f in self.model.fields if f not in fields]
        fields += [f for f in left_out if f.required and f.write_default is None]
        return self._rows_of(fields, count, written_value)

    def _draw_adoptable(self) -> tuple[list[Row], pa.Table]:
        fields = [f for f in self.model.fields if self.model.is_mapped(f) and _is_simple(f)]
        if self.model.key not in fields:
            raise InvalidInput("the key has no name in files")
        return self._rows_of(fields, 1, initial_value)

    def _rows_of(self, fields: list[NestedField], count: int, missing: Any) -> tuple[list[Row], pa.Table]:
        rows = []
        for _ in range(count):
            row = {f.field_id: missing(f) for f in self.model.fields}
            row |= {f.field_id: draw_value(self.random, f) for f in fields}
            row[KEY_ID] = self._keys
            self._keys += 1
            rows.append(row)
        columns = [arrow_values([row[f.field_id] for row in rows], f.type) for f in fields]
        return rows, pa.Table.from_arrays(columns, schema=pa.schema([plain_field(f) for f in fields]))


def _is_simple(field: NestedField) -> bool:
    """Return whether others can write a column: it is of a known type, and within it nothing is required."""
    inside = [f for path, f in walk(field.type) if path[-1] != "key"]
    return not any(isinstance(f.type, UnknownType) for f in (field, *inside)) and not any(f.required for f in inside)


def _parquet(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]
