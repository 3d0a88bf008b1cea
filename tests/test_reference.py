"""The API reference (docs/site): every public name is in it, and its examples do what they show.

`make site` renders the pages; what can go wrong without a build is checked here.
"""

import ast
import doctest
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

import icefield
from icefield.cache import settings as cache_settings
from icefield.catalog.rest.settings import REST_PROPERTIES
from icefield.cli.commands.inspect import inspect as inspect_command
from icefield.config.configuration import _PARSERS as SETTINGS
from icefield.config.file import CONFIG_VARIABLE
from icefield.inspect.metadata_tables import METADATA_TABLES
from icefield.properties.table import COLUMN_PROPERTIES, OPTIONAL_PROPERTIES, TABLE_PROPERTIES

REPOSITORY = Path(__file__).parent.parent
GUIDE = REPOSITORY / "docs" / "guide.md"
SITE = REPOSITORY / "docs" / "site"
PAGES = sorted(SITE.rglob("*.rst"))
# For engines and tests; the verbs of users do not need them.
INTERNAL = {
    "Lake.ambient",
    "Lake.catalog",
    "Lake.head",
    "Lake.source",
    "Lake.store",
    "Table.commit_head",
    "TableEvolution.steps",
    "using",
    "noting",
    "leasing",
    "pinning",
}
DIRECTIVE = re.compile(r"^\.\. (currentmodule|auto\w+):: ([\w.]+)\n((?:   :.*\n)*)", re.MULTILINE)


# What the docs call the handles of users.
HANDLES = {
    "change": icefield.TableEvolution,
    "lake": icefield.Lake,
    "orders": icefield.Table,
    "scan": icefield.TableScan,
    "staging": icefield.Table,
    "stock": icefield.Table,
    "table": icefield.Table,
    "tx": icefield.Transaction,
    "view": icefield.View,
}
CALL = re.compile(rf"(?<![\w.])({'|'.join(HANDLES)})\.(\w+)(\([^()\n]*\))?")
PROSE = [*(REPOSITORY / "docs").glob("*.md"), *(REPOSITORY / "examples").glob("*.md")]
PROSE += [page for page in REPOSITORY.glob("*.md") if page.name != "CHANGELOG.md"]  # which may name what was removed


def unknown_calls(text: str) -> Iterator[str]:
    """Yield the calls of handles in a text that name no verb, or a keyword that the verb does not have."""
    for name, verb, arguments in CALL.findall(text):
        if not arguments:
            continue
        found = getattr(HANDLES[name], verb, None)
        if found is None:
            yield f"{name}.{verb}"
        elif callable(found):
            known = inspect.signature(found).parameters
            if any(each.kind is each.VAR_KEYWORD for each in known.values()):
                continue  # such as the DataFrames of lake.sql
            yield from (f"{name}.{verb}({key}=)" for key in re.findall(r"[(,] *(\w+)=", arguments) if key not in known)


def documented() -> dict[str, Any]:
    """Return what the pages show, by qualified name: a class with :members: shows all its public members."""
    found: dict[str, Any] = {}
    for page in PAGES:
        module = "icefield"
        for directive, name, options in DIRECTIVE.findall(page.read_text()):
            if directive == "currentmodule":
                module = name
                continue
            shown: Any = import_module(module)
            for part in name.split("."):
                shown = getattr(shown, part)
            found[name] = shown
            if ":members:\n" in options:
                found |= {f"{name}.{member}": getattr(shown, member) for member in public_members(shown)}
    return found


def public_members(handle: type) -> list[str]:
    return [name for name in dir(handle) if not name.startswith("_") and name not in dir(Exception)]


def test_every_public_name_is_in_the_reference() -> None:
    shown = documented()
    handles = [name for name in icefield.__all__ if inspect.isclass(getattr(icefield, name))]
    members = {
        f"{name}.{member}"
        for name in handles
        if name.startswith(("Lake", "Table", "Append", "Transaction", "View"))
        for member in public_members(getattr(icefield, name))
    }
    wanted = {name for name in members | set(icefield.__all__) if not INTERNAL & {name, name.split(".")[-1]}}
    assert wanted - shown.keys() == set()


def test_everything_in_the_reference_has_a_docstring() -> None:
    assert [name for name, shown in documented().items() if not inspect.getdoc(shown)] == []


def test_arguments_are_described_by_their_names() -> None:
    """An argument list that a docstring has is that of its signature: a rename shows here."""
    for name, shown in documented().items():
        if not inspect.isroutine(shown):
            continue
        _, has_list, text = (inspect.getdoc(shown) or "").partition("Args:\n")
        described = re.findall(r"^    (\w+): ", text, re.MULTILINE)
        parameters = list(inspect.signature(shown).parameters)
        assert bool(described) == bool(has_list), name
        assert [argument for argument in described if argument not in parameters] == [], name


@pytest.mark.parametrize("page", [page for page in PAGES if ">>> " in page.read_text()], ids=lambda page: page.stem)
def test_examples_do_what_they_show(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    report: list[str] = []
    test = doctest.DocTestParser().get_doctest(page.read_text(), {}, page.name, str(page), 0)
    runner = doctest.DocTestRunner()
    runner.run(test, out=report.append)
    assert report == []
    assert runner.tries > 1


def test_settings_and_properties_are_in_the_reference() -> None:
    page = (SITE / "configuration.rst").read_text() + generated_settings()
    variables = re.findall(r'"(ICEFIELD_[A-Z]+)"', "".join(p.read_text() for p in sources()))
    cache = {cache_settings.MEMORY, cache_settings.DIRECTORY, cache_settings.DISK}
    assert CONFIG_VARIABLE in variables
    assert [name for name in {*REST_PROPERTIES, *cache, *variables, *SETTINGS} if f"``{name}``" not in page] == []
    # The table of properties is made from the code; each needs one sentence to show.
    every = (*TABLE_PROPERTIES, *OPTIONAL_PROPERTIES, *COLUMN_PROPERTIES)
    assert [known for known in every if not known.doc.strip()] == []


def generated_settings() -> str:
    """Return the names that the directives of the page show, which need Sphinx, as they show them."""
    spec = spec_from_file_location("documented", SITE / "documented.py")
    assert spec is not None
    assert spec.loader is not None
    code = module_from_spec(spec)
    spec.loader.exec_module(code)
    modules = re.findall(r"^\.\. listed-properties:: ([\w.]+)$", (SITE / "configuration.rst").read_text(), re.MULTILINE)
    assert "\n.. lake-settings::\n" in (SITE / "configuration.rst").read_text()
    rows = [*code.lake_settings(), *(row for module in modules for row in code.listed_properties(module))]
    assert [row for row in rows if not row[-1]] == []
    return " ".join(f"``{cell}``" for row in rows for cell in row[:-1])


def test_every_page_is_in_the_contents_of_the_site() -> None:
    listed = (SITE / "contents.txt").read_text().split()
    assert [page.stem for page in (REPOSITORY / "docs").glob("*.md") if f"/docs/{page.stem}" not in listed] == [
        "README"
    ]


def test_the_guide_has_every_table_property() -> None:
    keys = [known.key for known in (*TABLE_PROPERTIES, *OPTIONAL_PROPERTIES)]
    keys += [f"{known.prefix}NAME" for known in COLUMN_PROPERTIES]
    listed = set(re.findall(r"[\w.-]+", " ".join(re.findall(r"^\| ([\w., -]+) \|", GUIDE.read_text(), re.MULTILINE))))
    assert [key for key in keys if key not in listed] == []


def test_the_guide_and_the_help_have_every_metadata_table() -> None:
    section = GUIDE.read_text().partition("## Metadata tables and changes\n")[2].partition("\n## ")[0]
    words = re.findall(r"\w+", inspect_command.help or "")
    assert [name for name in METADATA_TABLES if f"`{name}`" not in section] == []
    assert [name for name in METADATA_TABLES if name not in words] == []


def sources() -> list[Path]:
    return sorted(Path(inspect.getfile(icefield)).parent.rglob("*.py"))


@pytest.mark.parametrize("page", PROSE, ids=lambda page: page.name)
def test_verbs_that_the_docs_name_exist_with_their_keywords(page: Path) -> None:
    assert list(unknown_calls(page.read_text())) == []


def test_verbs_that_messages_and_docstrings_name_exist() -> None:
    constants = (
        node.value
        for module in sorted((REPOSITORY / "src").rglob("*.py"))
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Constant)
    )
    assert [call for text in constants if isinstance(text, str) for call in unknown_calls(text)] == []


def test_finds_verbs_that_do_not_exist() -> None:
    planted = "with `change.widen_column(…)`, orders.append(rows, token=1)\n    orders.count(engine='local')\n"
    assert list(unknown_calls(planted)) == ["change.widen_column", "orders.append(token=)"]


def test_every_example_script_is_on_the_site() -> None:
    page = (SITE / "examples.rst").read_text()
    scripts = sorted((SITE.parent.parent / "examples").glob("*.py"))
    assert [path.name for path in scripts if f"/examples/{path.name}\n" not in page] == []
