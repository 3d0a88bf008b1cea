"""Worked examples at the top of modules: every one in `src` is run, and the hard modules have one."""

import ast
import doctest
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from icefield.codec.avro import program
from icefield.commit.snapshot import moved_rows
from icefield.expr.prune import project, residual
from icefield.plan import residuals
from icefield.spark.read import native_deletes

SOURCE = Path(__file__).parent.parent / "src"
# The delete index has a table instead: tests/plan/test_delete_index.py reads it.
HARD: list[ModuleType] = [program, moved_rows, native_deletes, project, residual, residuals]


@cache
def names_of_modules_with_examples() -> list[str]:
    return [
        ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        for path in sorted(SOURCE.rglob("*.py"))
        if ">>> " in (text := path.read_text()) and ">>> " in (ast.get_docstring(ast.parse(text)) or "")
    ]


@pytest.mark.parametrize("name", names_of_modules_with_examples())
def test_the_example_of_a_module_does_what_it_shows(name: str) -> None:
    module, report = import_module(name), list[str]()
    test = doctest.DocTestParser().get_doctest(module.__doc__ or "", dict(vars(module)), name, module.__file__, 0)
    doctest.DocTestRunner().run(test, out=report.append)
    assert report == []


@pytest.mark.parametrize("module", HARD, ids=lambda module: str(module.__name__))
def test_hard_modules_open_with_an_example(module: ModuleType) -> None:
    assert module.__name__ in names_of_modules_with_examples()
