"""icefield demo sql: statements over two tables that another process changes in transactions."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from icefield.cli.demo.accounts import FIRST_BALANCE, first_accounts
from icefield.cli.demo.directory import NAMESPACE
from icefield.cli.demo.stage import Stage, require, total
from icefield.cli.output import Column, counted, grid
from icefield.cli.progress import show_wait
from icefield.cli.values import grid_cell
from icefield.engine.choose import EngineName

CHECKING, SAVINGS = "shop.checking", "shop.savings"
TRANSFERS = 12
SUM = """
SELECT sum(balance) AS total
FROM (SELECT balance FROM shop.checking UNION ALL SELECT balance FROM shop.savings) AS both
""".strip()


def tell_sql(stage: Stage, *, local: bool) -> dict[str, object]:
    """Query two tables while money moves between them, then change rows and look back, all in SQL."""
    statements = _Sql(stage, "local" if local else None)
    tables = statements.create()
    reads = statements.query_while_writing()
    changed = statements.change()
    old = statements.look_back()
    return {"engine": statements.engine or "spark", "tables": tables, **reads, **changed, **old}


class _Sql:
    def __init__(self, stage: Stage, engine: EngineName | None) -> None:
        self._stage = stage
        self.engine = engine

    def create(self) -> list[str]:
        self._stage.tell.chapter("Two tables")
        if self.engine is None:
            with show_wait("starting Spark"):
                self._stage.lake.spark.conf.set("spark.sql.shuffle.partitions", "4")
        self._run(f"CREATE NAMESPACE {NAMESPACE}")
        for name in (CHECKING, SAVINGS):
            self._run(f"CREATE TABLE {name} (id BIGINT NOT NULL, balance BIGINT NOT NULL) USING iceberg")
            self._stage.lake.table(name).append(first_accounts(self._stage.rows))
        self._show("SELECT count(*) AS accounts, sum(balance) AS total FROM shop.checking")
        return self._stage.lake.tables()

    def query_while_writing(self) -> dict[str, object]:
        """Add up both tables in one statement, while another process moves money between them."""
        self._stage.tell.chapter("One statement reads all tables at one moment")
        say = self._stage.tell.say
        say(f"A process moves money from {CHECKING} to {SAVINGS}, in {TRANSFERS} transactions over both tables.")
        say("At the same time, this statement runs over and over:")
        self._stage.tell.show(SUM)
        mover = self._stage.actor("mover", "move_between", tables=[CHECKING, SAVINGS], batches=TRANSFERS)
        totals: list[int] = []
        with mover, ThreadPoolExecutor(1) as pool, show_wait("querying while money moves"):
            moving = pool.submit(lambda: list(mover.events()))
            while not moving.done() or not totals:
                totals.append(self._one(SUM))
        moves = moving.result()
        expected = 2 * FIRST_BALANCE * self._stage.rows
        require(set(totals) == {expected}, f"a query saw money on its way: {sorted(set(totals))}, not {expected}")
        say(
            f"{counted(len(totals), 'query', 'queries')} while {counted(len(moves), 'transaction')} committed: the "
            f"total was always {totals[0]:,}. That of one table alone has changed:"
        )
        self._show("SELECT sum(balance) AS total FROM shop.checking")
        now = self._one("SELECT sum(balance) FROM shop.checking")
        require(now != expected // 2, "no money has moved")
        return {"queries": len(totals), "moves": len(moves), "again": total(moves, "again")}

    def change(self) -> dict[str, object]:
        """Change rows by MERGE, UPDATE and DELETE, and compare with arithmetic."""
        self._stage.tell.chapter("Rows change in SQL, without jars")
        before = self._balances()
        self._show(
            "MERGE INTO shop.savings t USING shop.checking s ON t.id = s.id AND t.id < 10 "
            "WHEN MATCHED AND t.id = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET balance = t.balance + s.balance"
        )
        self._show("UPDATE shop.savings SET balance = balance + 1 WHERE id >= 10 AND id < 20")
        self._show("DELETE FROM shop.savings WHERE id = 20")
        added = {row["id"]: row["balance"] for row in self._rows("SELECT id, balance FROM shop.checking WHERE id < 10")}
        expected = {
            key: value + added.get(key, 0) + (10 <= key < 20) for key, value in before.items() if key not in (0, 20)
        }
        found = self._balances()
        require(found == expected, f"{sum(found.get(k) != v for k, v in expected.items())} balances are wrong")
        self._stage.tell.say(f"All {len(found):,} rows are what plain Python computes from the rows before.")
        return {"changed": sum(before[key] != value for key, value in found.items())}

    def look_back(self) -> dict[str, object]:
        """Read an old version, and run a procedure."""
        self._stage.tell.chapter("Time travel and upkeep")
        first = self._stage.lake.table(SAVINGS).snapshots()[0].snapshot_id
        query = f"SELECT sum(balance) AS total FROM {SAVINGS} VERSION AS OF {first}"  # noqa: S608 - of our own names
        (row,) = self._show(query)
        old = row["total"]
        require(old == FIRST_BALANCE * self._stage.rows, f"the first version has another total: {old}")
        before = self._balances()
        self._show("CALL system.rewrite_data_files(table => 'shop.savings', options => map('rewrite-all', 'true'))")
        require(self._balances() == before, "compaction changed rows")
        self._stage.tell.say("The first version is as it was, and compaction changed no row.")
        return {"first_total": old}

    def _balances(self) -> dict[int, int]:
        rows = self._stage.lake.table(SAVINGS).scan().to_arrow().read_all().to_pylist()
        return {row["id"]: row["balance"] for row in rows}

    def _show(self, statement: str) -> list[dict[str, Any]]:
        self._stage.tell.show(f"sql> {statement}")
        rows = self._rows(statement)
        if rows:
            cells = [[grid_cell(value) for value in row.values()] for row in rows]
            self._stage.tell.show(grid([Column(name, "right") for name in rows[0]], cells))
        return rows

    def _one(self, statement: str) -> int:
        (row,) = self._rows(statement)
        return int(next(iter(row.values())))

    def _rows(self, statement: str) -> list[dict[str, Any]]:
        result = self._run(statement)
        return [] if result is None else _arrow(result).to_pylist()

    def _run(self, statement: str) -> Any:
        return self._stage.lake.sql(statement, engine=self.engine)


def _arrow(result: Any) -> Any:
    return result.toArrow() if hasattr(result, "toArrow") else result
