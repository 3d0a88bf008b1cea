"""icefield branch, tag: create, move, rename and drop a branch or tag of a table, and say how long it is kept."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import rich_click as click

from icefield.cli.commands.upkeep import parse_age
from icefield.cli.lakes import open_lake
from icefield.cli.options import table_argument
from icefield.cli.output import print_json, print_text, safe
from icefield.cli.questions import ask_first, asking_options
from icefield.cli.settings import LakeCommand, Settings, SnapshotCommand
from icefield.errors import InvalidInput, NoSuchSnapshot
from icefield.model.snapshot import RefKind
from icefield.table.table import Table

if TYPE_CHECKING:
    from icefield.plan.versions import AsOf

F = TypeVar("F", bound=Callable[..., Any])
_MS = 1000


def _age(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    return None if text is None else int(parse_age(text).total_seconds() * _MS)


def _ref_options(command: F) -> F:
    for option in (
        click.option("--max-age", "max_ref_age_ms", metavar="AGE", callback=_age, help="Drop it after so long: 30d."),
        click.option("--replace", is_flag=True, help="Move it, if it exists."),
        click.option("--drop", is_flag=True, help="Drop it."),
        click.option("--rename", metavar="NAME", help="Give it another name."),
        click.option(
            "--at", metavar="VERSION",
            help="Where it starts: a snapshot id, a time, a branch or a tag. [default: the head of main]",
        ),
    ):  # fmt: skip
        command = option(command)
    return asking_options()(command)


@click.command(cls=SnapshotCommand)
@table_argument()
@click.argument("name", metavar="NAME")
@_ref_options
@click.option("--keep-last", "min_snapshots_to_keep", metavar="N", type=click.IntRange(1), help="Keep so many.")
@click.option("--max-snapshot-age", "max_snapshot_age_ms", metavar="AGE", callback=_age, help="Expire older ones: 5d.")
@click.pass_obj
def branch(settings: Settings, /, table: str, name: str, **options: Any) -> None:
    """Create, move, rename or drop a branch. With an age or number alone, set how long an existing one is kept."""
    _run(settings, table, name, RefKind.BRANCH, **options)


@click.command(cls=LakeCommand)
@table_argument()
@click.argument("name", metavar="NAME")
@_ref_options
@click.pass_obj
def tag(settings: Settings, /, table: str, name: str, **options: Any) -> None:
    """Create, move, rename or drop a tag: a name for one version. With --max-age alone, set how long it is kept."""
    _run(settings, table, name, RefKind.TAG, **options)


def _run(  # noqa: PLR0913 - one parameter per option
    settings: Settings,
    table: str,
    name: str,
    kind: RefKind,
    *,
    drop: bool,
    rename: str | None,
    at: "AsOf | None",
    replace: bool,
    dry_run: bool,
    yes: bool,
    **rules: int | None,
) -> None:
    kept = {key: value for key, value in rules.items() if value is not None}
    if sum([drop, rename is not None, at is not None or replace or bool(kept)]) > 1:
        raise InvalidInput("--drop, --rename, and the options of a new one exclude each other")
    with open_lake(settings) as lake:
        handle = lake.table(table)
        exists = name in handle.refs()
        if (drop or rename is not None) and not exists:
            raise NoSuchSnapshot(f"{table} has no {kind} {name}", hint=f"It has {', '.join(handle.refs()) or 'none'}")
        if drop:
            remove = handle.drop_branch if kind is RefKind.BRANCH else handle.drop_tag
            what = f"{kind} {name} of {table}; its snapshots may expire"
            remove(name, dry_run=True)
            if ask_first(what, "Drop it?", "nothing was dropped", dry_run=dry_run, yes=yes):
                remove(name)
            done = "drop" if dry_run else "dropped"
        elif rename is not None:
            give = handle.rename_branch if kind is RefKind.BRANCH else handle.rename_tag
            give(name, rename, dry_run=dry_run)
            done = f"rename {name} to" if dry_run else f"renamed {name} to"
        else:
            done = _set(handle, name, kind, at, kept, replace=replace, exists=exists, dry_run=dry_run)
        _report(settings, handle, kind, rename or name, f"would {done}" if dry_run else done)


def _set(  # noqa: PLR0913 - one parameter per option
    handle: Table,
    name: str,
    kind: RefKind,
    at: "AsOf | None",
    kept: dict[str, int],
    *,
    replace: bool,
    exists: bool,
    dry_run: bool,
) -> str:
    """Create a branch or tag, move it, or set how long it is kept."""
    if exists and kept and at is None and not replace:
        handle.set_retention(name, dry_run=dry_run, **kept)
        return "change" if dry_run else "changed"
    create = handle.create_branch if kind is RefKind.BRANCH else handle.create_tag
    create(name, at=at, replace=replace, dry_run=dry_run, **kept)
    done = "move" if exists else "create"
    return done if dry_run else f"{done}d"


def _report(settings: Settings, handle: Table, kind: RefKind, name: str, done: str) -> None:
    ref = handle.refs().get(name)
    identity = None if ref is None else str(ref.snapshot_id)
    if settings.as_json:
        print_json({"table": handle.name, "kind": str(kind), "name": name, "action": done, "snapshot-id": identity})
    else:
        print_text(f"{safe(done)} {kind} {safe(name)}" + ("" if identity is None else f" at snapshot {identity}"))
