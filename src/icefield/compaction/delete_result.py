"""What a rewrite of deletes did, or would do, as text for people and as values for programs."""

from dataclasses import dataclass

from icefield.arguments import whole_number
from icefield.compaction.delete_plan import DeletePlan
from icefield.model.snapshot import Snapshot
from icefield.showing import ShownAsText


@dataclass(frozen=True, repr=False)
class DeleteRewriteResult(ShownAsText):
    """What `rewrite_deletes` did; with `dry_run`, what it would do.

    Attributes:
        plan: The delete files that were looked at, those that are good, to rewrite, and that apply to no data file.
        is_dry_run: Nothing was written.
        convert_equality: Equality deletes were converted, too.
        engine: Which engine read the deletes, and why.
        snapshots: The new snapshots; none if there was nothing to gain.
        files_left_out: Data files whose deletes another writer changed first, so that they stay as they are.
    """

    plan: DeletePlan
    is_dry_run: bool = False
    convert_equality: bool = False
    engine: str | None = None
    snapshots: tuple[Snapshot, ...] = ()
    files_left_out: int = 0

    @property
    def snapshot(self) -> Snapshot | None:
        """The newest snapshot; None if nothing was rewritten."""
        return self.snapshots[-1] if self.snapshots else None

    def count(self, key: str) -> int:
        """Return a number of the summaries of all snapshots; a deletion vector counts as a delete file."""
        return sum(whole_number(snapshot.summary.get(key)) or 0 for snapshot in self.snapshots)

    def as_dict(self) -> dict[str, object]:
        """Return plain values; snapshot ids are strings, because JSON readers round large integers."""
        plan = self.plan
        names = (
            *("files", "files_good", "files_to_rewrite", "files_dangling", "vectors_dangling", "equality_files"),
            *("bytes", "bytes_to_rewrite", "bytes_dangling"),
        )
        keys = ("removed-delete-files", "added-delete-files", "removed-position-deletes", "added-position-deletes")
        return {
            "snapshot-ids": [str(snapshot.snapshot_id) for snapshot in self.snapshots],
            "is-dry-run": self.is_dry_run,
            "convert-equality": self.convert_equality,
            "engine": self.engine,
            **{name.replace("_", "-"): getattr(plan, name) for name in names},
            "reasons": {str(reason): count for reason, count in plan.reasons.items()},
            "data-files": sum(map(len, plan.groups)),
            "files-left-out": self.files_left_out,
            **{key: self.count(key) for key in keys},
        }

    def __str__(self) -> str:
        plan = self.plan
        verb = "rewrite deletes (dry run)" if self.is_dry_run else "rewrite deletes"
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in plan.reasons.items())
        equality = "to convert" if self.convert_equality else "as they are"
        dangling = f"{plan.files_dangling:,} files ({plan.bytes_dangling:,} bytes), {plan.vectors_dangling:,} vectors"
        lines = [
            f"{verb}: {plan.files_to_rewrite:,} of {plan.files:,} delete files ({plan.bytes_to_rewrite:,} bytes)",
            f"  good      {plan.files_good - plan.equality_files:,} files",
            f"  reasons   {reasons or 'none'}",
            f"  dangling  {dangling}",
            f"  equality  {plan.equality_files:,} files, {equality}",
        ]
        if self.snapshots:
            left_out = f"; {self.files_left_out:,} data files left out" if self.files_left_out else ""
            counts = [self.count(f"{verb}-delete-files") for verb in ("removed", "added")]
            lines.append(f"  done      {counts[0]:,} deletes removed, {counts[1]:,} added{left_out}")
            lines.append(f"  engine    {self.engine}")
        return "\n".join(lines)
