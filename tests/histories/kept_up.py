"""A random history with the upkeep of the table in it: no row changes, and files that nothing needs go at once."""

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pyarrow as pa
from tests.commit.racing import race
from tests.histories.features import EVERYTHING, Features
from tests.histories.filters import draw_filter
from tests.histories.history import MOST_ROWS, REFUSALS, History
from tests.histories.model import KEY_ID
from tests.sim.reading import Reading

from icefield.lake import Lake
from icefield.table.table import Table

LATER = "2100-01-01T00:00:00Z"
AT_ONCE = {
    "icefield.gc.grace-ms": "0",
    "icefield.gc.metadata-grace-ms": "0",
    "icefield.gc.foreign-readers": "false",
    "icefield.gc.orphan-age-ms": "0",
    "icefield.gc.undrop-ms": "86400000",
}


class KeptUpHistory(History):
    """A table that is changed and kept up in turns."""

    def __init__(self, random: Random, lake: Lake, name: str, features: Features = EVERYTHING) -> None:
        super().__init__(random, lake, name, features)
        self.table.set_properties(AT_ONCE)

    def _verbs(self) -> list[Callable[[], None]]:
        verbs = [*super()._verbs(), self._append, self._delete, self._upsert]
        verbs += [self._compact_somehow, self._compact_somehow, self._compact_somehow, self._rewrite_deletes]
        verbs += [self._expire, self._remove_orphans, self._drop_and_restore]
        verbs += [self._change_during_upkeep] * 3 + [self._upkeep_during_change] * 3
        if self.features.deletes_by_equality and self.model.format_version > 1:
            verbs += [self._upsert_by_equality, self._upsert_by_equality, self._convert_deletes]
        return verbs

    def _compact_somehow(self) -> None:
        """Compact in one of the ways there are, with the engine of the features."""
        leaves = [leaf.dotted for leaf in self.model.schema.leaves if not leaf.repeated]
        options = self.random.choice(
            (
                {"rewrite-all": "true"},
                {"rewrite-all": "true", "target-file-size-bytes": "1000"},
                {"rewrite-all": "true", "commit-size-bytes": "1"},
                {"min-input-files": "2"},
                {"delete-ratio": "0.01", "min-file-size-bytes": "1"},
            )
        )
        some = self.random.sample(leaves, min(len(leaves), 2))
        how: dict[str, Any] = self.random.choice(
            ({}, {}, {"order_by": [f"`{some[0]}` desc"] if "." not in some[0] else ["key"]}, {"cluster_by": some})
        )
        where = draw_filter(self.random, self.model) if self.random.random() < 0.3 else None
        planned = self.table.compact(where, options=options, dry_run=True, **how)
        done = self.table.compact(where, options=options, **how)
        assert done.plan.files_to_rewrite == planned.plan.files_to_rewrite == done.files_removed
        assert done.groups_left_out == 0
        self.steps.append(f"compact {how} {options} {where}")

    def _rewrite_deletes(self) -> None:
        convert = self.random.random() < 0.3 and self.features.deletes_by_equality
        self.table.rewrite_deletes(convert_equality=convert)
        assert self.table.rewrite_deletes().snapshot is None, "a second rewrite found something to do"
        self.steps.append("rewrite deletes")

    def _convert_deletes(self) -> None:
        self.table.convert_equality_deletes()
        self.steps.append("convert equality deletes")

    def _upsert_by_equality(self) -> None:
        rows, given = self._rows_of(list(self.model.fields), self.random.randrange(1, MOST_ROWS), lambda _: None)
        known = [row[KEY_ID] for row in self.model.rows]
        keys = [self.random.choice(known) if known and self.random.random() < 0.6 else row[KEY_ID] for row in rows]
        if len(set(keys)) < len(keys):
            return
        for row, key in zip(rows, keys, strict=True):
            row[KEY_ID] = key
        name = self.model.key.name
        at = given.column_names.index(name)
        self.table.upsert(
            given.set_column(at, given.schema.field(at), pa.array(keys, pa.int64())), on=[name], mode="equality"
        )
        self.reborn |= set(keys)
        self.model.rows = [row for row in self.model.rows if row[KEY_ID] not in keys] + rows
        self.steps.append("upsert by equality")

    def _expire(self) -> None:
        self._expire_of(self.table)
        self.steps.append("expire")

    def _expire_of(self, table: Table) -> None:
        done = table.expire_snapshots(LATER, keep_last=self.random.choice((1, 1, 2, 4)))
        assert done.unfinished is None
        gone = set(done.snapshot_ids)
        self.past = [past for past in self.past if past.snapshot_id not in gone]

    def _remove_orphans(self) -> None:
        self.table.remove_orphans(unsafe=True)
        self.table.sweep()
        store = self.lake.store
        reading = Reading(store)
        there = {file.location for file in store.list(self.table.location) if "/metadata/gc/" not in file.location}
        metadata = self.table.metadata
        needed = reading.files_of_table(self.table.metadata_location) | {
            entry.metadata_file for entry in metadata.metadata_log
        }
        assert {f for f in needed if f.startswith(self.table.location)} <= there
        assert {f for f in there - needed if "/added/" not in f} == set()
        self.steps.append("remove orphans")

    def _change_during_upkeep(self) -> None:
        """Change rows or columns while somebody else keeps the table up first: the change does not fail for it."""
        change = self.random.choice(self._changes())
        other, kept = self.lake.table(str(self.table.name)), list[str]()

        def keep_up() -> None:
            for _ in range(self.random.choice((1, 1, 2))):
                kept.append(self._keep_up(other))

        with suppress(*REFUSALS):
            race(self.lake, keep_up, change)
        self.steps.append(f"{self.steps[-1]} across {kept}")

    def _upkeep_during_change(self) -> None:
        """Keep the table up while somebody else changes it first: upkeep gives way, and does not fail."""
        change = self.random.choice(self._changes())
        other = self.lake.table(str(self.table.name))

        def change_unless_refused() -> None:
            with suppress(*REFUSALS):
                change()

        race(self.lake, change_unless_refused, lambda: self._keep_up(other))

    def _changes(self) -> list[Callable[[], None]]:
        found = [self._append, self._delete, self._delete, self._overwrite, self._upsert, self._upsert, self._evolve]
        by_equality = self.features.deletes_by_equality and self.model.format_version > 1
        return [*found, self._upsert_by_equality] if by_equality else found

    def _keep_up(self, table: Table) -> str:
        key, all_files = f"`{self.model.key.name}`", {"rewrite-all": "true"}
        steps: dict[str, Callable[[], object]] = {
            "compact": lambda: table.compact(options=all_files),
            "sort": lambda: table.compact(order_by=[key]),
            "rewrite deletes": lambda: table.rewrite_deletes(convert_equality=True),
            "rewrite manifests": table.rewrite_manifests,
            "expire": lambda: self._expire_of(table),
        }
        name = self.random.choice(sorted(steps))
        steps[name]()
        return name

    def _drop_and_restore(self) -> None:
        name = str(self.table.name)
        self.lake.drop_table(name, purge=self.random.random() < 0.5)
        assert not self.lake.has_table(name)
        self.table = self.lake.undrop(name)
        self.steps.append("drop and restore")

    def check_health(self) -> None:
        """Check the metadata of the table."""
        found = [each for each in self.table.fsck().findings if not each.is_harmless]
        assert not found, found
