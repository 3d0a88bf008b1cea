"""What a version leads to is found with few lists decoded, and is always what a plain walk finds."""

from random import Random

import pytest
from tests.sim.reading import Reading
from tests.upkeep.fixtures import FUTURE, make_yard, rows

from icefield.plan import manifest_list
from icefield.upkeep import reachable
from icefield.upkeep.reachable import find_expired, find_reachable

STEPS = (*("append",) * 3, "overwrite", "delete", "compact", "branch", "rollback", "manifests")


@pytest.mark.parametrize("seed", range(12))
def test_reachable_and_expired_files_are_those_of_a_plain_walk(seed: int) -> None:
    rng, yard = Random(seed), make_yard(seed)
    merge = rng.choice(("2", "3", "100"))
    table = yard.table(icefield__gc__grace_ms="86400000", version=2, commit__manifest__min_count_to_merge=merge)
    table.set_properties({"write.delete.mode": rng.choice(("copy-on-write", "merge-on-read"))})
    for n in range(14):
        match rng.choice(
            ("append", "append", "append", "overwrite", "delete", "compact", "branch", "rollback", "manifests")
        ):
            case "append":
                table.append(rows(n))
            case "overwrite":
                table.overwrite(rows(n))
            case "delete":
                table.delete(f"id = {rng.randrange(14)}")
            case "compact":
                table.compact()
            case "manifests":
                table.rewrite_manifests()
            case "branch" if table.snapshots():
                table.create_branch(f"b{n}", at=rng.choice(table.snapshots()).snapshot_id)
                table.at(f"b{n}").append(rows(100 + n))
            case "rollback" if table.metadata.current_snapshot:
                past = list(table.metadata.ancestors(table.metadata.current_snapshot))
                table.rollback(rng.choice(past).snapshot_id)
    reading, context = Reading(yard.store), table._context
    before, location = table.metadata, table.metadata_location
    found = find_reachable(context, before, location).location.to_pylist()
    assert len(set(found)) == len(found)
    assert set(found) == reading.files_of_table(location)
    table.expire_snapshots(FUTURE, keep_last=rng.choice((1, 2)))
    after = table.metadata
    gone = find_expired(context, before, after).location.to_pylist()
    history = {entry.metadata_file for entry in after.metadata_log} | {location}
    assert set(gone) == reading.files_of_table(location) - reading.files_of_table(table.metadata_location) - history


def test_lists_that_only_repeat_their_child_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    yard = make_yard()
    table = yard.table(icefield__gc__grace_ms="86400000")
    for n in range(20):
        table.append(rows(n))
    decoded = []
    real = manifest_list.load_manifests

    def load(context: object, snapshot: object, data: object) -> object:
        decoded.append(snapshot)
        return real(context, snapshot, data)  # type: ignore[arg-type]

    monkeypatch.setattr(reachable, "load_manifests", load)
    assert find_reachable(table._context, table.metadata, table.metadata_location).num_rows > 60
    assert len(decoded) == 1
