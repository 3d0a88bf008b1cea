"""Forget rows: delete them on every branch, and every file, snapshot and statistic that holds them.

    1  find what holds the rows          in every snapshot, deleted rows too
    2  on each branch                    delete the rows by copy-on-write; rewrite files with rows deleted before;
                                         convert equality deletes; drop deletes and manifest entries of removed files
    3  drop tags that hold them          only if asked for; without that, nothing is changed
    4  expire the snapshots              that lead to one of the files, or to statistics of it
    5  mark orphan files, and sweep      after the grace period, unless a lease holds them
    6  search                            when nothing waits any more

Every step finds out what is left to do, so that a call continues what an earlier one, or one that crashed, began.
Raises InvalidInput before anything is changed: for tags, tables that share files, a grace period that is refused, and a
term of the search that is in the name of a directory or a column.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa

from icefield.commit.action import CommitTarget
from icefield.commit.actions.expire import RemoveTheseSnapshots
from icefield.commit.actions.refs import DropRef
from icefield.commit.actions.rewrite_manifests import RewriteManifests
from icefield.commit.relocate import Progress
from icefield.compaction.compact import Compaction
from icefield.compaction.options import MOST_ROUNDS, CompactionRequest
from icefield.compaction.rewrite_deletes import DeleteRewrite
from icefield.dml.head import TableHead
from icefield.dml.result import ChangeResult
from icefield.dml.write import TableWrite
from icefield.engine.choose import EngineChoice, EngineName
from icefield.engine.engine import RowEngine
from icefield.engine.rows import bind_filter
from icefield.errors import IcefieldError, InvalidInput, NoSuchSnapshot
from icefield.forget.holders import Holders, find_holders
from icefield.forget.result import ForgetResult, SearchResult
from icefield.forget.search import Search, Term, check_terms
from icefield.leases.folder import metadata_folder
from icefield.marks.grace import grace_of
from icefield.marks.mark import RETIRED
from icefield.model.snapshot import RefKind
from icefield.storage.store import remove_empty_directories
from icefield.upkeep.checks import check_enabled
from icefield.upkeep.expire import expire_snapshots
from icefield.upkeep.orphans import distinct_roots, remove_orphans, safe_age_ms
from icefield.upkeep.owned import Ownership
from icefield.upkeep.result import SweepResult

MOST_CONFLICTS = 10


class Branch(Protocol):
    """A handle on a branch."""

    def delete(
        self, where: object, *, dry_run: bool, mode: str, retry_conflicts: int, engine: EngineName | None
    ) -> ChangeResult: ...


@dataclass(frozen=True)
class ForgetRequest:
    """What a caller asks for. where: a filter. terms: what is searched for. engine: the engine of its choice."""

    where: object
    terms: Sequence[Term] = ()
    drop_tags: bool = False
    engine: EngineName | None = None


@dataclass
class Forget:
    """A forget in progress. at: opens a branch. progress: called with each file that is deleted."""

    head: TableHead
    request: ForgetRequest
    at: Callable[[str], Branch]
    progress: Progress
    _known: dict[str, bool] = field(default_factory=dict)
    _rows: dict[str, int] = field(default_factory=dict)
    _files: dict[str, int] = field(default_factory=dict)
    _keys: set[str] = field(default_factory=set)
    _tags: set[str] = field(default_factory=set)
    _expired: set[int] = field(default_factory=set)
    _swept: list[SweepResult] = field(default_factory=list)

    def dry_run(self) -> ForgetResult:
        """Return what would be done."""
        self._check_first()
        held = self._find()
        rows = {branch: self._delete(branch, dry_run=True) for branch in held.branches}
        made = replace(self._result(None), is_dry_run=True, rows_deleted=rows, branches=held.branches, tags=held.tags)
        return replace(made, snapshot_ids=tuple(sorted(held.snapshot_ids)))

    def run(self) -> ForgetResult:
        """Do what is left to do, and return what was done, what waits, and what the search found."""
        self._check_first()
        held = self._find()
        self._check_tags(held)
        for _ in range(MOST_ROUNDS):
            if not held.snapshot_ids:
                break
            for branch in held.branches:
                self._rewrite(branch)
            if self.request.drop_tags:
                self._drop_tags(held)
            self._expire()
            held = self._find()
        left = (*held.branches, *held.tags) or tuple(str(each) for each in sorted(held.snapshot_ids))
        try:
            swept = self._sweep()
            # Metadata files hold no rows; a table that others commit to always has some that wait.
            is_waiting = any(held.marked != RETIRED for held in swept.waiting)
            if not is_waiting:
                self._remove_directories()
        except IcefieldError as error:
            return replace(self._result(None), left=left, unfinished=str(error))
        made = replace(self._result(swept), left=left)
        return made if is_waiting else replace(made, search=self._search())

    def _check_first(self) -> None:
        """Refuse before anything is changed: a table whose files are not deleted, a search that never ends clean."""
        version = self.head.load()
        check_enabled(version.metadata.properties)
        grace_of(version.metadata.properties)
        check_terms(self.request.terms, version.metadata, distinct_roots(version))

    def _find(self) -> Holders:
        base, context = self.head.load().metadata, self.head.backend.reading
        where = bind_filter(self.request.where, base.schema)
        choice = EngineChoice(self.head.sessions, self.request.engine)

        def engine(work_bytes: int) -> RowEngine:
            return choice.open(choice.use(work_bytes, context.store), context, base)

        held = find_holders(context, base, where, engine, self._known)
        self._files |= held.files
        self._keys |= held.keys
        return held

    def _check_tags(self, held: Holders) -> None:
        if held.tags and not self.request.drop_tags:
            raise InvalidInput(
                f"cannot forget the rows: {len(held.tags)} tag(s) lead to them: {', '.join(held.tags)}",
                hint="Drop the tags, or pass drop_tags=True (--drop-tags)",
            )

    def _begin(self, branch: str) -> TableWrite:
        return replace(TableWrite.begin(self.head, CommitTarget(branch)), asked=self.request.engine)

    def _delete(self, branch: str, *, dry_run: bool = False) -> int:
        done = self.at(branch).delete(
            self.request.where,
            dry_run=dry_run,
            mode="copy-on-write",
            retry_conflicts=MOST_CONFLICTS,
            engine=self.request.engine,
        )
        return done.rows_deleted

    def _rewrite(self, branch: str) -> None:
        """Remove every file that holds the rows from the head of a branch, and what its manifests say of them."""
        self._rows[branch] = self._rows.get(branch, 0) + self._delete(branch)
        held = self._find()
        if held.files:
            request = CompactionRequest(self.request.where)
            Compaction(lambda: self._begin(branch), request, lambda _: None, only=frozenset(held.files)).run()
        DeleteRewrite(lambda: self._begin(branch), convert_equality=bool(held.keys), rewrites_shared=True).run()
        self.head.commit([RewriteManifests(CommitTarget(branch))])

    def _drop_tags(self, held: Holders) -> None:
        for tag in held.tags:
            if tag in self.head.load().metadata.refs:
                self.head.commit([DropRef(tag, RefKind.TAG)])
                self._tags.add(tag)

    def _expire(self) -> None:
        held = self._find().snapshot_ids
        gone = held - {ref.snapshot_id for ref in self.head.load().metadata.refs.values()}
        if not gone:
            return
        try:
            done = expire_snapshots(self.head, RemoveTheseSnapshots(gone), progress=self.progress)
        except (NoSuchSnapshot, InvalidInput):
            return  # another process has removed one, or has named one; the next round finds out
        self._expired |= set(done.snapshot_ids)
        self._swept += [] if done.swept is None else [done.swept]

    def _sweep(self) -> SweepResult:
        """Delete what is due; also files that an interrupted call has left as orphan files."""
        age_ms = safe_age_ms(self.head.load().metadata.properties)
        found = remove_orphans(self.head, older_than_ms=age_ms, progress=self.progress)
        assert found.swept is not None
        earlier = [*self._swept, found.swept]
        kinds = Counter[str]()
        for each in earlier:
            kinds.update(each.kinds)
        return replace(
            found.swept,
            files_deleted=sum(each.files_deleted for each in earlier),
            bytes_deleted=sum(each.bytes_deleted for each in earlier),
            kinds=dict(kinds),
        )

    def _remove_directories(self) -> None:
        """Remove empty directories: the values of partitions are in their names."""
        for root in distinct_roots(self.head.load()):
            remove_empty_directories(self.head.backend.store, root)

    def _search(self) -> SearchResult:
        version = self.head.load()
        base = version.metadata
        where = bind_filter(self.request.where, base.schema)
        search = Search(self.head.backend.store, base, where, self.request.terms)
        return search.run(distinct_roots(version), metadata_folder(base))

    def _result(self, swept: SweepResult | None) -> ForgetResult:
        base = self.head.load().metadata
        paths = pa.array(list(self._files), pa.string())
        owned = Ownership(base).kinds(paths).to_pylist() if len(paths) else []
        return ForgetResult(
            str(self.head.name),
            rows_deleted=self._rows,
            files=len(self._files),
            bytes=sum(self._files.values()),
            delete_files=len(self._keys),
            branches=tuple(self._rows),
            tags=tuple(sorted(self._tags)),
            snapshot_ids=tuple(sorted(self._expired)),
            outside=tuple(path for path, kind in zip(self._files, owned, strict=True) if kind is None),
            swept=swept,
        )
