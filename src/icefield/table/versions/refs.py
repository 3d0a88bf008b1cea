"""The branches and tags of a table: names of its versions.

Raises NoSuchTable, NoSuchSnapshot, AlreadyExists, InvalidInput, CommitConflict, CommitStateUnknown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from icefield.arguments import check_arguments
from icefield.deferred import deferred_imports
from icefield.errors import NoSuchSnapshot

with deferred_imports(__name__):
    from icefield.commit.action import Action
    from icefield.commit.actions.refs import BeginEmptyBranch, CreateRef, DropRef, RenameRef, SetRetention, make_ref
    from icefield.dml.head import TableHead, preview
    from icefield.history.refs import RefStatus, list_refs
    from icefield.model.metadata import TableMetadata
    from icefield.model.snapshot import RefKind, SnapshotRef
    from icefield.plan.versions import AsOf, ResolvedVersion, resolve_version


@check_arguments
class TableRefs(ABC):
    """The part of a table handle that deals with branches and tags."""

    def __init__(self, head: TableHead, ref: str) -> None:
        self._head = head
        self._ref = ref

    @abstractmethod
    def refresh(self) -> TableMetadata:
        """Load the newest metadata and return it."""

    def refs(self) -> dict[str, SnapshotRef]:
        """Return the branches and tags by name."""
        return dict(self.refresh().refs)

    def create_branch(
        self, name: str, *, at: AsOf | None = None, replace: bool = False, dry_run: bool = False, **retention: int
    ) -> None:
        """Create a branch that starts at the head of this one, or at another version.

        The branch of a table without snapshots starts with an empty one.

        Args:
            name: The name of the branch.
            at: The version to start at: a snapshot id, a time, or a branch or tag.
            replace: If the branch exists, move it there. It keeps the retention rules that are not given.
            dry_run: Fail as the change would, and change nothing.
            retention: `min_snapshots_to_keep`, `max_snapshot_age_ms`, `max_ref_age_ms`.
        """
        self._create_ref(name, RefKind.BRANCH, at, retention, replaces=replace, dry_run=dry_run)

    def create_tag(
        self, name: str, *, at: AsOf | None = None, replace: bool = False, dry_run: bool = False, **retention: int
    ) -> None:
        """Create a tag: a name for one version.

        Args:
            name: The name of the tag.
            at: The version to tag: a snapshot id, a time, or a branch or tag. By default the head of this branch.
            replace: If the tag exists, move it there. It keeps the retention rules that are not given.
            dry_run: Fail as the change would, and change nothing.
            retention: `max_ref_age_ms`.
        """
        self._create_ref(name, RefKind.TAG, at, retention, replaces=replace, dry_run=dry_run)

    def drop_branch(self, name: str, *, dry_run: bool = False) -> None:
        """Drop a branch. Its snapshots are kept until they expire.

        Args:
            name: The branch.
            dry_run: Fail as the change would, and change nothing.
        """
        self._change_ref(DropRef(name, RefKind.BRANCH), dry_run=dry_run)

    def drop_tag(self, name: str, *, dry_run: bool = False) -> None:
        """Drop a tag. Its snapshot is kept until it expires.

        Args:
            name: The tag.
            dry_run: Fail as the change would, and change nothing.
        """
        self._change_ref(DropRef(name, RefKind.TAG), dry_run=dry_run)

    def rename_branch(self, name: str, new_name: str, *, dry_run: bool = False) -> None:
        """Rename a branch.

        Args:
            name: The branch.
            new_name: Its new name.
            dry_run: Fail as the change would, and change nothing.
        """
        self._change_ref(RenameRef(name, new_name, RefKind.BRANCH), dry_run=dry_run)

    def rename_tag(self, name: str, new_name: str, *, dry_run: bool = False) -> None:
        """Rename a tag.

        Args:
            name: The tag.
            new_name: Its new name.
            dry_run: Fail as the change would, and change nothing.
        """
        self._change_ref(RenameRef(name, new_name, RefKind.TAG), dry_run=dry_run)

    def set_retention(self, name: str, *, dry_run: bool = False, **rules: int | None) -> None:
        """Set retention rules of a branch or tag; None removes one.

        Args:
            name: The branch or tag.
            dry_run: Fail as the change would, and change nothing.
            rules: `min_snapshots_to_keep`, `max_snapshot_age_ms`, `max_ref_age_ms`.
        """
        self._change_ref(SetRetention(name, rules), dry_run=dry_run)

    def ref_status(self) -> list[RefStatus]:
        """List the branches and tags, and how many snapshots each is ahead of `main` and behind it."""
        return list_refs(self.refresh())

    def _create_ref(
        self, name: str, kind: RefKind, at: AsOf | None, retention: Mapping[str, int], *, replaces: bool, dry_run: bool
    ) -> None:
        snapshot = self._point(self._load(), at).snapshot
        if snapshot is None and kind is RefKind.BRANCH:
            self._change_ref(BeginEmptyBranch(name, make_ref(0, kind, retention)), dry_run=dry_run)
            return
        if snapshot is None:
            raise NoSuchSnapshot(f"cannot create {name!r}: the table has no snapshots", hint="Write to it first")
        self._change_ref(CreateRef(name, make_ref(snapshot.snapshot_id, kind, retention), replaces), dry_run=dry_run)

    def _change_ref(self, action: Action, *, dry_run: bool) -> None:
        if dry_run:
            preview(action, self._head)
        else:
            self._head.commit([action])

    def _load(self) -> TableMetadata:
        """Load the newest metadata for calls that do not read rows, or that record the read themselves."""
        return self._head.load().metadata

    def _point(self, metadata: TableMetadata, as_of: AsOf | None) -> ResolvedVersion:
        return resolve_version(metadata, self._ref if as_of is None else as_of)
