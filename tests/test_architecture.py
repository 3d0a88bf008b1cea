"""The house: which room may import which. A room imports only rooms above it in this list."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "icefield"
PAGE = SOURCE.parent.parent / "docs" / "architecture.md"

# Bottom-up; the comment says what each room may not know.
ROOMS = (
    "errors",
    "secrets",
    "ambient",
    "arguments",
    "properties",
    "iceberg_properties",
    "property_checks",
    "types",
    "model",
    "expr",
    "codec",
    "storage",
    "parquet",
    "catalog",
    "scan",
    "commit",
    "rows",
    "engine",
    "table_scan",
    "table_changes",
    "table_inspection",
    "table_definition",
    "table_evolution",
    "table_head",
    "table_adoption",
    "table_write",
    "table_delta",
    "table_compaction",
    "table_history",
    "table",
    "transaction",
    "view",
    "lake",
    "configuration",
    "configuration_file",
    "configuration_sources",
    "connection",
    "spark",
    "cli",
)
PURE = ("types", "model", "expr", "codec")
IMPURE_MODULES = {"os", "io", "pathlib", "socket", "sqlite3", "subprocess", "tempfile", "threading", "time", "shutil"}
PURE_EXCEPTIONS = {("codec", "io")}  # a stream over bytes in memory
# Loaded by name at run time, so that metadata verbs start neither pyspark nor a compiler.
LATE = {
    "icefield/rows.py": "icefield.spark.engine, .session",
    "icefield/__init__.py": "icefield.*",
    "icefield/codec/avro_engine.py": "icefield.codec.avro_compiled",
    "icefield/connection.py": "icefield.catalog.postgres, .postgres_lane, .storage.object_store",
}
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    inside = path.relative_to(SOURCE)
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


def imports_of(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports by a relative name"
            yield node.module or "", node.lineno


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_room_imports_only_rooms_above_it(path: Path) -> None:
    room = room_of(path)
    if room == "__init__":
        return
    assert room in ROOMS, f"{room} is not in the list of rooms"
    for name, line in imports_of(path):
        if name.startswith("icefield."):
            other = name.split(".")[1]
            assert ROOMS.index(other) <= ROOMS.index(room), f"{path.name}:{line} {room} imports {other}"


def test_the_page_shows_the_rooms_in_their_order() -> None:
    table = [line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert re.findall(r"`(\w+)`", "".join(table)) == list(ROOMS)


def test_only_the_spark_room_imports_pyspark() -> None:
    users = {room_of(p) for p in modules() for name, _ in imports_of(p) if name.split(".")[0] == "pyspark"}
    assert users == {"spark"}


def test_pure_rooms_touch_nothing_of_the_world() -> None:
    for path in modules():
        room = room_of(path)
        if room in PURE:
            used = {name.split(".")[0] for name, _ in imports_of(path)} & IMPURE_MODULES
            assert {(room, name) for name in used} <= PURE_EXCEPTIONS, path


def test_modules_loaded_late_are_listed() -> None:
    late = {f"icefield/{p.relative_to(SOURCE)}" for p in modules() if re.search(r"\bimport_module\(", p.read_text())}
    assert late <= LATE.keys() | {"icefield/cli/main.py"}


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_files_and_functions_stay_short(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= MAX_FILE_LINES
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= MAX_FUNCTION_LINES, f"{path.name}: {node.name} has {length} lines"


def test_every_module_says_what_it_is_for() -> None:
    silent = [str(p.relative_to(SOURCE)) for p in modules() if not ast.get_docstring(ast.parse(p.read_text()))]
    assert silent == []
