"""Branches and tags: named references to snapshots, changed by ordinary commits. (spec: Snapshot References)

Raises InvalidInput, NoSuchSnapshot, AlreadyExists, and ConcurrentChange if histories have diverged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from icefield.commit.action import NOTHING_TO_DO, CommitTarget, ProposedChange, WriteContext
from icefield.commit.snapshot.build import SnapshotDraft, propose_snapshot
from icefield.commit.snapshot.summary import NOTHING
from icefield.commit.validate.key_history import (
    begin_branch,
    forget_branches,
    forget_undone,
    rename_branch,
    take_over,
)
from icefield.commit.validate.schema_compatibility import check_fits, find_obstacle
from icefield.errors import AlreadyExists, ConcurrentChange, InvalidInput, NoSuchSnapshot
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import MAIN, Operation, RefKind, Snapshot, SnapshotRef
from icefield.model.updates import (
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotRef,
    SetSnapshotRef,
    Update,
)
from icefield.properties.table import PROTECTED_REFS

TAG_RULES = ("max_ref_age_ms",)
BRANCH_RULES = ("min_snapshots_to_keep", "max_snapshot_age_ms", *TAG_RULES)


def is_protected(base: TableMetadata, name: str) -> bool:
    """Return whether only writes and publishes may move a branch or tag."""
    protected = (PROTECTED_REFS.read(base.properties) or "").split(",")
    return bool(name.strip()) and name.strip() in (each.strip() for each in protected)


def check_unprotected(base: TableMetadata, name: str, verb: str) -> None:
    """Refuse what a protected branch or tag is protected from."""
    if name in base.refs and is_protected(base, name):
        raise InvalidInput(
            f"cannot {verb} {base.refs[name].kind} {name!r}: it is protected",
            hint=f"It is listed in the property {PROTECTED_REFS.key}",
        )


def check_ref_name(name: str) -> None:
    """Refuse a name that cannot be seen."""
    if not name.strip():
        raise InvalidInput(f"a branch or tag needs a name, got {name!r}")


@dataclass(frozen=True)
class CreateRef:
    """Creates a ref; `ref.snapshot_id` must be in the table. An existing name needs `replaces`.

    A ref that is replaced keeps its kind, and the retention rules that the new one does not have.
    """

    name: str
    ref: SnapshotRef
    replaces: bool = False

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        check_ref_name(self.name)
        snapshot = base.snapshot_by_id(self.ref.snapshot_id)
        known = base.refs.get(self.name)
        if self.name == MAIN:
            raise AlreadyExists(f"{MAIN} already exists; it moves by writes, rollback or publish")
        if known is not None and not self.replaces:
            raise AlreadyExists(f"the table has a {known.kind} {self.name!r} already", hint="Drop it first")
        check_unprotected(base, self.name, "replace")
        ref = self.ref if known is None else self._replacing(known)
        is_branch = ref.kind is RefKind.BRANCH
        if is_branch:
            _check_readable(base, self.name, snapshot)
        memory = begin_branch(base, self.name, snapshot) if is_branch else forget_branches(base, [self.name])
        return _change(base, self.name, SetSnapshotRef(self.name, ref), *memory)

    def _replacing(self, known: SnapshotRef) -> SnapshotRef:
        if known.kind is not self.ref.kind:
            raise InvalidInput(f"cannot replace {self.name!r}: it is a {known.kind}, not a {self.ref.kind}")
        given = {rule: getattr(self.ref, rule) for rule in BRANCH_RULES if getattr(self.ref, rule) is not None}
        return replace(known, snapshot_id=self.ref.snapshot_id, **given)

    def reusable_files(self) -> Sequence[str]:
        return ()


@dataclass(frozen=True)
class BeginEmptyBranch:
    """Creates a branch of a table without snapshots: its first snapshot has no files, as in Iceberg Java.

    ref: its retention rules; the snapshot of it does not count.
    """

    name: str
    ref: SnapshotRef

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        check_ref_name(self.name)
        if (known := base.refs.get(self.name)) is not None:
            raise AlreadyExists(f"the table has a {known.kind} {self.name!r} already", hint="Drop it first")
        snapshot_id = context.ambient.random_id()
        draft = SnapshotDraft(
            snapshot_id, Operation.APPEND, [], NOTHING, target=CommitTarget(self.name), begins_branch=True
        )
        change = propose_snapshot(draft, base, context)
        ref = SetSnapshotRef(self.name, replace(self.ref, snapshot_id=snapshot_id))
        return replace(change, updates=[*change.updates, ref])

    def reusable_files(self) -> Sequence[str]:
        return ()


@dataclass(frozen=True)
class DropRef:
    """Drops a branch or a tag; its snapshots are kept until they expire."""

    name: str
    kind: RefKind

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        if self.name == MAIN:
            raise InvalidInput(f"cannot drop {MAIN}")
        base.ref_head(self.name)
        if (found := base.refs[self.name].kind) is not self.kind:
            raise InvalidInput(
                f"cannot drop {self.kind} {self.name!r}: it is a {found}", hint=f"Use drop_{found}({self.name!r})"
            )
        check_unprotected(base, self.name, "drop")
        return _change(base, self.name, RemoveSnapshotRef(self.name), *forget_branches(base, [self.name]))

    def reusable_files(self) -> Sequence[str]:
        return ()


@dataclass(frozen=True)
class RenameRef:
    """Renames a branch or a tag; a branch keeps its idempotency keys."""

    name: str
    new_name: str
    kind: RefKind

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        if MAIN in (self.name, self.new_name):
            raise InvalidInput(f"cannot rename {self.name!r} to {self.new_name!r}: {MAIN} keeps its name")
        check_ref_name(self.new_name)
        base.ref_head(self.name)
        known = base.refs[self.name]
        if known.kind is not self.kind:
            raise InvalidInput(
                f"cannot rename {self.kind} {self.name!r}: it is a {known.kind}",
                hint=f"Use rename_{known.kind}({self.name!r}, {self.new_name!r})",
            )
        if self.new_name in base.refs:
            raise AlreadyExists(f"the table has a {base.refs[self.new_name].kind} {self.new_name!r} already")
        check_unprotected(base, self.name, "rename")
        change = _change(
            base,
            self.name,
            SetSnapshotRef(self.new_name, known),
            RemoveSnapshotRef(self.name),
            *rename_branch(base, self.name, self.new_name),
        )
        return replace(change, requirements=[*change.requirements, AssertRefSnapshotId(self.new_name, None)])

    def reusable_files(self) -> Sequence[str]:
        return ()


@dataclass(frozen=True)
class SetRetention:
    """Sets retention rules of a branch or a tag; None removes one."""

    name: str
    rules: Mapping[str, int | None]

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        base.ref_head(self.name)
        if self.name not in base.refs:
            raise NoSuchSnapshot(f"{self.name!r} has no snapshots")
        known = base.refs[self.name]
        given = {rule: value for rule, value in self.rules.items() if value is not None}
        removed = dict.fromkeys(self.rules, 1)
        make_ref(known.snapshot_id, known.kind, {**removed, **given})
        kept = {rule: self.rules.get(rule, getattr(known, rule)) for rule in BRANCH_RULES}
        return _change(base, self.name, SetSnapshotRef(self.name, _ruled(known, kept)))

    def reusable_files(self) -> Sequence[str]:
        return ()


@dataclass(frozen=True)
class FastForward:
    """Fast-forwards a branch to the head of another ref.

    is_merged: the other one is known to contain its changes. checked_id: the head of the other one that was checked;
    None if there are no checks.
    """

    branch: str
    to: str
    is_merged: bool = False
    checked_id: int | None = None

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        source, target = base.ref_head(self.to), base.ref_head(self.branch)
        if source is None:
            raise NoSuchSnapshot(f"{self.to!r} has no snapshots to publish")
        check_is_checked(self.to, source, self.checked_id)
        if target is not None and not (self.is_merged or _is_ancestor(base, target, source)):
            raise ConcurrentChange(
                f"cannot fast-forward {self.branch} to {self.to}: its snapshot {target.snapshot_id} is not in the "
                f"history of {self.to}",
                hint="The branches have diverged; publish without fast_forward_only, or rebase the branch",
            )
        if source.schema_id is not None:
            check_fits(base.schema_by_id(source.schema_id), base)
        if target is None:
            _check_not_replaced(base, self.branch, self.to, source)
        memory = take_over(base, self.branch, self.to, source)
        return _change(base, self.branch, _moved(base, self.branch, source), *memory)

    def reusable_files(self) -> Sequence[str]:
        return ()


def _check_not_replaced(base: TableMetadata, branch: str, to: str, source: Snapshot) -> None:
    """Refuse to bring back what `main` was before the table was replaced."""
    past = {entry.snapshot_id for entry in base.snapshot_log}
    if branch == MAIN and any(snapshot.snapshot_id in past for snapshot in base.ancestors(source)):
        raise ConcurrentChange(
            f"cannot publish {to!r}: it began before the table was replaced",
            hint="Nothing was changed; apply its changes again on a new branch, and drop this one",
        )


def check_is_checked(branch: str, head: Snapshot, checked_id: int | None) -> None:
    """Refuse to publish anything but the version that was checked; None if there are no checks."""
    if checked_id is not None and head.snapshot_id != checked_id:
        raise ConcurrentChange(
            f"cannot publish {branch!r}: it has moved since its rows were checked",
            hint="Nothing was changed; run it again",
        )


@dataclass(frozen=True)
class RollBack:
    """Moves a branch back to one of its own ancestors, and `main` also forward to where it was before."""

    branch: str
    snapshot_id: int

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        target, head = base.snapshot_by_id(self.snapshot_id), base.ref_head(self.branch)
        check_unprotected(base, self.branch, "roll back")
        is_back = head is not None and _is_ancestor(base, target, head)
        if not is_back and self.branch == MAIN and self.snapshot_id in {e.snapshot_id for e in base.snapshot_log}:
            memory = begin_branch(base, self.branch, target)
            return _change(base, self.branch, _moved(base, self.branch, target), *memory)
        if not is_back:
            newest = ", ".join(str(s.snapshot_id) for s in list(base.ancestors(head))[:3])
            raise InvalidInput(
                f"cannot roll back: snapshot {self.snapshot_id} is not an ancestor of {self.branch} "
                f"(newest ancestors: {newest})",
                hint="See `icefield snapshots`",
            )
        memory = forget_undone(base, self.branch, target)
        return _change(base, self.branch, _moved(base, self.branch, target), *memory)

    def reusable_files(self) -> Sequence[str]:
        return ()


@dataclass(frozen=True)
class MoveBranch:
    """Moves a branch to any snapshot of the table; its idempotency keys are those of the branch that has it.

    from_id: the head that the branch must still have; None if any.
    """

    branch: str
    snapshot_id: int
    from_id: int | None = None

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        target = base.snapshot_by_id(self.snapshot_id)
        known = base.refs.get(self.branch)
        if known is not None and known.snapshot_id == target.snapshot_id:
            return NOTHING_TO_DO
        check_unprotected(base, self.branch, "move")
        if self.from_id is not None and (known is None or known.snapshot_id != self.from_id):
            raise ConcurrentChange(
                f"cannot move {self.branch} to snapshot {self.snapshot_id}: it was changed concurrently",
                hint="Nothing was changed; look at the newest version, and run it again",
            )
        moved = _moved(base, self.branch, target)
        return _change(base, self.branch, moved, *begin_branch(base, self.branch, target))

    def reusable_files(self) -> Sequence[str]:
        return ()


def make_ref(snapshot_id: int, kind: RefKind, retention: Mapping[str, int]) -> SnapshotRef:
    """Build a ref with its retention rules. Raises InvalidInput for a rule that does not apply."""
    allowed = BRANCH_RULES if kind is RefKind.BRANCH else TAG_RULES
    for rule, value in retention.items():
        if rule not in allowed:
            raise InvalidInput(f"a {kind} has no rule {rule!r} (rules: {', '.join(allowed)})")
        if type(value) is not int or value < 1:
            raise InvalidInput(f"{rule} must be a number of at least 1, got {value!r}")
    return SnapshotRef(
        snapshot_id,
        kind,
        retention.get("min_snapshots_to_keep"),
        retention.get("max_snapshot_age_ms"),
        retention.get("max_ref_age_ms"),
    )


def _ruled(ref: SnapshotRef, rules: Mapping[str, int | None]) -> SnapshotRef:
    return replace(
        ref,
        min_snapshots_to_keep=rules["min_snapshots_to_keep"],
        max_snapshot_age_ms=rules["max_snapshot_age_ms"],
        max_ref_age_ms=rules["max_ref_age_ms"],
    )


def _is_ancestor(base: TableMetadata, older: Snapshot, newer: Snapshot) -> bool:
    return any(s.snapshot_id == older.snapshot_id for s in base.ancestors(newer))


def _moved(base: TableMetadata, branch: str, to: Snapshot) -> SetSnapshotRef:
    """Move a branch to another snapshot; its retention rules are kept."""
    known = base.refs.get(branch, SnapshotRef(to.snapshot_id))
    if known.kind is not RefKind.BRANCH:
        raise InvalidInput(f"cannot move {branch!r}: it is a tag")
    _check_readable(base, branch, to)
    return SetSnapshotRef(branch, replace(known, snapshot_id=to.snapshot_id))


def _check_readable(base: TableMetadata, branch: str, at: Snapshot) -> None:
    """Refuse a branch at a version, such as one before the table was replaced, that the table's schema cannot read."""
    why = None if at.schema_id is None else find_obstacle(base.schema_by_id(at.schema_id), base)
    if why is not None:
        raise InvalidInput(
            f"{branch} cannot be at snapshot {at.snapshot_id}: branches have the table's schema, and {why}",
            hint="Read that version with as_of or a tag, or make the column optional first",
        )


def _change(base: TableMetadata, name: str, *updates: Update) -> ProposedChange:
    known = base.refs.get(name)
    required = AssertRefSnapshotId(name, known.snapshot_id if known else None)
    return ProposedChange(updates, [AssertTableUUID(base.table_uuid), required])
