"""icefield publish, rebase, cherry-pick, revert, rollback, undo: change a branch by what another version changed."""

from collections.abc import Callable
from typing import Any, TypeVar

import rich_click as click

from icefield.arguments import whole_number
from icefield.cli.commands.snapshots import snapshot_value
from icefield.cli.lakes import open_lake
from icefield.cli.options import table_argument
from icefield.cli.output import Column, print_grid, print_json, print_text
from icefield.cli.settings import LakeCommand, Settings
from icefield.errors import CheckFailed, ConcurrentChange, InvalidInput
from icefield.model.snapshot import MAIN, RefKind, Snapshot
from icefield.table.table import Table

F = TypeVar("F", bound=Callable[..., Any])
REF_COLUMNS = (
    Column("name"),
    Column("kind"),
    Column("snapshot", "right"),
    Column("ahead", "right"),
    Column("behind", "right"),
    Column("kept snapshots", "right"),
    Column("snapshot age (ms)", "right"),
    Column("ref age (ms)", "right"),
)


def _options(command: F) -> F:
    command = click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")(command)
    return click.option("--message", metavar="TEXT", help="Why; kept in the summary of the new snapshot.")(command)


_branch = click.option("--branch", metavar="BRANCH", default=MAIN, show_default=True, help="The branch to change.")


@click.command(cls=LakeCommand)
@table_argument()
@click.argument("branch", metavar="BRANCH")
@click.option("--to", metavar="BRANCH", default=MAIN, show_default=True, help="The branch to publish to.")
@click.option("--check", "checks", metavar="NAME=FILTER", multiple=True, help="A filter that must match no row.")
@click.option("--fast-forward-only", is_flag=True, help="Fail if the branches have diverged.")
@_options
@click.pass_obj
def publish(settings: Settings, /, table: str, branch: str, to: str, checks: tuple[str, ...], **options: Any) -> None:
    """Make the changes of a branch visible in another one, in one commit.

    The checks of the table, its properties icefield.check.NAME, are run on the branch before. If rows were changed on
    both sides, nothing is changed; the collisions are listed.
    """
    given = dict(_parse_check(each) for each in checks)
    with open_lake(settings) as lake:
        handle = lake.table(table).at(to) if to != MAIN else lake.table(table)
        _run(settings, handle, lambda: handle.publish(branch, checks=given, **options), dry_run=options["dry_run"])


@click.command(cls=LakeCommand)
@table_argument()
@click.argument("branch", metavar="BRANCH")
@click.option("--onto", metavar="REF", default=MAIN, show_default=True, help="The branch or tag to start from.")
@_options
@click.pass_obj
def rebase(settings: Settings, /, table: str, branch: str, onto: str, **options: Any) -> None:
    """Move a branch to the head of another, with its own changes as one snapshot after it."""
    with open_lake(settings) as lake:
        handle = lake.table(table).at(branch)
        _run(settings, handle, lambda: handle.rebase(onto, **options), dry_run=options["dry_run"])


@click.command(cls=LakeCommand)
@table_argument()
@click.argument("snapshot", metavar="SNAPSHOT", type=int)
@_branch
@_options
@click.pass_obj
def cherry_pick(settings: Settings, /, table: str, snapshot: int, branch: str, **options: Any) -> None:
    """Apply to a branch what one snapshot of another one changed."""
    with open_lake(settings) as lake:
        handle = lake.table(table).at(branch)
        _run(settings, handle, lambda: handle.cherry_pick(snapshot, **options), dry_run=options["dry_run"])


@click.command(cls=LakeCommand)
@table_argument()
@click.argument("snapshot", metavar="SNAPSHOT", type=int)
@_branch
@_options
@click.pass_obj
def revert(settings: Settings, /, table: str, snapshot: int, branch: str, **options: Any) -> None:
    """Take back what one snapshot of a branch changed; later changes stay."""
    with open_lake(settings) as lake:
        handle = lake.table(table).at(branch)
        _run(settings, handle, lambda: handle.revert(snapshot, **options), dry_run=options["dry_run"])


@click.command(cls=LakeCommand)
@table_argument()
@click.argument("version", metavar="VERSION")
@_branch
@click.pass_obj
def rollback(settings: Settings, table: str, version: str, branch: str) -> None:
    """Move a branch back to an earlier version: a snapshot id, a time, a branch or a tag.

    main can also go forward again, to a snapshot that it was at before.
    """
    number = whole_number(version)
    with open_lake(settings) as lake:
        handle = lake.table(table).at(branch)
        _run(settings, handle, lambda: handle.rollback(version if number is None else number))


@click.command(cls=LakeCommand)
@table_argument()
@_branch
@click.pass_obj
def undo(settings: Settings, table: str, branch: str) -> None:
    """Move a branch to where it was before its last move; a second time undoes the first."""
    with open_lake(settings) as lake:
        handle = lake.table(table).at(branch)
        _run(settings, handle, handle.undo)


@click.command(cls=LakeCommand)
@table_argument()
@click.pass_obj
def refs(settings: Settings, table: str) -> None:
    """List branches and tags, and how many snapshots each is ahead of main and behind it."""
    with open_lake(settings) as lake:
        found = lake.table(table).ref_status()
    if settings.as_json:
        print_json([status.as_dict() for status in found])
        return
    print_grid(REF_COLUMNS, [list(status.as_dict().values()) for status in found])


def _ref_options(command: F) -> F:
    for option in (
        click.option("--drop", is_flag=True, help="Drop it."),
        click.option("--rename", metavar="NAME", help="Give it another name."),
        click.option("--at", metavar="VERSION", help="Where it starts: a snapshot id, a time, a branch or a tag."),
    ):
        command = option(command)
    return command


@click.command(cls=LakeCommand)
@table_argument()
@click.argument("name", metavar="NAME")
@_ref_options
@click.pass_obj
def branch(settings: Settings, /, table: str, name: str, **options: Any) -> None:
    """Create, rename or drop a branch."""
    _change_ref(settings, table, name, RefKind.BRANCH, **options)


@click.command(cls=LakeCommand)
@table_argument()
@click.argument("name", metavar="NAME")
@_ref_options
@click.pass_obj
def tag(settings: Settings, /, table: str, name: str, **options: Any) -> None:
    """Create, rename or drop a tag: a name for one version."""
    _change_ref(settings, table, name, RefKind.TAG, **options)


def _change_ref(  # noqa: PLR0913 - one parameter per option
    settings: Settings, table: str, name: str, kind: RefKind, *, drop: bool, rename: str | None, at: str | None
) -> None:
    if sum(1 for each in (drop, rename, at) if each) > 1:
        raise InvalidInput("--drop, --rename and --at exclude each other")
    with open_lake(settings) as lake:
        handle = lake.table(table)
        is_branch = kind is RefKind.BRANCH
        if drop:
            (handle.drop_branch if is_branch else handle.drop_tag)(name)
        elif rename:
            (handle.rename_branch if is_branch else handle.rename_tag)(name, rename)
        else:
            number = whole_number(at)
            (handle.create_branch if is_branch else handle.create_tag)(name, at=at if number is None else number)


def _run(settings: Settings, handle: Table, change: Callable[[], Snapshot | None], *, dry_run: bool = False) -> None:
    try:
        made = change()
    except (ConcurrentChange, CheckFailed) as error:
        if settings.as_json:
            print_json(_report(error))
        raise
    if settings.as_json:
        print_json({"dry-run": dry_run, "snapshot": None if made is None else snapshot_value(made, handle.metadata)})
        return
    if made is None:
        print_text("Nothing to do.")
        return
    counts = ", ".join(f"{key} {made.summary[key]}" for key in made.summary if key.startswith(("added", "deleted")))
    print_text(f"{'Would be at' if dry_run else 'Now at'} snapshot {made.snapshot_id} ({made.operation}: {counts})")


def _report(error: ConcurrentChange | CheckFailed) -> dict[str, object]:
    if isinstance(error, ConcurrentChange):
        return {"collisions": [each.as_dict() for each in error.collisions]}
    return {
        "failures": [
            {
                "name": each.name,
                "where": each.where,
                "rows": each.rows,
                "sample": [{k: str(v) for k, v in row.items()} for row in each.sample],
            }
            for each in error.failures
        ]
    }


def _parse_check(text: str) -> tuple[str, str]:
    name, sign, where = text.partition("=")
    if not (name and sign and where):
        raise InvalidInput(f"a check is NAME=FILTER, not {text!r}", hint="For example --check 'positive=amount < 0'")
    return name, where
