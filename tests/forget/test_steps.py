"""Each step of forget is needed: without it, the result says that the rows are not gone.

The search shares nothing with the steps but the reader of Parquet files, so that it also finds what the look for files
that hold the rows has missed.
"""

import gzip
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.forget.test_forget import ADA, SCHEMA, WHERE, bytes_left, forget, make, names, people
from tests.upkeep.fixtures import AT_ONCE, Yard, make_yard

from icefield import connect
from icefield.commit.action import NOTHING_TO_DO
from icefield.errors import InvalidInput
from icefield.forget import forget as steps
from icefield.forget import holders, search
from icefield.forget.forget import Forget
from icefield.forget.result import SearchResult
from icefield.table.table import Table
from icefield.upkeep.result import OrphanResult, SweepResult

MERGE_ON_READ = {"write.delete.mode": "merge-on-read"}


def populated(yard: Yard) -> Table:
    """The rows are on two branches, in old snapshots, behind deletes, and in keys of deletes."""
    table = make(yard, 2, properties=MERGE_ON_READ)
    table.create_branch("b")
    table.at("b").append(people(ADA, "tony"))
    table.delete(WHERE)
    table.upsert(people(ADA), on=["name"], mode="equality")
    table.delete(WHERE)
    return table


class _Idle:
    """Work that is not done."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def run(self) -> None:
        pass


class _IdleAction:
    """An action that proposes nothing."""

    def __init__(self, *_: object) -> None:
        pass

    def propose(self, *_: object) -> Any:
        return NOTHING_TO_DO

    def reusable_files(self) -> Sequence[str]:
        return ()


def no_delete(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Forget, "_delete", lambda *_, **__: 0)
    patch.setattr(steps, "Compaction", _Idle)


def main_alone(patch: pytest.MonkeyPatch) -> None:
    real = Forget._rewrite
    patch.setattr(Forget, "_rewrite", lambda self, branch: real(self, branch) if branch == "main" else None)


def no_rewrite_of_deleted_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(steps, "Compaction", _Idle)


def no_conversion(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(steps, "DeleteRewrite", _Idle)


def manifests_as_they_are(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(steps, "RewriteManifests", _IdleAction)


def no_expiry(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Forget, "_expire", lambda _: None)


def no_sweep(patch: pytest.MonkeyPatch) -> None:
    """Neither by expiry nor at the end; as if nothing waited."""
    patch.setattr("icefield.upkeep.expire.sweep", lambda *_, **__: SweepResult("t.t"))
    patch.setattr(steps, "remove_orphans", lambda *_, **__: OrphanResult("t.t", swept=SweepResult("t.t")))


def no_search(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Forget, "_search", lambda _: None)


def keys_overlooked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(holders, "_equality_entries", lambda _: [])
    patch.setattr(steps, "DeleteRewrite", _Idle)


def deleted_rows_overlooked(patch: pytest.MonkeyPatch) -> None:
    """Only what a scan returns counts."""
    patch.setattr(holders, "_matching", lambda tasks, *_: {task.location: False for task in tasks})


STEPS: dict[Callable[[pytest.MonkeyPatch], None], str] = {
    no_delete: "left",
    main_alone: "left",
    no_rewrite_of_deleted_rows: "left",
    no_conversion: "left",
    manifests_as_they_are: "left",
    no_expiry: "left",
    no_sweep: "search",
    no_search: "no search",
    keys_overlooked: "search",
    deleted_rows_overlooked: "search",
}


def test_with_all_steps_nothing_is_left() -> None:
    yard = make_yard()
    table = populated(yard)
    done = forget(table)
    assert done.is_finished, str(done)
    assert ADA not in names(table) + names(table.at("b"))
    assert bytes_left(yard) == []


@pytest.mark.every_case
@pytest.mark.parametrize("plant", STEPS, ids=lambda plant: plant.__name__)
def test_without_a_step_the_result_says_that_the_rows_are_not_gone(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = populated(make_yard())
    with monkeypatch.context() as patch:
        plant(patch)
        done = forget(table)
    assert not done.is_finished, str(done)
    found = done.search is not None and not done.search.is_clean
    said = {"left": bool(done.left), "search": found, "no search": done.search is None}
    assert said[STEPS[plant]], str(done)
    assert forget(table).is_finished, "a later call continues"


def test_a_tag_that_is_not_refused_is_named_and_its_rows_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    table = populated(make_yard())
    table.create_tag("release", at=table.snapshots()[0].snapshot_id)
    with pytest.raises(InvalidInput, match="release"):
        forget(table)
    monkeypatch.setattr(Forget, "_check_tags", lambda *_: None)
    done = forget(table)
    assert (done.is_finished, done.left) == (False, ("release",))
    assert done.search is not None
    assert not done.search.is_clean
    monkeypatch.setattr(Forget, "_drop_tags", lambda *_: None)
    done = forget(table, drop_tags=True)
    assert (done.is_finished, done.left) == (False, ("release",))


def test_directories_that_stay_are_found_by_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search lists files alone, so that only the names of directories on the disk show it."""
    with connect(str(tmp_path), durable=False) as lake:
        table = lake.create_table("t.t", SCHEMA, partition_by=["name"], properties=AT_ONCE)
        table.append(people("grace", ADA))
        monkeypatch.setattr(Forget, "_remove_directories", lambda _: None)
        forget(table)
        assert [path for path in tmp_path.rglob("*") if ADA[:10] in path.name] != []
        monkeypatch.undo()
        assert forget(table).is_finished
        assert [path for path in tmp_path.rglob("*") if ADA[:10] in path.name] == []


PLACES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "name": lambda patch: patch.setattr(search.Search, "_in_bytes", _without("name", search.Search._in_bytes)),
    "raw bytes": lambda patch: patch.setattr(search.Search, "_in_raw", lambda *_: iter(())),
    "column": lambda patch: patch.setattr(search.Search, "_in_parquet", lambda *_, **__: iter(())),
    "decoded": lambda patch: patch.setattr(search, "_DECODERS", {}),
}


def _without(place: str, real: Any) -> Any:
    def found(self: Any, data: bytes, location: str, at: str, **more: Any) -> Any:
        return iter(()) if at == place else real(self, data, location, at, **more)

    return found


@pytest.mark.every_case
@pytest.mark.parametrize("place", PLACES)
def test_each_place_of_the_search_finds_what_the_others_do_not(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the rows in one place alone, and search with and without a look there."""
    yard = make_yard()
    table = populated(yard)
    assert forget(table).is_finished
    leave(yard, table, place)
    assert place in found_in(forget(table).search)
    PLACES[place](monkeypatch)
    assert forget(table).is_finished


def found_in(result: SearchResult | None) -> str:
    assert result is not None
    assert not result.is_clean
    return ", ".join(trace.place for trace in result.traces)


def leave(yard: Yard, table: Table, place: str) -> None:
    """Write a file that the table does not refer to, young enough not to be an orphan file."""
    sink = io.BytesIO()
    crowd = people(ADA, *(f"person{n}@example.org" for n in range(500)))
    pq.write_table(crowd, sink, compression="gzip", use_dictionary=False, write_statistics=False)
    files = {
        "name": (f"data/{ADA}.txt", b"nothing"),
        "raw bytes": ("data/notes.txt", ADA.encode()),
        "column": (f"data/00000-{'b' * 32}.parquet", sink.getvalue()),
        "decoded": ("metadata/old.gz.metadata.json", gzip.compress(b'{"note": "%s"}' % ADA.encode() * 9)),
    }
    name, data = files[place]
    yard.store.put_new(f"{table.location}/{name}", data)
