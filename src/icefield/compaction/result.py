"""What a compaction did, or would do, as text for people and as values for programs."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from icefield.compaction.plan import CompactionPlan
from icefield.model.snapshot import Snapshot
from icefield.showing import ShownAsText

SHOWN_PARTITIONS = 20


@dataclass(frozen=True, repr=False)
class CompactionResult(ShownAsText):
    """What `compact` did; with `dry_run`, what it would do.

    Attributes:
        plan: The files that were looked at, those that are good, and those that are rewritten, in groups.
        is_dry_run: Nothing was written.
        strategy: `bin-pack`, `sort` or `cluster`.
        engine: Which engine moved the rows, and why.
        snapshots: The new snapshots, one for each commit; none if there was nothing to gain.
        groups_done: How many groups were committed.
        groups_left_out: Groups that were not, because another writer changed their files first.
        groups_over_limit: Groups that were not, because a limit of time or bytes was reached.
        files_removed: Data files that were replaced.
        bytes_removed: Their size.
        files_added: New data files.
        bytes_added: Their size.
        seconds: The time of each phase: `plan`, `rows`, `commit`.
    """

    plan: CompactionPlan
    is_dry_run: bool = False
    strategy: str = "bin-pack"
    engine: str | None = None
    snapshots: tuple[Snapshot, ...] = ()
    groups_done: int = 0
    groups_left_out: int = 0
    groups_over_limit: int = 0
    files_removed: int = 0
    bytes_removed: int = 0
    files_added: int = 0
    bytes_added: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)

    @property
    def snapshot(self) -> Snapshot | None:
        """The newest snapshot; None if nothing was rewritten."""
        return self.snapshots[-1] if self.snapshots else None

    def as_dict(self) -> dict[str, object]:
        """Return plain values; snapshot ids are strings, because JSON readers round large integers."""
        plan = self.plan
        own = {
            name.replace("_", "-"): getattr(self, name)
            for name in self.__dataclass_fields__
            if name not in ("plan", "snapshots", "seconds")
        }
        return {
            "snapshot-ids": [str(snapshot.snapshot_id) for snapshot in self.snapshots],
            **own,
            "files": plan.files,
            "files-good": plan.files_good,
            "files-to-rewrite": plan.files_to_rewrite,
            "bytes": plan.bytes,
            "bytes-to-rewrite": plan.bytes_to_rewrite,
            "groups": len(plan.groups),
            "reasons": {str(reason): count for reason, count in plan.reasons.items()},
            "partitions": [
                {name.replace("_", "-"): value for name, value in asdict(each).items()} for each in plan.partitions
            ],
            "seconds": dict(self.seconds),
        }

    def __str__(self) -> str:
        plan, verb = self.plan, "compact (dry run)" if self.is_dry_run else "compact"
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in plan.reasons.items())
        lines = [
            f"{verb}: {plan.files_to_rewrite:,} of {plan.files:,} files to rewrite ({plan.bytes_to_rewrite:,} bytes)",
            f"  good     {plan.files_good:,} files",
            f"  reasons  {reasons or 'none'}",
            f"  groups   {len(plan.groups):,}, {self.strategy}",
        ]
        for each in [each for each in plan.partitions if each.groups][:SHOWN_PARTITIONS]:
            name = each.partition or "(all)"
            lines.append(
                f"  {name}  {each.files_to_rewrite:,} of {each.files:,} files, {each.bytes_to_rewrite:,} bytes"
            )
        if not self.is_dry_run and plan.groups:
            left_out = f", {self.groups_left_out:,} left out" if self.groups_left_out else ""
            left_out += f", {self.groups_over_limit:,} over the limit" if self.groups_over_limit else ""
            lines += [
                f"  done     {self.groups_done:,} groups in {len(self.snapshots):,} commits{left_out}",
                f"  files    {self.files_removed:,} replaced by {self.files_added:,} ({self.bytes_added:,} bytes)",
                f"  engine   {self.engine}",
                "  seconds  " + ", ".join(f"{name} {value:.2f}" for name, value in self.seconds.items()),
            ]
        return "\n".join(lines)
