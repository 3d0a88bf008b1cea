"""`--json` of every command: one document on stdout, whatever the command does."""

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Icefield

from icefield.cli.main import COMMANDS

T = "shop.orders"
# A call of each command on a table with two branches; several calls, where a command has commands of its own.
CALLS: dict[str, tuple[str, ...]] = {
    "tables": (),
    "create": ("shop.new", "id long"),
    "register": ("shop.again", "{metadata}"),
    "rename": (T, "shop.sales"),
    "relocate": ("--dry-run",),
    "describe": (T,),
    "evolve": ("add", T, "note", "string"),
    "properties": (T,),
    "set-location": (T, "{folder}/lake/elsewhere"),
    "statistics": (T, "--compute"),
    "upgrade": (T, "--yes"),
    "drop": (T, "--yes"),
    "dropped": (),
    "purge": ("--yes",),
    "namespaces": (),
    "namespace": ("shop",),
    "create-namespace": ("other",),
    "drop-namespace": ("empty", "--yes"),
    "views": (),
    "ingest": (T, "rows.jsonl"),
    "append": (T, "rows.jsonl"),
    "overwrite": (T, "rows.jsonl", "--yes"),
    "delete": (T, "--where", "id = 1", "--yes"),
    "delete-files": (T, "{file}", "--yes"),
    "update": (T, "--set", "name='x'", "--where", "id = 1", "--yes"),
    "upsert": (T, "rows.jsonl", "--on", "id"),
    "merge": (T, "rows.jsonl", "--on", "id", "--update-all", "--insert-all", "--yes"),
    "compact": (T,),
    "rewrite-manifests": (T,),
    "rewrite-deletes": (T,),
    "convert-deletes": (T,),
    "expire": (T, "--yes"),
    "forget": (T, "--where", "id = 1", "--dry-run"),
    "orphans": (T, "--yes"),
    "sweep": (T, "--yes"),
    "leases": (),
    "upkeep": ("plan",),
    "fsck": (),
    "report": (),
    "sql": ("SHOW TABLES IN shop",),
    "query": (T,),
    "count": (T,),
    "min-max": (T, "id"),
    "explain": (T,),
    "files": (T,),
    "inspect": (T, "files"),
    "appends": (T,),
    "changed-files": (T,),
    "snapshots": (T,),
    "history": (T,),
    "log": (T,),
    "diff": (T, "main", "audit"),
    "refs": (T,),
    "branch": (T, "more"),
    "tag": (T, "q1"),
    "lake-branch": ("release",),
    "lake-tag": ("q1",),
    "publish": (T, "audit"),
    "rebase": (T, "audit"),
    "cherry-pick": (T, "{audit}", "--dry-run"),
    "revert": (T, "{last}", "--dry-run"),
    "rollback": (T, "{snapshot}"),
    "undo": (T,),
    "tree": (T,),
    "doctor": ("--read-only",),
    "completion": ("bash",),
}
# Commands that need more than a table: files outside of the lake, a view, a dropped table, or a minute.
ELSEWHERE = {
    "demo": "test_demo.py",
    "undrop": "test_upkeep.py",
    "add-files": "test_add_files.py",
    "view": "test_views.py",
    "create-view": "test_views.py",
    "drop-view": "test_views.py",
}


def test_every_command_is_called() -> None:
    assert {str(command.name) for command in COMMANDS} == {*CALLS, *ELSEWHERE}
    for name, file in ELSEWHERE.items():
        assert f'"{name}"' in (Path(__file__).parent / file).read_text(), name


@pytest.mark.every_case
@pytest.mark.parametrize("name", CALLS)
def test_a_command_writes_one_document(orders: Icefield, tmp_path: Path, name: str) -> None:
    orders("create-namespace", "empty")
    orders("branch", T, "audit")
    orders("append", T, "rows.jsonl", "--branch", "audit")
    orders("append", T, "rows.jsonl")
    snapshots = orders("snapshots", T, "--json").json
    values = {
        "metadata": orders("describe", T, "--json").json["metadata-file"],
        "folder": tmp_path.as_uri(),
        "file": orders("files", T, "--json").json[0]["file-path"],
        "snapshot": snapshots[0]["snapshot-id"],
        "audit": snapshots[1]["snapshot-id"],
        "last": orders("describe", T, "--json").json["current-snapshot"]["snapshot-id"],
    }
    if name == "register":
        orders("drop", T, "--yes")
    done = orders(name, *(each.format(**values) for each in CALLS[name]), "--json")
    assert done.code == 0, done.err
    assert "\x1b" not in done.out
    json.loads(done.out)
