"""The settings of one compaction: the table's properties, and the options of the call that override them.

An option is named like the property without its prefix, such as `min-input-files`; other options are those of writes,
such as `target-file-size-bytes`. Raises InvalidInput.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput
from icefield.properties.compaction import (
    COMPACTION_COMMIT_BYTES,
    COMPACTION_DELETE_RATIO,
    COMPACTION_MAX_FILE_BYTES,
    COMPACTION_MIN_FILE_BYTES,
    COMPACTION_MIN_INPUT_FILES,
)
from icefield.properties.property import Property, flag

with deferred_imports(__name__):
    from icefield.compaction.plan import Reason, Thresholds
    from icefield.model.metadata import TableMetadata
    from icefield.properties.check import with_options
    from icefield.properties.table import TARGET_FILE_SIZE_BYTES

BIN_PACK, SORT, CLUSTER = "bin-pack", "sort", "cluster"
STRATEGIES = (BIN_PACK, SORT, CLUSTER)
PREFIX = "icefield.compaction."
MOST_ROUNDS = 3  # of planning again what others changed first
_OWN = frozenset(
    known.key
    for known in (
        COMPACTION_MIN_INPUT_FILES,
        COMPACTION_MIN_FILE_BYTES,
        COMPACTION_MAX_FILE_BYTES,
        COMPACTION_DELETE_RATIO,
        COMPACTION_COMMIT_BYTES,
    )
)
_REWRITE_ALL = Property("icefield.compaction.rewrite-all", flag, False, "Only an option of one call.")
_SMALL_SHARE = 0.75  # of the target size
_LARGE_SHARE = 1.8


@dataclass(frozen=True)
class CompactionLimit:
    """How far a compaction goes.

    is_over: asked before each part that is committed on its own. most_bytes: how much data is rewritten at most.
    commit_bytes: about how much before each commit, if that is less than the table's property. newest_only: only full
    levels among the newest small files. rounds: of planning again what others changed first.
    """

    is_over: Callable[[], bool] = lambda: False
    most_bytes: int | None = None
    commit_bytes: int | None = None
    newest_only: bool = False
    rounds: int = MOST_ROUNDS


NO_LIMIT = CompactionLimit()


@dataclass(frozen=True)
class CompactionRequest:
    """What a caller asks for. where: a filter. options: as they were given. cluster_by: the names of columns.

    order_by: terms of a sort order, instead of the table's.
    """

    where: object = None
    strategy: str = BIN_PACK
    cluster_by: Sequence[str] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    order_by: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise InvalidInput(f"unknown strategy {self.strategy!r}", hint=f"Choose one of {', '.join(STRATEGIES)}")
        if (self.strategy == CLUSTER) != bool(self.cluster_by):
            raise InvalidInput(
                "cluster_by and strategy='cluster' belong together",
                hint="Give the columns: cluster_by=['a', 'b']",
            )
        if self.order_by and self.strategy != SORT:
            raise InvalidInput(f"order_by is for strategy='sort', not {self.strategy!r}")
        if len({_key(name) for name in self.options}) < len(self.options):
            raise InvalidInput("an option is given twice: by its short name and by its key", hint="Give it once")

    @property
    def own_options(self) -> dict[str, str]:
        """The options of compaction, by the keys of their properties."""
        return {_key(name): value for name, value in self.options.items() if _key(name) in _OWN}

    @property
    def write_options(self) -> dict[str, str]:
        """The options of the files that are written."""
        return {name: value for name, value in self.options.items() if _key(name) not in (*_OWN, _REWRITE_ALL.key)}

    @property
    def rewrites_every(self) -> Reason | None:
        """Why every file is rewritten, good ones too; None if they are not."""
        if self.strategy != BIN_PACK:
            return Reason.ORDER
        asked = {_key(name): value for name, value in self.options.items()}
        return Reason.ASKED if _REWRITE_ALL.read(asked) else None

    def thresholds(self, base: TableMetadata) -> Thresholds:
        """Return what makes a file worth rewriting."""
        properties = self.properties(base)
        target = TARGET_FILE_SIZE_BYTES.read(properties)
        least = COMPACTION_MIN_FILE_BYTES.read(properties)
        most = COMPACTION_MAX_FILE_BYTES.read(properties)
        found = Thresholds(
            target_bytes=target,
            min_file_bytes=int(target * _SMALL_SHARE) if least is None else least,
            max_file_bytes=int(target * _LARGE_SHARE) if most is None else most,
            min_input_files=COMPACTION_MIN_INPUT_FILES.read(properties),
            delete_ratio=COMPACTION_DELETE_RATIO.read(properties),
        )
        if not found.min_file_bytes <= found.target_bytes <= found.max_file_bytes:
            raise InvalidInput(
                f"the target file size, {found.target_bytes:,} bytes, is not between the sizes that compaction leaves "
                f"as they are, {found.min_file_bytes:,} and {found.max_file_bytes:,}: it would never end",
                hint=f"Change {COMPACTION_MIN_FILE_BYTES.key} or {COMPACTION_MAX_FILE_BYTES.key}",
            )
        return found

    def properties(self, base: TableMetadata) -> dict[str, str]:
        """Return the properties of the table, with the options in their place."""
        columns = [leaf.dotted for leaf in base.schema.leaves]
        others = sorted(key.removeprefix(PREFIX) for key in (*_OWN, _REWRITE_ALL.key))
        return {**with_options(base.properties, self.write_options, columns, others), **self.own_options}


def _key(name: str) -> str:
    return name if name.startswith(PREFIX) else PREFIX + name
