"""icefield publish, rebase, cherry-pick, revert, rollback, undo: change a branch by what another version changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import rich_click as click

from icefield.cli.options import branch_option, table_argument
from icefield.cli.output import Column, print_grid, print_json, print_text
from icefield.cli.settings import LakeCommand, Settings, SnapshotCommand
from icefield.deferred import deferred_imports
from icefield.errors import CheckFailed, ConcurrentChange, InvalidInput
from icefield.model.snapshot import MAIN, Snapshot

with deferred_imports(__name__):
    from icefield.cli.commands.snapshots import snapshot_value
    from icefield.cli.lakes import open_lake
    from icefield.table.table import Table

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


_dry_run = click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
_ON_COLLISION = "What becomes of rows that both sides changed: as in the branch to change, or as in the other one"
on_collision_option = click.option("--on-collision", type=click.Choice(["ours", "theirs"]), help=f"{_ON_COLLISION}.")


def _parse_decision(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> str | dict[str, str] | None:
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    found = [text.rpartition("=") for text in given]
    if any(not path for path, *_ in found):
        raise InvalidInput(
            "--on-collision is one side, or FILE=SIDE for each file", hint="See --on-collision in --help"
        )
    return {path: side for path, _, side in found} or None


_on_collisions = click.option(
    "--on-collision",
    metavar="[FILE=]ours|theirs",
    multiple=True,
    callback=_parse_decision,
    help=f"{_ON_COLLISION}; of all, or of a file of the report. May be repeated.",
)


@click.command(cls=SnapshotCommand)
@table_argument()
@click.argument("branch", metavar="BRANCH")
@click.option("--to", metavar="BRANCH", default=MAIN, show_default=True, help="The branch to publish to.")
@click.option("--check", "checks", metavar="NAME=FILTER", multiple=True, help="A filter that must match no row.")
@click.option("--fast-forward-only", is_flag=True, help="Fail if the branches have diverged.")
@_on_collisions
@_dry_run
@click.pass_obj
def publish(settings: Settings, /, table: str, branch: str, to: str, checks: tuple[str, ...], **options: Any) -> None:
    """Make the changes of a branch visible in another one, in one commit.

    The checks of the table, its properties icefield.check.NAME, are run on the branch before. If rows were changed on
    both sides, nothing is changed; the collisions are listed.
    """
    given = _parse_checks(checks)
    with open_lake(settings) as lake:
        handle = lake.table(table).at(to) if to != MAIN else lake.table(table)

        def change() -> Snapshot | None:
            before, made = handle.current_snapshot, handle.publish(branch, checks=given, **options)
            return None if made == before else made

        _run(settings, handle, change, dry_run=options["dry_run"])


@click.command(cls=SnapshotCommand)
@table_argument()
@click.argument("branch", metavar="BRANCH")
@click.option("--onto", metavar="REF", default=MAIN, show_default=True, help="The branch or tag to start from.")
@click.option("--squash", is_flag=True, help="Make one snapshot of all its changes.")
@_dry_run
@click.pass_obj
def rebase(settings: Settings, /, table: str, branch: str, onto: str, **options: Any) -> None:
    """Move a branch to the head of another, with its own snapshots after it, in one commit."""
    with open_lake(settings) as lake:
        handle = lake.table(table).at(branch)
        _run(settings, handle, lambda: handle.rebase(onto, **options), dry_run=options["dry_run"])


@click.command(cls=SnapshotCommand)
@table_argument()
@click.argument("snapshot", metavar="SNAPSHOT", type=int)
@branch_option()
@_on_collisions
@_dry_run
@click.pass_obj
def cherry_pick(settings: Settings, /, table: str, snapshot: int, branch: str, **options: Any) -> None:
    """Apply to a branch what one snapshot of another one changed."""
    with open_lake(settings) as lake:
        handle = lake.table(table).at(branch)
        _run(settings, handle, lambda: handle.cherry_pick(snapshot, **options), dry_run=options["dry_run"])


@click.command(cls=SnapshotCommand)
@table_argument()
@click.argument("snapshot", metavar="SNAPSHOT", type=int)
@branch_option()
@_dry_run
@click.pass_obj
def revert(settings: Settings, /, table: str, snapshot: int, branch: str, **options: Any) -> None:
    """Take back what one snapshot of a branch changed; later changes stay."""
    with open_lake(settings) as lake:
        handle = lake.table(table).at(branch)
        _run(settings, handle, lambda: handle.revert(snapshot, **options), dry_run=options["dry_run"])


@click.command(cls=LakeCommand)
@table_argument()
@click.argument("version", metavar="VERSION")
@branch_option()
@click.pass_obj
def rollback(settings: Settings, table: str, version: str, branch: str) -> None:
    """Move a branch back to an earlier version: a snapshot id, a time, a branch or a tag.

    main can also go forward again, to a snapshot that it was at before.
    """
    with open_lake(settings) as lake:
        handle = lake.table(table).at(branch)
        _run(settings, handle, lambda: handle.rollback(version))


@click.command(cls=LakeCommand)
@table_argument()
@branch_option()
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


@contextmanager
def reporting(settings: Settings) -> Iterator[None]:
    """Print what collides, or which checks fail, as JSON if that was asked for."""
    try:
        yield
    except (ConcurrentChange, CheckFailed) as error:
        if settings.as_json:
            print_json(_report(error))
        raise


def _run(settings: Settings, handle: Table, change: Callable[[], Snapshot | None], *, dry_run: bool = False) -> None:
    with reporting(settings):
        made = change()
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
    return {"failures": [each.as_dict() for each in error.failures]}


def _parse_checks(given: tuple[str, ...]) -> dict[str, str]:
    checks: dict[str, str] = {}
    for text in given:
        name, sign, where = text.partition("=")
        if not (name and sign and where):
            raise InvalidInput(
                f"a check is NAME=FILTER, not {text!r}", hint="For example --check 'positive=amount < 0'"
            )
        if name in checks:
            raise InvalidInput(f"two checks have the name {name!r}", hint="Give each a name of its own")
        checks[name] = where
    return checks
