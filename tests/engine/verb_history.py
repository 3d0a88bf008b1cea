"""Random histories of every verb that changes rows, on several engines, with a look at the table after every step.

The rows and the expressions are those of `merge_model`, and so is the model. What comes in addition: upserts, also by
equality deletes, their conversion, overwrites, compaction, and more evolution of columns and partitions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

import pyarrow as pa
from tests.engine.merge_model import (
    KEYS,
    LINEAGE,
    OF_TABLE,
    AsSource,
    ClauseCase,
    Expected,
    History,
    MergeCase,
    ModelRow,
    Values,
    equal,
    expect_merge,
    random_rows,
    without_sides,
)

from icefield.engine.choose import EngineName
from icefield.lake import Lake
from icefield.types.arrow import arrow_schema
from icefield.types.transforms import Void

STEPS = 6
WIDER = {"int": "long", "decimal(20, 2)": "decimal(30, 2)"}
UPSERT = [ClauseCase("matched", "update"), ClauseCase("not_matched", "insert")]
# Those that select rows without Spark.
OVERWRITTEN = OF_TABLE[:3]
Verb = Callable[[], None]
Look = Callable[["VerbHistory"], None]


@dataclass(frozen=True)
class Place:
    """Where a history has its table."""

    lake: Lake
    name: str
    location: str | None = None


class VerbHistory(History):
    """One history in progress. look: is called with the table after every step."""

    def __init__(
        self,
        place: Place,
        seed: int,
        engines: Mapping[EngineName, AsSource],
        look: Look,
    ) -> None:
        self.engines, self.look = engines, look
        engine, as_source = next(iter(engines.items()))
        super().__init__(place.lake, Random(seed), engine, as_source, place.name, place.location)
        self.wider: str | None = WIDER.get(self.kind)
        self.fields = 0
        self.steps: list[object] = []

    def run(self, other: Verb | None = None, *, by_equality: bool = True) -> None:
        """Make steps.

        other: a step of another writer, after every second one of ours. by_equality: with upserts by equality deletes.
        """
        self._append()
        verbs: list[Verb] = [*[self._change] * 4, self._append, self._overwrite, self._compact]
        verbs += [self._evolve_again, self._evolve_again]
        # Upserts refuse floating-point keys, as identifier fields and equality deletes do in the specification.
        has_keys = self.kind != "double"
        verbs += [self._upsert] if has_keys else []
        verbs += [self._upsert_by_equality, self._convert] if by_equality and has_keys and self.version > 1 else []
        for step in range(STEPS):
            self.engine, self.as_source = self.random.choice(list(self.engines.items()))
            self.random.choice(verbs)()
            if other is not None and step % 2 == 1:
                other()

    def compare(self, what: object) -> None:
        """Compare after a step of another writer."""
        self._compare(what)

    def _compare(self, what: object) -> None:
        self.steps.append((self.engine, what))
        super()._compare(self.steps)
        self.look(self)

    def expected_rows(self, *, lineage: bool) -> pa.Table:
        """Return the rows of the model."""
        schema = arrow_schema(self.table.schema)
        if lineage:
            schema = pa.schema([*schema, *(pa.field(name, pa.int64()) for name in LINEAGE)])
        rows = [{**row.values, **dict(zip(LINEAGE, (row.row_id, row.updated), strict=True))} for row in self.rows]
        return pa.Table.from_pylist(rows, schema)

    def _upsert(self) -> None:
        rows, on = self._rows_with_keys(), self.random.choice((("id",), ("id", "k")))
        given = self._arrow(rows)
        expected = expect_merge(self.rows, MergeCase(rows, None, on, None, UPSERT), self.default)
        self._check(
            expected,
            lambda mode: self.table.upsert(self.as_source(given), list(on), mode=mode, engine=self.engine),
            ("upsert", on),
        )

    def _upsert_by_equality(self) -> None:
        rows = self._rows_with_keys()
        given, keys = self._arrow(rows), [row["id"] for row in rows]
        kept = [row for row in self.rows if not any(equal(row.values["id"], key) for key in keys)]
        expected = Expected([*kept, *map(ModelRow, rows)])
        expected.counts["inserted"] = len(rows)
        self._check(
            expected,
            lambda _: self.table.upsert(self.as_source(given), ["id"], mode="equality", engine=self.engine),
            "upsert by equality",
        )

    def _convert(self) -> None:
        if self.random.random() < 0.5:
            self.table.convert_equality_deletes(engine=self.engine)
        else:
            self.table.rewrite_deletes(convert_equality=self.random.random() < 0.5, engine=self.engine)
        self._compare("convert or rewrite deletes")

    def _overwrite(self) -> None:
        rows, where = random_rows(self, self.random.randint(0, 4)), self.random.choice(OVERWRITTEN)
        self.table.overwrite(
            self.as_source(self._arrow(rows)),
            without_sides(where.given),
            check_rows=False,
            engine=self.engine,
        )
        kept = [row for row in self.rows if where.evaluate(row.values, {}) is not True]
        self.rows = [*kept, *map(ModelRow, rows)]
        self._compare(("overwrite", where.given))

    def _compact(self) -> None:
        self.table.compact(engine=self.engine)
        self._compare("compact")

    def _evolve_again(self) -> None:
        what = self.random.choice(("add", "drop", "move", "widen", "drop field"))
        with self.table.evolve() as change:
            if what == "drop" and self.has_n:
                change.drop_column("n")
                self.has_n = False
                for row in self.rows:
                    row.values = {name: value for name, value in row.values.items() if name != "n"}
            elif what == "move":
                change.move_column(self.random.choice(("id", "c", "s")), after="b")
            elif what == "widen" and self.wider:
                change.update_column_type("id", self.wider)
                self.wider = None
            elif what == "drop field":
                # A dropped field of a table of version 1 stays, and is void.
                for part in [part for part in self.table.spec.fields if not isinstance(part.transform, Void)][:1]:
                    change.drop_partition_field(part.name)
        if what == "add":
            self.fields += 1
            self._evolve(self.fields)
        self._compare(what)

    def _rows_with_keys(self) -> list[Values]:
        """Return rows without nulls in keys, each key once."""
        rows = random_rows(self, self.random.randint(1, 5))
        chosen: list[Values] = []
        for row in rows:
            key = self.random.choice(KEYS[self.kind])
            if not any(equal(key, other["id"]) for other in chosen):
                chosen.append({**row, "id": key, "k": row["k"] or "k"})
        return chosen

    def _arrow(self, rows: list[Values]) -> pa.Table:
        return pa.Table.from_pylist(rows, arrow_schema(self.table.schema))
