"""Exit codes, errors, shared options, and what is not loaded."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Icefield

from icefield.cli import lakes
from icefield.cli.main import COMMANDS

pytestmark = pytest.mark.every_case

SCRIPT = Path(sys.executable).with_name("icefield")


LOADED = """
import sys
from icefield.cli.main import run
for arguments in {calls!r}:
    assert run(arguments) == 0, arguments
sys.stderr.write("|".join({{"pyspark", "py4j", "pyarrow", "duckdb"}} & sys.modules.keys()))
"""


def loaded_after(*calls: tuple[str, ...], folder: Path) -> set[str]:
    """Run command lines in a fresh process, and say which heavy modules they loaded."""
    command = [sys.executable, "-c", LOADED.format(calls=calls)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.rpartition("\n")[2].split("|")) - {""}


def test_help_names_every_command_and_its_purpose(icefield: Icefield, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")  # a line for each
    shown = icefield("--help")
    assert shown.code == 0
    for command in COMMANDS:
        assert f"│ {command.name} " in shown.out
        assert str(command.short_help) in shown.out


def test_without_arguments_help_is_shown(icefield: Icefield) -> None:
    assert icefield().out == icefield("--help").out


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: str(c.name))
def test_every_command_has_help_and_the_shared_options(icefield: Icefield, command: object) -> None:
    shown = icefield(str(getattr(command, "name", "")), "--help")
    assert shown.code == 0
    for option in ("--lake", "--json", "--debug"):
        assert option in shown.out


def test_help_loads_neither_pyspark_nor_arrow(tmp_path: Path) -> None:
    assert loaded_after(("--help",), folder=tmp_path) == set()


@pytest.mark.slow
def test_commands_load_no_pyspark(orders: Icefield, tmp_path: Path) -> None:
    commands = ("tables", "describe", "snapshots", "history", "files", "explain", "count", "query", "tree")
    calls: list[tuple[str, ...]] = [(name,) if name == "tables" else (name, "shop.orders") for name in commands]
    calls += [("ingest", "shop.orders", "rows.jsonl"), ("drop", "shop.orders", "--yes"), ("demo", "--help")]
    assert loaded_after(*calls, folder=tmp_path) == {"pyarrow"}


def test_the_installed_script_runs(orders: Icefield, tmp_path: Path) -> None:
    done = subprocess.run([SCRIPT, "tables"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "shop.orders\n", "")


@pytest.mark.slow
def test_a_reader_that_goes_away_gets_no_traceback(orders: Icefield, tmp_path: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", f"'{SCRIPT}' query shop.orders --format csv --limit 0 | true"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nonsense",), "No such command 'nonsense'"),
        (("query",), "Missing argument 'TABLE'"),
        (("query", "shop.orders", "--limit", "-1"), "Invalid value for '--limit'"),
        (("query", "shop.orders", "--format", "xml"), "Invalid value for '--format'"),
        (("query", "shop.none"), "no table shop.none"),
        (("query", "../x"), "table name '../x'"),
        (("query", "shop.orders", "--where", "nom = 1"), "no column 'nom'"),
        (("query", "shop.orders", "--where", "id = )("), "cannot parse the filter"),
        (("query", "shop.orders", "--select", "id,nom"), "no column 'nom'"),
        (("query", "shop.orders", "--as-of", "12"), "no snapshot 12"),
        (("query", "shop.orders", "--as-of", "staging"), "no branch or tag 'staging'"),
        (("create", "shop.orders", "id long"), "shop.orders"),
        (("create", "shop.x", "id lung"), "unknown type 'lung'"),
        (("create", "shop.x", "id long", "--partition-by", "week(id)"), "cannot parse the transform 'week(id)'"),
        (("create", "shop.x", "id long", "--property", "key"), "--property has no key or no ="),
        (("--lake", "ftp://host", "tables"), "ftp is not supported"),
    ],
)
def test_a_fault_of_the_user_is_one_sentence_and_exit_1(
    orders: Icefield, arguments: tuple[str, ...], message: str
) -> None:
    ran = orders(*arguments)
    assert (ran.code, ran.out) == (1, "")
    first, *rest = ran.err.splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert all(line.startswith("hint: ") for line in rest)


def test_a_near_miss_is_answered_with_a_hint(orders: Icefield) -> None:
    assert orders("query", "shop.orders", "--where", "nme = 'x'").err.splitlines()[1] == "hint: Did you mean 'name'?"


def test_a_fault_of_ours_says_so_and_exits_2(orders: Icefield, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object, **__: object) -> None:
        raise KeyError("pointer")

    monkeypatch.setattr(lakes, "open_described_lake", broken)
    ran = orders("tables")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines() == [
        "error: KeyError: 'pointer' (this is a bug in icefield)",
        "hint: Run it again with --debug",
    ]


@pytest.mark.parametrize("where", ["before", "after", "environment"])
def test_tracebacks_are_for_those_who_ask(orders: Icefield, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    ways = {
        "before": ("--debug", "query", "a.b"),
        "after": ("query", "a.b", "--debug"),
        "environment": ("query", "a.b"),
    }
    if where == "environment":
        monkeypatch.setenv("ICEFIELD_DEBUG", "1")
    ran = orders(*ways[where])
    assert ran.code == 1
    assert "Traceback" in ran.err
    assert "NoSuchTable" in ran.err


def test_the_lake_is_named_before_or_after_the_command_or_by_the_environment(
    orders: Icefield, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "lake").rename(tmp_path / "other")
    assert orders("tables").err.startswith("error: no lake at lake\n")
    assert orders("--lake", "other", "tables").code == 0
    assert orders("tables", "--lake", "other").code == 0
    monkeypatch.setenv("ICEFIELD_LAKE", "other")
    assert orders("tables").out == "shop.orders\n"
    assert orders("--lake", "elsewhere", "tables").err.startswith("error: no lake at elsewhere\n")


def test_asking_a_directory_without_a_lake_makes_none(icefield: Icefield, tmp_path: Path) -> None:
    assert icefield("tables").code == 1
    assert list(tmp_path.iterdir()) == []


def test_piped_output_has_no_control_codes(orders: Icefield, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    for command in ("describe", "tree", "snapshots", "query", "files"):
        ran = orders(command, "shop.orders")
        assert "\x1b" not in ran.out + ran.err
        assert ran.out == "\n".join(line.rstrip() for line in ran.out.split("\n"))


def test_no_color_leaves_no_code_even_where_colour_is_forced(orders: Icefield, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" in orders("query", "shop.orders").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in orders("query", "shop.orders").out
    assert "\x1b" not in orders("--help").out


def test_arguments_that_are_not_utf8_and_paths_that_are_too_long_are_the_users(icefield: Icefield) -> None:
    for arguments in (["ingest", "a.t", "\udcff.csv"], ["create-view", "a.v", "SELECT '\udcff'"]):
        ran = icefield(*arguments)
        assert (ran.code, ran.out) == (1, "")
        assert "is not UTF-8" in ran.err
    ran = icefield("--lake", "y" * 5000, "tables")
    assert ran.code == 1
    assert len(ran.err) < 500


@pytest.mark.parametrize("group", [(), ("evolve",), ("upkeep",)])
def test_a_group_without_a_command_shows_its_help(icefield: Icefield, group: tuple[str, ...]) -> None:
    ran = icefield(*group)
    assert (ran.code, "Commands" in ran.out, ran.err) == (0, True, "")
