"""Every command that adds a snapshot takes --author and --message, and `log` shows them."""

from pathlib import Path

import pytest
import rich_click as click
from tests.cli.conftest import Icefield

from icefield.cli.main import COMMANDS
from icefield.cli.settings import SnapshotCommand

NOTED = ("--author", "Ada", "--message", "a reason")
# Commands that add a snapshot to the table of the fixture `changed`, or to its branch.
CHANGES: dict[str, tuple[str, ...]] = {
    "ingest": ("shop.orders", "rows.json"),
    "append": ("shop.orders", "rows.json"),
    "overwrite": ("shop.orders", "rows.json", "--where", "id = 9", "--yes"),
    "add-files": ("shop.orders", "lake/extra.parquet"),
    "delete": ("shop.orders", "--where", "id = 1", "--yes"),
    "delete-files": ("shop.orders", "FILE", "--yes"),
    "update": ("shop.orders", "--set", "name='x'", "--where", "id = 2", "--yes"),
    "upsert": ("shop.orders", "rows.json", "--on", "id"),
    "merge": ("shop.orders", "rows.json", "--on", "id", "--update-all", "--yes"),
    "compact": ("shop.orders", "--option", "rewrite-all=true"),
    "rewrite-manifests": ("shop.orders",),
    "publish": ("shop.orders", "staging"),
    "rebase": ("shop.orders", "staging"),
    "cherry-pick": ("shop.orders", "STAGED"),
    "revert": ("shop.orders", "FIRST"),
    "lake-branch": ("staging", "--publish"),
    "sql": ("INSERT INTO shop.orders VALUES (7, NULL, 'x')", "--engine", "local"),
    "forget": ("shop.orders", "--where", "id = 1", "--yes"),
}
# What only makes a snapshot of a table in another state; tests/history/test_notes.py has the verbs.
ELSEWHERE = {"rewrite-deletes", "convert-deletes", "upkeep", "branch", "fsck"}


@pytest.fixture
def changed(orders: Icefield, tmp_path: Path) -> Icefield:
    """A lake with a table, and a branch that has diverged from main."""
    (tmp_path / "rows.json").write_text('{"id": 9, "ts": null, "name": "new"}\n')
    orders("branch", "shop.orders", "staging")
    orders("append", "shop.orders", "rows.json", "--branch", "staging")
    orders("append", "shop.orders", "rows.json")
    return orders


def takes_notes(command: click.Command) -> bool:
    if isinstance(command, click.Group):
        return any(takes_notes(below) for below in command.commands.values())
    return isinstance(command, SnapshotCommand)


def test_the_list_has_every_command_that_takes_notes() -> None:
    assert {command.name for command in COMMANDS if takes_notes(command.load())} == CHANGES.keys() | ELSEWHERE


@pytest.mark.every_case
@pytest.mark.parametrize("name", CHANGES)
def test_a_command_says_who_and_why(changed: Icefield, name: str, tmp_path: Path) -> None:
    log = changed("log", "shop.orders", "--json").json
    known = {entry["snapshot-id"] for entry in log}
    values = {
        "STAGED": next(entry["snapshot-id"] for entry in log if "staging" in entry["refs"]),
        "FIRST": log[-1]["snapshot-id"],
        "FILE": changed("files", "shop.orders", "--json").json[0]["file-path"],
    }
    if name == "add-files":
        (tmp_path / "lake" / "extra.parquet").write_bytes(Path(values["FILE"].removeprefix("file://")).read_bytes())
    ran = changed(name, *(values.get(each, each) for each in CHANGES[name]), *NOTED)
    assert ran.code == 0, ran.err
    new = [entry for entry in changed("log", "shop.orders", "--json").json if entry["snapshot-id"] not in known]
    assert new
    for entry in new:
        assert (entry["author"], entry["message"]) == ("Ada", "a reason")
    shown = changed("log", "shop.orders", "--graph").out
    assert shown.count("a reason (Ada)") == len(new)


def test_the_environment_names_the_author(changed: Icefield, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICEFIELD_AUTHOR", "Grace")
    changed("append", "shop.orders", "rows.json")
    changed("append", "shop.orders", "rows.json", "--author", "Ada")
    found = changed("log", "shop.orders", "--json").json
    assert [entry["author"] for entry in found[:3]] == ["Ada", "Grace", None]


def test_a_table_that_is_created_from_files_says_so_too(icefield: Icefield, tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text('{"id": 9}\n')
    assert icefield("ingest", "shop.new", "rows.json", "--create", "--yes", *NOTED).code == 0
    (entry,) = icefield("log", "shop.new", "--json").json
    assert (entry["author"], entry["message"]) == ("Ada", "a reason")
