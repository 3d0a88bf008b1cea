"""icefield relocate: rewrite the metadata of a lake whose directory was moved or copied."""

from dataclasses import asdict

import rich_click as click

from icefield.cli.lakes import open_lake
from icefield.cli.output import counted, print_json, print_text, talk
from icefield.cli.questions import asking_options, confirm
from icefield.cli.settings import LakeCommand, Settings


@click.command(cls=LakeCommand)
@click.option("--from", "old", metavar="LOCATION", help="Where the lake was. [default: found by its tables]")
@asking_options()
@click.pass_obj
def relocate(settings: Settings, old: str | None, *, yes: bool, dry_run: bool) -> None:
    """Rewrite the metadata of a lake that was moved or copied, so that it names the new location.

    Metadata, manifests and delete files are rewritten next to the existing ones; data files are not touched. An
    interrupted run is finished by the next one.
    """
    with open_lake(settings) as lake:
        plan = lake.relocate(old, dry_run=True)
        what = f"{counted(len(plan.entries), 'table or view', 'tables and views')} from {plan.old} to {plan.new}"
        if plan.entries and not dry_run:
            if not yes:
                talk(f"{what}: metadata is rewritten, data files are not touched")
                confirm("Relocate them?", "nothing was changed")
            plan = lake.relocate(plan.old, progress=lambda name: talk(f"{name}: rewritten"))
    if settings.as_json:
        print_json({**asdict(plan), "relocated": bool(plan.entries) and not dry_run})
    elif not plan.entries:
        print_text(f"nothing to do: all tables in {plan.new} name their current location")
    else:
        print_text(f"{'would relocate' if dry_run else 'relocated'} {what}")
