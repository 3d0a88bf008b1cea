"""The idempotency keys committed on each branch, in table properties that outlive snapshots.

    icefield.idempotency-keys@main       the newest plain keys, oldest first, separated by spaces; a bounded window
    icefield.stream.clicks@main       the highest batch of the stream `clicks`

They are written by the commit itself, so they survive when icefield or another engine expires its snapshot. Operations
that move a branch update its keys in the same commit: a rollback forgets the keys that it undoes, publish adds those
that it makes visible, and a new branch starts with those of its first snapshot.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from icefield.arguments import whole_number
from icefield.commit.validate.ancestry import MERGED, only_in, summary_id
from icefield.errors import InvalidInput
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import MAIN, RefKind, Snapshot
from icefield.model.updates import RemoveProperties, SetProperties, Update
from icefield.properties.table import COMMIT_TOKENS_KEPT

# Keys of snapshot summaries.
IDEMPOTENCY_KEY = "icefield.idempotency-key"
STREAM_KEY = "icefield.stream"
BATCH_KEY = "icefield.batch"
PREVIOUS_KEY = "icefield.previous-batch"
# Properties; the branch follows an @, which no name of a stream has.
IDEMPOTENCY_KEYS = "icefield.idempotency-keys@"
STREAM = "icefield.stream."
MAX_STREAMS = 1000


@dataclass(frozen=True)
class Memory:
    """The keys committed on one branch: plain keys, oldest first, and the highest batch of each stream."""

    idempotency_keys: tuple[str, ...] = ()
    marks: Mapping[str, int] = field(default_factory=dict)

    def with_summary(self, summary: Mapping[str, str]) -> "Memory":
        """Return the keys after a snapshot was committed."""
        idempotency_key, stream = summary.get(IDEMPOTENCY_KEY), summary.get(STREAM_KEY)
        if idempotency_key is not None and idempotency_key not in self.idempotency_keys:
            return replace(self, idempotency_keys=(*self.idempotency_keys, idempotency_key))
        # Snapshots of other engines may have any value here.
        if stream is not None and (batch := whole_number(summary.get(BATCH_KEY))) is not None:
            return replace(self, marks={**self.marks, stream: max(batch, self.marks.get(stream, 0))})
        return self

    def without_summary(self, summary: Mapping[str, str]) -> "Memory":
        """Return the keys after the newest snapshot was undone."""
        idempotency_key, stream = summary.get(IDEMPOTENCY_KEY), summary.get(STREAM_KEY)
        idempotency_keys = tuple(each for each in self.idempotency_keys if each != idempotency_key)
        marks = {name: mark for name, mark in self.marks.items() if name != stream}
        if stream is not None and (previous := whole_number(summary.get(PREVIOUS_KEY))) is not None:
            marks[stream] = previous
        return Memory(idempotency_keys, marks)


def recorded_keys(properties: Mapping[str, str], branch: str) -> tuple[str, ...]:
    """Return the remembered plain keys of a branch, oldest first."""
    return tuple(properties.get(f"{IDEMPOTENCY_KEYS}{branch}", "").split())


def recorded_batch(properties: Mapping[str, str], branch: str, stream: str) -> int | None:
    """Return the highest committed batch of a stream on a branch. Raises InvalidInput if it is not a number."""
    key = _stream_key(stream, branch)
    text = properties.get(key)
    if text is None:
        return None
    if (batch := whole_number(text)) is None:
        raise InvalidInput(f"table property {key} cannot be {text!r}: it must be a batch number")
    return batch


def recorded_branches(properties: Mapping[str, str]) -> list[str]:
    """Return the branches whose keys are remembered."""
    return sorted(key.removeprefix(IDEMPOTENCY_KEYS) for key in properties if key.startswith(IDEMPOTENCY_KEYS))


def load_memory(properties: Mapping[str, str], branch: str) -> Memory:
    """Return the keys that are remembered for a branch."""
    marks: dict[str, int] = {}
    for key in properties:
        stream, at, of = key.removeprefix(STREAM).partition("@")
        if key.startswith(STREAM) and at and of == branch:
            marks[stream] = recorded_batch(properties, branch, stream) or 0
    return Memory(recorded_keys(properties, branch), marks)


def remember(base: TableMetadata, branch: str, summary: Mapping[str, str]) -> list[Update]:
    """Return the updates that record the key of a snapshot on a branch."""
    if IDEMPOTENCY_KEY not in summary and STREAM_KEY not in summary:
        return []
    memory = load_memory(base.properties, branch)
    stream = summary.get(STREAM_KEY)
    if stream is not None and stream not in memory.marks and len(memory.marks) >= MAX_STREAMS:
        raise InvalidInput(
            f"cannot begin stream {stream!r}: {branch} already has {MAX_STREAMS} streams",
            hint="Use one name for all batches of a job; to forget a finished stream, remove the property "
            f"{STREAM}NAME@{branch}",
        )
    return _updates(base, branch, memory.with_summary(summary))


def summary_of_batch(base: TableMetadata, branch: str, stream: str, batch: int) -> dict[str, str]:
    """Return the summary entries of a batch, with the state that a rollback restores."""
    before = recorded_batch(base.properties, branch, stream)
    previous = {} if before is None else {PREVIOUS_KEY: str(before)}
    return {STREAM_KEY: stream, BATCH_KEY: str(batch), **previous}


def forget_undone(base: TableMetadata, branch: str, to: Snapshot) -> list[Update]:
    """Return the updates for a branch that is rolled back to one of its ancestors."""
    return _updates(base, branch, _memory_at(base, branch, to))


def take_over(base: TableMetadata, branch: str, source: str, head: Snapshot) -> list[Update]:
    """Return the updates for a branch that is fast-forwarded to the head of another ref."""
    before, brought = load_memory(base.properties, branch), load_memory(base.properties, source)
    known = base.ref_head(branch)
    news = _until(base.ancestors(head), known.snapshot_id if known else None)
    memory = Memory(
        (*before.idempotency_keys, *(t for t in brought.idempotency_keys if t not in before.idempotency_keys)),
        dict(before.marks),
    )
    memory = replace(memory, marks={**brought.marks, **_highest(before.marks, brought.marks)})
    for snapshot in reversed(news):
        memory = memory.with_summary(snapshot.summary)
    return _updates(base, branch, memory)


def begin_branch(base: TableMetadata, branch: str, at: Snapshot) -> list[Update]:
    """Return the updates for a branch that begins or moves anywhere: the keys that the table had at that snapshot.

    They are those of a branch that has it, or that parted from it last, as after a rollback.
    """
    order = [branch, MAIN, *sorted(base.refs)]
    sources = [name for name in order if name in base.refs and base.refs[name].kind is RefKind.BRANCH]
    line = list(base.ancestors(at))
    # What is older may have expired: the later the two parted, the more is known.
    places = ((_place_of_parting(base, source, line), source) for source in sources)
    place, source = min(places, key=lambda each: each[0], default=(len(line), branch))
    memory = _memory_at(base, source, line[place]) if place < len(line) else Memory()
    for again in reversed(line[:place]):
        for snapshot in reversed(_with_merged(base, again)):
            memory = memory.with_summary(snapshot.summary)
    return _updates(base, branch, memory)


def rename_branch(base: TableMetadata, branch: str, new_name: str) -> list[Update]:
    """Return the updates for a branch with another name."""
    return [*_updates(base, new_name, load_memory(base.properties, branch)), *forget_branches(base, [branch])]


def forget_branches(base: TableMetadata, branches: Iterable[str]) -> list[Update]:
    """Return the updates for dropped branches."""
    return [update for branch in branches for update in _updates(base, branch, Memory())]


def _place_of_parting(base: TableMetadata, branch: str, line: Sequence[Snapshot]) -> int:
    """Return the place of the first snapshot of a line, newest first, that a branch has; its length if it has none."""
    own = {snapshot.snapshot_id for snapshot in base.ancestors(base.ref_head(branch))}
    return next((place for place, each in enumerate(line) if each.snapshot_id in own), len(line))


def _memory_at(base: TableMetadata, branch: str, snapshot: Snapshot) -> Memory:
    memory = load_memory(base.properties, branch)
    for undone in _until(base.ancestors(base.ref_head(branch)), snapshot.snapshot_id):
        for each in _with_merged(base, undone):
            memory = memory.without_summary(each.summary)
    return memory


def _with_merged(base: TableMetadata, snapshot: Snapshot) -> list[Snapshot]:
    """Return a snapshot, and those that it brought from a branch that was published to this one; newest first."""
    merged = base.snapshots.find(summary_id(snapshot, MERGED) or 0)
    parent = base.snapshots.find(snapshot.parent_snapshot_id or 0)
    return [snapshot, *(() if merged is None else only_in(base, merged, parent))]


def _until(ancestors: Iterable[Snapshot], snapshot_id: int | None) -> list[Snapshot]:
    found: list[Snapshot] = []
    for snapshot in ancestors:
        if snapshot.snapshot_id == snapshot_id:
            break
        found.append(snapshot)
    return found


def _highest(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {stream: max(mark, other.get(stream, mark)) for stream, mark in one.items()}


def _updates(base: TableMetadata, branch: str, memory: Memory) -> list[Update]:
    """Return the updates that set the properties of a branch to its keys, and remove others."""
    kept = COMMIT_TOKENS_KEPT.read(base.properties)
    wanted = {_stream_key(stream, branch): str(mark) for stream, mark in memory.marks.items()}
    if (
        idempotency_keys := memory.idempotency_keys[len(memory.idempotency_keys) - kept :]
        if kept < len(memory.idempotency_keys)
        else memory.idempotency_keys
    ):
        wanted[f"{IDEMPOTENCY_KEYS}{branch}"] = " ".join(idempotency_keys)
    before = load_memory(base.properties, branch)
    known = {_stream_key(stream, branch) for stream in before.marks} | {f"{IDEMPOTENCY_KEYS}{branch}"}
    removed = tuple(sorted(key for key in known - wanted.keys() if key in base.properties))
    changed = {key: value for key, value in wanted.items() if base.properties.get(key) != value}
    updates: list[Update] = [RemoveProperties(removed)] if removed else []
    return [*updates, SetProperties(changed)] if changed else updates


def _stream_key(stream: str, branch: str) -> str:
    return f"{STREAM}{stream}@{branch}"
