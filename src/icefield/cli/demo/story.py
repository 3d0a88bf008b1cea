"""The demo, chapter by chapter; every number in it is computed from the table at that moment."""

import shlex
import shutil
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from icefield.cli.commands.tree import draw_tree, read_tree
from icefield.cli.demo.directory import ORDERS
from icefield.cli.demo.duckdb import Totals, ask_duckdb
from icefield.cli.demo.orders import SCHEMA, customer_of
from icefield.cli.demo.race import Landed, arrow_processes, share_out
from icefield.cli.demo.row_engines import DemoRows
from icefield.cli.output import Column, Narrator, counted, grid, moment
from icefield.cli.pictures.tree_model import TreeLimits
from icefield.cli.progress import show_progress, show_wait
from icefield.cli.values import grid_cell
from icefield.config.connect import connect
from icefield.errors import IcefieldError
from icefield.lake import Lake
from icefield.plan.versions import AsOf
from icefield.showing import format_bytes
from icefield.table.table import Table

PARTITION_BY = ("day(ts)", "bucket(4, customer_id)")
WINDOW = "ts >= TIMESTAMP '2026-01-17 09:00:00+00:00' AND ts < TIMESTAMP '2026-01-18 09:00:00+00:00'"
BAD_DAY = "ts >= TIMESTAMP '2026-01-20 00:00:00+00:00' AND ts < TIMESTAMP '2026-01-21 00:00:00+00:00'"
TREE = TreeLimits(snapshots=4, manifests=4, files=2)


@dataclass(frozen=True)
class Day:
    """The orders of the bad day in one version of the table."""

    snapshot_id: int | None
    rows: pa.Table

    @property
    def revenue(self) -> Decimal:
        """Their revenue."""
        total: Decimal = pc.sum(self.rows.column("amount")).as_py() or Decimal()
        return total


class Story:
    """The demo on one lake; each chapter is printed while it runs."""

    def __init__(self, narrator: Narrator, lake: Lake, directory: Path, rows: int, engine: DemoRows) -> None:
        self._tell = narrator
        self._lake = lake
        self._directory = directory
        self._rows = rows
        self._began = lake.ambient.monotonic()
        self._engine = engine
        self._table: Table

    def create(self) -> None:
        """Create the table."""
        self._tell.chapter("A table in a directory")
        self._table = create_orders(self._lake)
        self._tell.say(f"{ORDERS} is an Apache Iceberg table, partitioned by {' and '.join(PARTITION_BY)}.")
        self._tell.say(f"Its pointer is a row in {self._directory}/catalog.db; its files are next to it.")

    def ingest(self) -> dict[str, object]:
        """Run all writers concurrently, and check that no row was lost or duplicated."""
        self._tell.chapter(f"{self._rows:,} orders from several writers at once")
        tasks = share_out(str(self._directory), ORDERS, self._rows, self._engine.turns)
        by_arrow = [t for t in tasks if t.writer.startswith("arrow")]
        by_spark = [t for t in tasks if t not in by_arrow]
        threads = f" and {counted(len(by_spark), 'thread')} with Spark DataFrames" if by_spark else ""
        self._tell.say(
            f"{counted(len(by_arrow), 'process', 'processes')} with Arrow{threads} append to it, "
            f"{sum(len(t.slices) for t in tasks)} commits in total."
        )
        landed: list[Landed] = []
        with arrow_processes(by_arrow) as processes:
            self._engine.start(self._lake, create_orders, self._rows)
            with show_progress("appending", self._rows, "orders") as steps:
                for commit in self._engine.race(by_spark, processes):
                    landed.append(commit)
                    steps.advance(commit.rows, f"commit {len(landed)} succeeded, from {commit.writer}")
        return self._check_ingest(landed)

    def _check_ingest(self, landed: list[Landed]) -> dict[str, object]:
        self._show_writers(landed)
        known = {s.snapshot_id for s in self._table.snapshots()}
        missing = [c for c in landed if c.snapshot_id not in known]
        with show_wait(f"counting with {self._engine.name}"):
            rows, distinct = self._engine.count(self._table.scan(select=["order_id"]))
        on_disk, in_table = len(list(self._directory.rglob("*.parquet"))), self._table.scan().files().num_rows
        if missing or (rows, distinct, on_disk) != (self._rows, self._rows, in_table):
            found = f"{rows} rows, {distinct} ids, {len(missing)} commits missing, {on_disk} files for {in_table}"
            raise IcefieldError(f"the orders do not add up: {found}")
        lost = sum(commit.lost_races for commit in landed)
        self._tell.say(
            f"All {len(landed)} commits are in the table's history. {counted(lost, 'time')} a writer found that"
        )
        self._tell.say("another had come first, and proposed its commit again on top of the other.")
        self._tell.say(
            f"The directory holds {on_disk:,} data files, and the table names {in_table:,}: no retry wrote one again."
        )
        self._tell.say(
            f"{self._engine.name} counts {rows:,} rows with {distinct:,} distinct order ids: none lost, none "
            "duplicated."
        )
        return {"commits": len(landed), "lost_races": lost, "rows": rows, "files": in_table, "files_on_disk": on_disk}

    def _show_writers(self, landed: list[Landed]) -> None:
        rows, commits, races = Counter[str](), Counter[str](), Counter[str]()
        for commit in landed:
            rows[commit.writer] += commit.rows
            commits[commit.writer] += 1
            races[commit.writer] += commit.lost_races
        columns = [Column("writer"), *(Column(t, "right") for t in ("commits", "orders", "lost races"))]
        self._tell.show(grid(columns, [[w, commits[w], rows[w], races[w]] for w in sorted(rows)]))

    def prune(self) -> dict[str, object]:
        """Run a query that reads few files."""
        self._tell.chapter("A query that reads little")
        customer = customer_of(self._rows * 17 // 30)  # the first order of 18 January
        where = f"customer_id = {customer} AND {WINDOW}"
        self._tell.say(f"What did customer {customer} order from 9:00 on 17 January until 9:00 on the 18th?")
        columns = ["order_id", "ts", "country", "status", "amount"]
        scan = self._table.scan(where, select=columns)
        explanation = scan.explain()
        self._tell.show(str(explanation))
        with show_wait(f"running it with {self._engine.name}"):
            found = self._engine.read(scan, "ts")
        self._tell.say(f"{self._engine.name} reads those files alone, and finds {counted(found.num_rows, 'order')}:")
        cells = [[grid_cell(value) for value in row.values()] for row in found.slice(0, 5).to_pylist()]
        self._tell.show(grid([Column(name) for name in columns], cells))
        return explanation.as_dict()

    def repair(self) -> dict[str, object]:
        """Write wrong rows, compare versions, and repair the table."""
        self._tell.chapter("A bad write, and the way back")
        good = self._day()
        self._tell.say("A job that takes euros for cents overwrites the orders of 20 January with amounts times 100.")
        with show_wait(f"overwriting with {self._engine.name}"):
            bad = self._table.overwrite(self._engine.with_wrong_amounts(self._table.scan(BAD_DAY)), where=BAD_DAY)
        assert bad is not None
        versions = [
            ("before the bad write", good),
            ("now", self._day()),
            (f"as of snapshot {good.snapshot_id}", self._day(good.snapshot_id)),
            (f"as of {moment(bad.timestamp_ms - 1)}", self._day(moment(bad.timestamp_ms - 1))),
        ]
        self._table.overwrite(self._table.scan(BAD_DAY, as_of=good.snapshot_id).to_arrow(), where=BAD_DAY)
        repaired = self._day()
        versions.append(("now, repaired", repaired))
        columns = [Column("20 January"), *(Column(title, "right") for title in ("snapshot", "orders", "revenue"))]
        self._tell.show(grid(columns, [[v, str(d.snapshot_id), d.rows.num_rows, d.revenue] for v, d in versions]))
        if not repaired.rows.equals(good.rows):
            raise IcefieldError("the repair did not restore the rows of before the bad write")
        self._tell.say(
            "The repair is one more snapshot: that day's rows as of the good one, written back. They are the"
        )
        self._tell.say("same row for row, and the bad snapshot stays in the history, to be looked into.")
        return {"good_snapshot_id": str(good.snapshot_id), "bad_snapshot_id": str(bad.snapshot_id)}

    def draw(self) -> None:
        """Draw the metadata tree."""
        self._tell.chapter("What the table is made of")
        self._tell.show(draw_tree(read_tree(self._lake, ORDERS, TREE)))

    def ask_peer(self) -> dict[str, object]:
        """Read the same rows with another engine."""
        self._tell.chapter("The same rows, read by DuckDB")
        with show_wait("asking DuckDB"):
            peer = ask_duckdb(self._table.metadata_location)
        if peer.totals is None:
            self._tell.say(f"DuckDB is skipped ({peer.why_not}).")
            return {"duckdb": None, "why_not": peer.why_not}
        ours = self._totals()
        columns = [
            Column(""),
            Column(f"{self._engine.name} through icefield", "right"),
            Column(f"DuckDB {peer.version}", "right"),
        ]
        pairs = [(name, getattr(ours, name), getattr(peer.totals, name)) for name in Totals.__dataclass_fields__]
        self._tell.show(grid(columns, [[name.replace("_", " "), a, b] for name, a, b in pairs]))
        if ours != peer.totals:
            raise IcefieldError("DuckDB and icefield read different rows")
        self._tell.say("DuckDB read the metadata file, without icefield. They agree.")
        return {"duckdb": peer.version, "agrees": True}

    def end(self, program: str) -> None:
        """Print what the demo leaves behind, and commands to try next."""
        self._tell.chapter("Try it yourself")
        files = [path for path in self._directory.rglob("*") if path.is_file()]
        kinds = Counter(path.suffix for path in files)
        size = sum(path.stat().st_size for path in files)
        snapshots = counted(len(self._table.snapshots()), "snapshot")
        metadata = kinds[".avro"] + kinds[".json"]
        data = f"{kinds['.parquet']:,} data files of {snapshots}"
        took = self._lake.ambient.monotonic() - self._began
        self._tell.say(
            f"{self._directory} holds {format_bytes(size)}: the catalog, {data}, {metadata:,} metadata files."
        )
        self._tell.say(f"All this took {took:.0f} seconds. Next:")
        start = f"{program} --lake {shlex.quote(str(self._directory))}"
        for command in (
            f"query {ORDERS} --where \"country = 'AT' AND amount > 500\" --select order_id,ts,amount",
            f"explain {ORDERS} --where \"ts < TIMESTAMP '2026-01-02 00:00:00+00:00'\"",
            f"snapshots {ORDERS}",
        ):
            self._tell.say(f"   {start} {command}")

    def _day(self, as_of: AsOf | None = None) -> Day:
        scan = self._table.scan(BAD_DAY, as_of=as_of)
        return Day(scan.snapshot_id, scan.to_arrow().read_all().sort_by("order_id").combine_chunks())

    def _totals(self) -> Totals:
        with show_wait(f"adding up with {self._engine.name}"):
            return self._engine.totals(self._table.scan())


def create_orders(lake: Lake) -> Table:
    """Create the table of the demo."""
    return lake.create_table(ORDERS, SCHEMA, partition_by=PARTITION_BY)


def tell(narrator: Narrator, directory: Path, rows: int, program: str, engine: DemoRows) -> dict[str, object]:
    """Run all chapters, and return their results."""
    with connect(directory) as lake:
        story = Story(narrator, lake, directory, rows, engine)
        story.create()
        result: dict[str, object] = {"lake": str(directory), "table": ORDERS}
        result["ingest"] = story.ingest()
        result["explain"] = story.prune()
        result["repair"] = story.repair()
        story.draw()
        result["peer"] = story.ask_peer()
        story.end(program)
    return result


def program_text(program: Path) -> str:
    """Return how this program was called, so that the next command can be typed as shown."""
    if shutil.which(program.name) == str(program) or program.name != "icefield":
        return "icefield"
    here = Path.cwd()
    return shlex.quote(str(program.relative_to(here) if program.is_relative_to(here) else program))
