"""icefield doctor."""

from __future__ import annotations

from itertools import chain

import rich_click as click

from icefield.cli.doctor.check import Check, Status
from icefield.cli.doctor.lakes import check_lake
from icefield.cli.doctor.machine import check_machine
from icefield.cli.output import print_json, print_text, safe
from icefield.cli.settings import LakeCommand, Settings


@click.command(cls=LakeCommand)
@click.option("--spark", "start_spark", is_flag=True, help="Start a Spark session, and run a task in its workers.")
@click.option("--read-only", is_flag=True, help="Do not create and delete a probe in the store.")
@click.pass_obj
def doctor(settings: Settings, *, start_spark: bool, read_only: bool) -> int:
    """Check this machine and the lake, and say how to mend what does not work.

    Python, packages, Java, Spark and its workers; the catalog, the store, permissions, and the clock. A small file is
    created in the lake and deleted. The exit code is 1 if a check failed; warnings do not count.
    """
    checks: list[Check] = []
    for check in chain(check_machine(start_spark=start_spark), check_lake(settings, read_only=read_only)):
        checks.append(check)
        if not settings.as_json:
            _print(check)
    failed = sum(check.status is Status.FAILED for check in checks)
    if settings.as_json:
        print_json({"checks": [check.as_dict() for check in checks], "failed": failed})
    return 1 if failed else 0


def _print(check: Check) -> None:
    print_text(safe(f"{check.status.value:8}{check.name}: {check.found}"))
    if check.mend is not None:
        print_text(safe(f"{'':8}{check.mend}"))
