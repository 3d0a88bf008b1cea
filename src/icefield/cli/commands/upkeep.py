"""icefield upkeep, expire, forget, orphans, sweep, leases, dropped, undrop, purge: upkeep by policy and by step."""

import datetime
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import rich_click as click

from icefield.ambient import SystemAmbient
from icefield.cli.lakes import open_lake
from icefield.cli.options import table_argument, where_option
from icefield.cli.output import Column, moment, print_grid, print_json, print_text, talk
from icefield.cli.progress import show_progress
from icefield.cli.questions import asking_options, confirm
from icefield.cli.settings import LakeCommand, LakeGroup, Settings, SnapshotCommand
from icefield.commit.relocate import Progress
from icefield.errors import InvalidInput
from icefield.policy.result import UpkeepResult
from icefield.policy.run import OnProgress, UpkeepProgress

F = TypeVar("F", bound=Callable[..., Any])
LEASE_COLUMNS = (
    Column("table"),
    Column("lease"),
    Column("kind"),
    Column("holder"),
    Column("renewed"),
    Column("snapshots"),
    Column("files held", "right"),
    Column("bytes held", "right"),
)
DROPPED_COLUMNS = (Column("table"), Column("uuid"), Column("dropped"), Column("restorable until"), Column("location"))
FAILED = 1
_AGE = re.compile(r"(\d{1,6})\s*([mhdw])", re.IGNORECASE)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class Result(Protocol):
    """What a verb of upkeep returns."""

    def as_dict(self) -> dict[str, object]: ...


@click.group(cls=LakeGroup)
def upkeep() -> None:
    """Do the upkeep that tables need, by their properties icefield.upkeep.*, worst debt first."""


@upkeep.command(cls=SnapshotCommand)
@click.argument("tables", metavar="[TABLE]...", nargs=-1)
@click.option("--minutes", metavar="N", type=float, help="How long it may take. A step in progress ends with a commit.")
@click.option("--bytes", "max_bytes", metavar="N", type=click.IntRange(0), help="How many bytes may be rewritten.")
@asking_options()
@click.pass_obj
def run(
    settings: Settings,
    tables: tuple[str, ...],
    *,
    minutes: float | None,
    max_bytes: int | None,
    dry_run: bool,
    yes: bool,
) -> int | None:
    """Do what is due: compact, rewrite manifests, expire snapshots, search orphan files, delete what is marked.

    Without TABLE, all tables of the lake. It may run on several machines at once; each works on tables that no other is
    at. Without --yes, it shows what is due, and asks. The exit code is 1 if any table failed; the others are done.
    """
    with open_lake(settings) as lake:

        def work(on_progress: OnProgress | None, *, dry: bool) -> UpkeepResult:
            return lake.upkeep(
                tables or None, minutes=minutes, max_bytes=max_bytes, dry_run=dry, on_progress=on_progress
            )

        if not yes or dry_run:
            planned = work(None, dry=True)
            if dry_run or not planned.is_due:
                return _show(settings, planned)
            talk(str(planned))
            confirm("Do it?", "nothing was changed")
        with show_progress("upkeep", unit="steps") as steps:

            def advance(progress: UpkeepProgress) -> None:
                is_step = progress.step is not None
                steps.advance(int(is_step), f"{progress.table}: {progress.step}" if is_step else "measuring")

            result = work(advance, dry=False)
    return _show(settings, result)


@upkeep.command(cls=LakeCommand)
@click.argument("tables", metavar="[TABLE]...", nargs=-1)
@click.pass_obj
def plan(settings: Settings, tables: tuple[str, ...]) -> int | None:
    """Show which steps are due, and in which order a run would do them. Nothing is changed."""
    with open_lake(settings) as lake:
        result = lake.upkeep(tables or None, dry_run=True)
    return _show(settings, result)


@click.command(cls=LakeCommand)
@table_argument()
@click.option(
    "--older-than", metavar="AGE|TIME", help="Expire snapshots of this age, such as 5d, or before 2026-01-31T12:00:00Z."
)
@click.option("--keep-last", metavar="N", type=click.IntRange(1), help="Keep so many snapshots of every branch.")
@click.option(
    "--snapshot", "snapshots", metavar="ID", type=int, multiple=True, help="Expire this one; may be repeated."
)
@asking_options()
@click.pass_obj
def expire(  # noqa: PLR0913 - one parameter per option
    settings: Settings,
    table: str,
    *,
    older_than: str | None,
    keep_last: int | None,
    snapshots: tuple[int, ...],
    dry_run: bool,
    yes: bool,
) -> None:
    """Remove old snapshots, and mark the files that only they needed.

    Marked files are deleted by a later run of expire, orphans or sweep, when the grace period is over. Without --yes,
    it shows what would expire, and asks.
    """
    with open_lake(settings) as lake:
        handle = lake.table(table)
        before = _moment(older_than)

        def run(dry: bool, progress: Progress) -> Result:  # noqa: FBT001
            return handle.expire_snapshots(
                before, keep_last=keep_last, snapshot_ids=snapshots or None, dry_run=dry, progress=progress
            )

        _ask(settings, run, "Expire them?", dry_run=dry_run, yes=yes)


@click.command(cls=SnapshotCommand)
@table_argument()
@where_option()
@click.option(
    "--search", "terms", metavar="TEXT", multiple=True,
    help="Search all files for this text, which only the rows have. May be repeated.",
)  # fmt: skip
@click.option("--drop-tags", is_flag=True, help="Drop tags that lead to the rows. Without it they are refused.")
@asking_options()
@click.pass_obj
def forget(  # noqa: PLR0913 - one parameter per option
    settings: Settings,
    table: str,
    where: str | None,
    *,
    terms: tuple[str, ...],
    drop_tags: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Delete the rows that match a filter for good: on every branch, from every file, snapshot and statistic.

    Files are deleted when the grace period is over and no lease holds them; run it again until it is finished. Then all
    files of the table are searched. Without --yes, it shows what would be done, and asks.
    """
    if where is None:
        raise InvalidInput("forget needs a filter", hint="Add --where, or --where TRUE for all rows")
    with open_lake(settings) as lake:
        handle = lake.table(table)

        def run(dry: bool, progress: Progress) -> Result:  # noqa: FBT001
            return handle.forget(where, search=terms, drop_tags=drop_tags, dry_run=dry, progress=progress)

        _ask(settings, run, "Forget them? They cannot be restored.", dry_run=dry_run, yes=yes)


@click.command(cls=LakeCommand)
@table_argument()
@click.option(
    "--older-than", metavar="AGE", help="The least age, such as 5d or 36h. By default that of the table: 3 days."
)
@click.option("--unsafe", is_flag=True, help="Allow an age below a day, although other engines may be writing.")
@asking_options()
@click.pass_obj
def orphans(settings: Settings, table: str, *, older_than: str | None, unsafe: bool, dry_run: bool, yes: bool) -> None:
    """Mark files in the table's directories that nothing refers to.

    Marked files are deleted by a later run of expire, orphans or sweep, when the grace period is over. Without --yes,
    it shows what would be marked, and asks.
    """
    age = None if older_than is None else parse_age(older_than)
    with open_lake(settings) as lake:
        handle = lake.table(table)

        def run(dry: bool, progress: Progress) -> Result:  # noqa: FBT001
            return handle.remove_orphans(older_than=age, unsafe=unsafe, dry_run=dry, progress=progress)

        _ask(settings, run, "Mark them?", dry_run=dry_run, yes=yes)


@click.command(cls=LakeCommand)
@table_argument()
@asking_options()
@click.pass_obj
def sweep(settings: Settings, table: str, *, dry_run: bool, yes: bool) -> None:
    """Delete marked files whose grace period is over, unless they are in use again or held by a lease.

    Without --yes, it shows what would be deleted, and asks.
    """
    with open_lake(settings) as lake:
        handle = lake.table(table)

        def run(dry: bool, progress: Progress) -> Result:  # noqa: FBT001
            return handle.sweep(dry_run=dry, progress=progress)

        _ask(settings, run, "Delete them?", dry_run=dry_run, yes=yes)


@click.command(cls=LakeCommand)
@click.argument("tables", metavar="[TABLE]...", nargs=-1)
@click.pass_obj
def leases(settings: Settings, tables: tuple[str, ...]) -> None:
    """List long reads and writes of tables, and what they keep from being deleted.

    Without TABLE, those of all tables of the lake.
    """
    with open_lake(settings) as lake:
        found = lake.leases(tables or None)
    if settings.as_json:
        print_json([lease.as_dict() for lease in found])
        return
    if not found:
        talk(f"Nobody holds a lease on {', '.join(tables) or 'any table'}.")
        return
    rows = [
        [
            each.table,
            each.lease,
            each.kind,
            each.holder,
            moment(each.renewed_ms),
            ", ".join(map(str, each.snapshot_ids)),
            each.files_held,
            each.bytes_held,
        ]
        for each in found
    ]
    print_grid(LEASE_COLUMNS, rows)


@click.command(cls=LakeCommand)
@click.pass_obj
def dropped(settings: Settings) -> None:
    """List dropped tables that can be restored."""
    with open_lake(settings) as lake:
        found = lake.dropped()
    if settings.as_json:
        print_json([each.as_dict() for each in found])
        return
    if not found:
        talk("There are no dropped tables.")
        return
    rows = [
        [
            each.table,
            str(each.table_uuid),
            moment(each.dropped_ms),
            None if each.until_ms is None else moment(each.until_ms),
            each.location,
        ]
        for each in found
    ]
    print_grid(DROPPED_COLUMNS, rows)


@click.command(cls=LakeCommand)
@table_argument()
@click.option("--to", metavar="NAME", help="Another name.")
@click.pass_obj
def undrop(settings: Settings, table: str, to: str | None) -> None:
    """Restore a dropped table, given its name or its uuid."""
    with open_lake(settings) as lake:
        made = lake.undrop(table, to=to)
        if settings.as_json:
            print_json({"table": made.name, "location": made.location, "metadata-file": made.metadata_location})
        else:
            print_text(f"restored {made.name} at {made.location}")


@click.command(cls=LakeCommand)
@asking_options()
@click.pass_obj
def purge(settings: Settings, *, dry_run: bool, yes: bool) -> int | None:
    """Delete the files of tables that were dropped with --purge and can no longer be restored.

    Without --yes, it shows what would be deleted, and asks. The exit code is 1 if the files of a table cannot be
    deleted; those of the others are.
    """
    with open_lake(settings) as lake:
        if not dry_run and not yes:
            plan = lake.purge_dropped(dry_run=True)
            talk("\n".join(f"{each.table}: {each}" for each in plan) or "There is nothing to delete.")
            if plan:
                confirm("Delete them?", "nothing was deleted")
        with _deleting(dry_run=dry_run) as progress:
            done = lake.purge_dropped(dry_run=dry_run, progress=progress)
    if settings.as_json:
        print_json([each.as_dict() for each in done])
    else:
        print_text("\n".join(f"{each.table}: {each}" for each in done) or "nothing to delete")
    return FAILED if any(each.unfinished is not None for each in done) else None


def parse_age(text: str) -> datetime.timedelta:
    """Parse an age such as `5d`."""
    found = _AGE.fullmatch(text.strip())
    if found is None:
        raise InvalidInput(f"{text!r} is not an age", hint="Write a number and m, h, d or w, such as 5d")
    return datetime.timedelta(**{_UNITS[found.group(2).lower()]: int(found.group(1))})


def _moment(age_or_time: str | None) -> datetime.datetime | str | None:
    """Return when an age began; a time is left as it is."""
    if age_or_time is None or _AGE.fullmatch(age_or_time.strip()) is None:
        return age_or_time
    now = datetime.datetime.fromtimestamp(SystemAmbient().now_ms() / 1000, datetime.UTC)
    return now - parse_age(age_or_time)


def _ask(
    settings: Settings, run: Callable[[bool, Progress], Result], question: str, *, dry_run: bool, yes: bool
) -> None:
    """Show what would be done, and ask before it is done."""
    if not dry_run and not yes:
        talk(str(run(True, lambda _: None)))
        confirm(question, "nothing was changed")
    with _deleting(dry_run=dry_run) as progress:
        result = run(dry_run, progress)
    if settings.as_json:
        print_json(result.as_dict())
    else:
        print_text(str(result))


@contextmanager
def _deleting(*, dry_run: bool) -> Iterator[Progress]:
    """Show how many files are deleted."""
    if dry_run:
        yield lambda _: None
        return
    with show_progress("removing files", unit="files") as steps:
        yield lambda _: steps.advance(1, "deleting")


def _show(settings: Settings, result: UpkeepResult) -> int | None:
    if settings.as_json:
        print_json(result.as_dict())
    else:
        print_text(str(result))
    return FAILED if result.is_failed else None
