"""Iceberg Java changes rows of a history's table: the same statements as ours, as SQL."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.engine.merge_model import (
    OF_TABLE,
    OF_TABLE_VALUES,
    ClauseCase,
    Expected,
    Expression,
    MergeCase,
    expect_change,
    expect_merge,
    random_merge,
    random_values,
    source_schema,
)
from tests.engine.verb_history import VerbHistory
from tests.interop.handed_table import HandedTable
from tests.interop.iceberg_java import IcebergJava

from icefield.expr.parse.ast import Lit

VERBS = ("delete", "update", "merge")


class JavaWriter:
    """Changes rows of a history by Iceberg Java. folder: for the rows of sources."""

    def __init__(self, java: IcebergJava, handed: HandedTable, folder: Path) -> None:
        self.java, self.handed, self.folder = java, handed, folder
        self.changes = 0

    @property
    def name(self) -> str:
        """The name of the table in Java's catalog."""
        return f"java.{self.handed.namespace}.{self.handed.name}"

    def change(self, history: VerbHistory) -> None:
        """Run a random statement, and compare."""
        random = history.random
        modes = ("copy-on-write", "merge-on-read") if history.version > 1 else ("copy-on-write",)
        history.table.set_properties({f"write.{verb}.mode": random.choice(modes) for verb in VERBS})
        verb = random.choice((*VERBS, "merge"))
        where = random.choice(OF_TABLE)
        if verb == "delete":
            expected, sql = expect_change(history.rows, where, None), f"DELETE FROM {self.name} target"
            sql += f" WHERE {where.given}"
        elif verb == "update":
            values = random_values(random, OF_TABLE_VALUES)
            expected = expect_change(history.rows, where, values)
            sql = f"UPDATE {self.name} target SET {_assignments(values)} WHERE {where.given}"
        else:
            expected, sql = self._merge(history)
        self.handed.hand_over(history.table)
        self.java.sql(sql)
        self.changes += 1
        history.table = self.handed.ours()
        history.rows = expected.rows
        history.compare(("Iceberg Java", sql))

    def _merge(self, history: VerbHistory) -> tuple[Expected, str]:
        while True:
            merge = _that_java_knows(random_merge(history))
            expected = expect_merge(history.rows, merge, history.default)
            if not expected.may_fail:
                break
        path = self.folder / f"{self.handed.name}-{self.changes}.parquet"
        pq.write_table(pa.Table.from_pylist(merge.source, source_schema(history)), path)
        on = merge.on if isinstance(merge.on, str) else " AND ".join(f"target.{k} = source.{k}" for k in merge.keys)
        clauses = " ".join(map(_clause, merge.clauses))
        return expected, f"MERGE INTO {self.name} target USING parquet.`{path}` source ON {on} {clauses}"


def _that_java_knows(merge: MergeCase) -> MergeCase:
    """Insert all columns: Spark 3.5 refuses to leave one out."""
    clauses = [replace(clause, values=None) if clause.effect == "insert" else clause for clause in merge.clauses]
    return replace(merge, clauses=clauses)


def _clause(clause: ClauseCase) -> str:
    when = clause.when.replace("_", " ").upper()
    condition = f" AND ({clause.condition.given})" if clause.condition else ""
    if clause.effect == "delete":
        effect = "DELETE"
    elif clause.values is None:
        effect = {"update": "UPDATE SET *", "insert": "INSERT *"}[clause.effect]
    else:
        effect = f"UPDATE SET {_assignments(clause.values)}"
    return f"WHEN {when}{condition} THEN {effect}"


def _assignments(values: dict[str, Expression]) -> str:
    return ", ".join(f"target.{name} = {_sql(value.given)}" for name, value in values.items())


def _sql(given: Any) -> str:
    match given:
        case None:
            return "NULL"
        case Lit(value=str() as text):
            return "'" + text.replace("'", "\\'") + "'"
        case _:
            return str(given)
