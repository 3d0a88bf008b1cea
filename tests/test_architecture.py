"""The architecture: which room may import which modules of which others."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "icefield"
PAGE = SOURCE.parent.parent / "docs" / "architecture.md"

# Bottom-up: a room imports only itself and rooms before it.
ROOMS = (
    "deferred",
    "errors",
    "secrets",
    "ambient",
    "arguments",
    "showing",
    "properties",
    "types",
    "model",
    "metrics",
    "expr",
    "codec",
    "storage",
    "cache",
    "parquet",
    "catalog",
    "backend",
    "leases",
    "marks",
    "plan",
    "commit",
    "engine",
    "dml",
    "upkeep",
    "compaction",
    "history",
    "forget",
    "fsck",
    "report",
    "policy",
    "inspect",
    "explain",
    "table",
    "view",
    "lake",
    "config",
    "telemetry",
    "sql",
    "spark",
    "notebook",
    "cli",
)
# The same inside a room: its packages, bottom-up. Modules beside them may be below or above them.
INSIDE = {
    "catalog": ("sql", "object_store", "rest", "commit_queue"),
    "cli": ("files", "pictures", "commands", "definition", "writing", "history", "sql", "doctor", "demo"),
    "codec": ("avro", "json", "puffin", "manifest"),
    "commit": ("validate", "operations", "snapshot", "actions", "replay"),
    "engine": ("queries",),
    "expr": ("parse", "bind", "prune", "render", "query", "values"),
    "parquet": ("read", "write", "add_files"),
    "plan": ("partition",),
    "spark": ("session", "filters", "read", "write", "change", "views", "sql", "data_source"),
    "sql": ("syntax", "filters", "text", "query", "schema", "rows", "procedures", "commands"),
    "storage": ("object_store",),
    "table": ("reading", "versions", "lakes"),
    "types": ("values",),
}
# The modules of a room that others may import; `x.*` is every module of a package. Rooms of one module have no others.
ALL = ("*",)
DOORS = {
    "cache": ("manifests", "plans", "reading", "settings"),
    "catalog": (
        *("catalog", "memory", "missing", "server", "commit_queue.queue", "object_store.catalog", "sql.sqlite"),
        *("rest.catalog", "rest.fences", "rest.http", "rest.object_store", "rest.settings", "rest.tables"),
    ),
    "cli": (),
    "codec": (
        *(
            "avro.container",
            "avro.engine",
            "manifest.columns",
            "manifest.decode",
            "manifest.encode",
            "manifest.header",
            "rows",
        ),
        *("manifest.inherit", "manifest.list", "manifest.list_schema", "manifest.rewrite", "manifest.rows"),
        "manifest.schema",
        *("json.*", "puffin.deletion_vector", "puffin.puffin", "puffin.theta_sketch"),
    ),
    "commit": (
        *("action", "attempt", "load", "loop", "open_write", "relocate", "view", "actions.*", "snapshot.manifests"),
        *("operations.choose", "operations.locations", "operations.retired_metadata", "operations.tables"),
        "operations.views",
        *(
            "validate.added_files",
            "validate.ancestry",
            "validate.idempotency_key",
            "validate.ownership",
            "validate.read_set",
        ),
        *("replay.apply", "replay.branches", "replay.decisions", "replay.difference"),
        *("replay.net_rows", "replay.row_ids", "replay.rows", "replay.sources"),
        "snapshot.moved_rows",
        *("validate.key_history", "validate.references", "validate.transaction_reads"),
    ),
    "compaction": ALL,
    "config": ALL,
    "dml": ALL,
    "engine": ALL,
    "explain": ALL,
    "forget": ALL,
    "history": ALL,
    "fsck": ("check", "finding", "stored"),
    "report": ("measure", "result"),
    "policy": ("budget", "inline", "result", "run", "settings"),
    "expr": (
        *(
            "bind.bind",
            "bind.bound",
            "bind.literals",
            "parse.ast",
            "parse.builder",
            "parse.datetimes",
            "parse.sql",
            "query.functions",
            "query.lexer",
            "query.select",
            "query.subqueries",
            "query.tokens",
        ),
        *("prune.evaluate", "prune.ordered", "prune.project", "prune.residual", "prune.statistics"),
        *("render.arrow", "render.describe", "render.spark_sql", "render.sql"),
        *("values.assign", "values.bind", "values.conjuncts", "values.scope", "values.value"),
    ),
    "inspect": ("metadata_tables", "source"),
    "leases": ALL,
    "marks": ALL,
    "model": ALL,
    "parquet": (
        "mapped_ids",  # which columns a file has if it lacks field ids, also one that nothing refers to
        *("nan_columns", "add_files.describe", "read.deletes", "read.project", "read.read", "read.read_ahead"),
        *("read.stored_columns", "read.task", "write.conform", "write.data_files", "write.delete_files"),
        *(
            "write.equality_deletes",
            "write.order_check",
            "write.plan",
            "write.partial_rows",
            "write.row_check",
            "write.row_order",
            "write.string_check",
            "write.write",
        ),
    ),
    "plan": (
        *("changes", "counts", "delete_index", "entries", "entries_of_files", "file_statistics", "manifest_list"),
        *("metrics", "min_max", "plan", "planned_files", "residuals", "splits", "tasks", "versions"),
        *("partition.keys", "partition.struct", "partition.values"),
    ),
    "properties": ALL,
    "spark": (),
    "sql": ("execute", "session", "syntax.place", "syntax.script"),
    "storage": (
        *("disk", "local", "location", "memory", "process_lock", "read_ahead", "roots", "routed", "sizes", "store"),
        *("object_store.conditional", "object_store.directory"),
    ),
    "table": (
        "changes",
        "definition",
        "drops",
        "fsck",
        "inspection",
        "lake_sql",
        "lakes.metrics",
        "lakes.namespaces",
        "lakes.refs",
        "lakes.upkeep",
        "merge",
        "reading.readable",
        "scan",
        "table",
        "transaction",
    ),
    "types": ALL,
    "upkeep": ALL,
}
PURE = ("types", "model", "expr", "codec")
IMPURE_MODULES = {"os", "io", "pathlib", "socket", "sqlite3", "subprocess", "tempfile", "threading", "time", "shutil"}
PURE_EXCEPTIONS = {("codec", "io")}  # a stream over bytes in memory
FINDS_THE_LIBRARY = SOURCE / "codec" / "avro" / "library.py"
# Loaded by name at run time, so that metadata verbs do not start pyspark.
LATE = {
    "icefield/engine/rows.py": "icefield.spark.engine, .session.session",
    "icefield/table/lake_sql.py": "icefield.sql.execute",
    "icefield/table/reading/checked_branch.py": "icefield.sql.checks",
    "icefield/sql/local.py": "duckdb",
    "icefield/table/reading/readable.py": "pandas, polars, duckdb",
    "icefield/telemetry.py": "opentelemetry.metrics",
    "icefield/__init__.py": "icefield.*",
    "icefield/deferred.py": "what a block of deferred imports names",
    "icefield/config/connect.py": "icefield.catalog.sql.postgres, .zookeeper, .commit_queue.postgres, "
    ".storage.object_store",
}
# Suites that are about the whole, not about one room; tests/README.md says what each answers.
SUITES = {"bank", "crash", "fuzz", "golden", "histories", "interop", "matrix", "peers", "sim", "torture"}
MAX_MODULES = 16
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60


@cache
def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def import_nodes(path: Path) -> list[ast.Import | ast.ImportFrom]:
    return [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Import | ast.ImportFrom)]


@cache
def is_package(parts: tuple[str, ...]) -> bool:
    return SOURCE.joinpath(*parts).is_dir()


def room_of(path: Path) -> str:
    inside = path.relative_to(SOURCE)
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


def imports_of(path: Path) -> Iterator[tuple[str, int]]:
    for node in import_nodes(path):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        else:
            assert node.level == 0, f"{path}:{node.lineno} imports by a relative name"
            yield node.module or "", node.lineno


def imported_modules(path: Path) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the modules of this package that a module imports, as their parts below `icefield`."""
    for node in import_nodes(path):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("icefield."):
            parts = tuple(str(node.module).split(".")[1:])
            if is_package(parts):
                yield from (((*parts, alias.name), node.lineno) for alias in node.names)
            else:
                yield parts, node.lineno


def is_door(parts: tuple[str, ...]) -> bool:
    doors = DOORS[parts[0]]
    return doors == ALL or ".".join(parts[1:]) in doors or f"{parts[1]}.*" in doors


def test_a_room_imports_only_doors_of_rooms_before_it() -> None:
    wrong = []
    for path in modules():
        room = room_of(path)
        if room in {"__init__", "__main__"}:
            continue
        assert room in ROOMS, f"{room} is not in the list of rooms"
        for parts, line in imported_modules(path):
            if ROOMS.index(parts[0]) > ROOMS.index(room):
                wrong.append(f"{path.relative_to(SOURCE)}:{line} {room} imports {parts[0]}")
            elif parts[0] != room and len(parts) > 1 and not is_door(parts):
                wrong.append(f"{path.relative_to(SOURCE)}:{line} {'.'.join(parts)} is not a door")
    assert wrong == []


def test_a_package_imports_only_packages_before_it_in_its_room() -> None:
    wrong = []
    for path in modules():
        inside = path.relative_to(SOURCE).parts
        if len(inside) < 3:
            continue
        room, package, _ = inside
        order = INSIDE[room]
        for parts, line in imported_modules(path):
            if parts[0] == room and len(parts) == 3 and order.index(parts[1]) > order.index(package):
                wrong.append(f"{path.relative_to(SOURCE)}:{line} {package} imports {parts[1]}")
    assert wrong == []


def test_every_door_is_there_and_used() -> None:
    used = {parts for p in modules() for parts, _ in imported_modules(p) if parts[0] != room_of(p)}
    for room, doors in DOORS.items():
        for door in doors:
            if "*" not in door:
                assert (room, *door.split(".")) in used, f"nobody outside {room} imports {door}"


def test_packages_are_small() -> None:
    for directory in {path.parent for path in modules()}:
        count = sum(path.name != "__init__.py" for path in directory.glob("*.py"))
        assert count <= MAX_MODULES, f"{directory.relative_to(SOURCE)} has {count} modules"


def test_tests_have_a_folder_for_each_room() -> None:
    packages = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    folders = {path.name for path in Path(__file__).parent.iterdir() if any(path.glob("*.py"))}
    assert folders - SUITES == packages
    assert folders >= SUITES


def test_the_page_shows_the_rooms_in_their_order() -> None:
    table = [line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert re.findall(r"`(\w+)`", "".join(table)) == list(ROOMS)


def test_only_the_spark_room_imports_pyspark() -> None:
    users = {room_of(p) for p in modules() for name, _ in imports_of(p) if name.split(".")[0] == "pyspark"}
    assert users == {"spark"}


def test_pure_rooms_touch_nothing_of_the_world() -> None:
    for path in modules():
        room = room_of(path)
        if room in PURE and path != FINDS_THE_LIBRARY:
            used = {name.split(".")[0] for name, _ in imports_of(path)} & IMPURE_MODULES
            assert {(room, name) for name in used} <= PURE_EXCEPTIONS, path


def test_modules_loaded_late_are_listed() -> None:
    late = {f"icefield/{p.relative_to(SOURCE)}" for p in modules() if re.search(r"\bimport_module\(", p.read_text())}
    assert late <= LATE.keys() | {"icefield/cli/main.py"}


def test_files_and_functions_stay_short() -> None:
    for path in modules():
        assert path.read_text().count("\n") <= MAX_FILE_LINES, path
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                assert length <= MAX_FUNCTION_LINES, f"{path.name}: {node.name} has {length} lines"


def test_every_module_says_what_it_is_for() -> None:
    silent = [str(p.relative_to(SOURCE)) for p in modules() if not ast.get_docstring(tree_of(p))]
    assert silent == []


# Where an Arrow table holds the rows of users or of a metadata table, which have columns of any name.
ROWS_OF_USERS = {
    "cache/disk.py": {"_encode"},
    "commit/replay/collided_rows.py": {"_rows_of", "_texts", "_keys", "_changed", "_encoded"},
    "commit/replay/shared_keys.py": {"empty", "read", "keys_of"},
    "commit/validate/transaction_reads.py": {"_same_rows", "rows"},
    "dml/statistics.py": {"write_partition_statistics", "_partition_rows"},
    "plan/changes.py": {"load_changed_files", "_live_files", "_absent_from", "_key", "_with_removers"},
    "plan/counts.py": {"count_by_partition"},
}


def test_metadata_travels_in_typed_columns() -> None:
    """Manifests, entries and files have types of their own; a bare Arrow table says nothing to a type checker."""
    found: dict[str, set[str]] = {}
    for path in modules():
        if room_of(path) not in {"cache", "plan", "commit", "dml", "explain"}:
            continue
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef):
                given = [each.annotation for each in (*node.args.args, *node.args.kwonlyargs)]
                if any("pa.Table" in ast.unparse(a) for a in (*given, node.returns) if a is not None):
                    found.setdefault(str(path.relative_to(SOURCE)), set()).add(node.name)
    assert found == ROWS_OF_USERS


# Settings of one module each, which are free to change on their own.
INDEPENDENT = {"BATCH_ROWS", "FIRST_PAUSE_S", "TRIES"}


def constants_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the constants of a module with their values; those built from others of the module are its own."""
    for node in tree_of(path).body:
        if not isinstance(node, ast.Assign) or "TypeVar(" in (value := ast.unparse(node.value)):
            continue
        targets = [
            each for target in node.targets for each in (target.elts if isinstance(target, ast.Tuple) else [target])
        ]
        names = [target.id.lstrip("_") for target in targets if isinstance(target, ast.Name)]
        yield from (
            (name, value) for name in names if name[:1].isupper() and "_DATE" not in value and "_CLOCK" not in value
        )


def test_a_constant_is_defined_once() -> None:
    found: dict[tuple[str, str], list[str]] = {}
    for path in modules():
        for constant in constants_of(path):
            found.setdefault(constant, []).append(str(path.relative_to(SOURCE)))
    twice = {name: places for (name, _), places in found.items() if len(places) > 1}
    assert {name: places for name, places in twice.items() if name not in INDEPENDENT} == {}
    assert twice.keys() >= INDEPENDENT
