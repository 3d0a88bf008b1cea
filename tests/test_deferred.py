"""Deferred imports: what they stand for exists, and is only used where a stand-in works."""

import ast
import pickle
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import icefield
from icefield.deferred import Deferred, deferred_imports, resolved

SOURCE = Path(icefield.__file__).parent
BLOCK = "with deferred_imports(__name__):"
FILES = [path for path in sorted(SOURCE.rglob("*.py")) if f"\n{BLOCK}" in path.read_text()]


def name_of(path: Path) -> str:
    return ".".join(("icefield", *path.relative_to(SOURCE).with_suffix("").parts))


def deferred_names(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield each name that a block binds, with its module and its name there; that of a module is empty."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.With) and ast.unparse(node.items[0].context_expr).startswith("deferred_imports"):
            for line in node.body:
                if isinstance(line, ast.ImportFrom):
                    yield from ((alias.asname or alias.name, str(line.module), alias.name) for alias in line.names)
                elif isinstance(line, ast.Import):
                    yield from ((alias.asname or alias.name, alias.name, "") for alias in line.names)


def used_at_once(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the names that are evaluated when a module is loaded, or that Python compares by identity."""
    places: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            places += [*node.bases, *node.decorator_list]
        elif isinstance(node, ast.FunctionDef):
            places += [*node.decorator_list, *node.args.defaults, *(each for each in node.args.kw_defaults if each)]
        elif isinstance(node, ast.ExceptHandler) and isinstance(node.type, ast.Name | ast.Tuple):
            places += [node.type] if isinstance(node.type, ast.Name) else _names(node.type.elts)
        elif isinstance(node, ast.MatchClass):
            places += _names([node.cls])  # a class that is taken from a module loads that
    for place in places:
        yield from ((each.id, each.lineno) for each in ast.walk(place) if isinstance(each, ast.Name))


def _names(values: list[ast.expr]) -> list[ast.expr]:
    return [each for each in values if isinstance(each, ast.Name)]


def test_modules_with_blocks_are_found() -> None:
    assert len(FILES) > 20


@pytest.mark.every_case
@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_deferred_names_exist_and_are_no_plain_values(path: Path) -> None:
    for bound, module, name in deferred_names(path):
        found = import_module(module)
        value = getattr(found, name, None) or import_module(f"{module}.{name}") if name else found
        # A stand-in is equal to nothing; it can be asked what a collection contains.
        assert not isinstance(value, str | bytes | int | float), f"{bound} of {path.name} is a constant"


@pytest.mark.every_case
@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_deferred_names_are_not_needed_while_their_module_is_loaded(path: Path) -> None:
    text = path.read_text()
    assert "from __future__ import annotations" in text
    names = {bound for bound, _, _ in deferred_names(path)}
    assert [f"{path.name}:{line} {name}" for name, line in used_at_once(ast.parse(text)) if name in names] == []


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Make a module that defers imports of another one."""
    (tmp_path / "late_one.py").write_text("class Thing:\n    def __init__(self, n=0): self.n = n\nSEEN = []\n")
    (tmp_path / "early_one.py").write_text(
        "from icefield.deferred import deferred_imports\n"
        "import json\n"
        f"{BLOCK}\n"
        "    import late_one\n"
        "    from late_one import Thing\n"
        "def make(): return Thing(3)\n"
        "def is_thing(value): return isinstance(value, Thing)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield import_module("early_one")
    for name in ("early_one", "late_one"):
        sys.modules.pop(name, None)


def test_a_name_is_loaded_on_first_use(module: Any) -> None:
    assert isinstance(module.Thing, Deferred)
    assert "late_one" not in sys.modules
    assert module.make().n == 3
    assert "late_one" in sys.modules
    assert not isinstance(module.Thing, Deferred)
    assert module.is_thing(module.make())
    assert not module.is_thing(3)


def test_a_stand_in_is_pickled_as_what_it_stands_for(module: Any) -> None:
    stand_in = module.Thing
    assert pickle.loads(pickle.dumps(stand_in)) is resolved(stand_in) is module.Thing


def test_other_imports_of_the_time_are_made_at_once() -> None:
    with deferred_imports("somebody else"):
        assert isinstance(__import__("colorsys"), ModuleType)
