"""Random histories of two branches: their rows are those of a model, whatever is published, picked or reverted."""

from functools import partial

import pytest
from tests.effort import seeds
from tests.history.evolving import rows_of
from tests.history.two_branches import KeyAddedTwice, build, three_way

from icefield.errors import ConcurrentChange, InvalidInput

SEEDS = seeds(60, 2000)
STEPS = 14


@pytest.mark.parametrize("seed", SEEDS)
def test_branches_that_publish_to_each_other_have_the_rows_of_the_model(seed: int) -> None:
    history = build(seed, redefines=seed % 2 == 0)
    table, chosen = history.table, history.random
    merged = history.rows("main")  # what both branches contain
    for _ in range(STEPS):
        history.change(chosen.choice(["main", "b"]))
        if chosen.random() < 0.3:
            source, target = chosen.sample(["main", "b"], 2)
            before, theirs = table.metadata.refs[target], history.rows(source)
            done = history.merge(target, merged, theirs, partial(table.at(target).publish, source))
            merged = theirs if done and table.metadata.refs[target] != before else merged
    assert not [f for f in table.fsck().findings if f.check != "dangling-deletes"]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_rebased_branch_has_the_rows_of_the_model(seed: int) -> None:
    history = build(seed, redefines=seed % 2 == 0)
    table, chosen = history.table, history.random
    base = history.rows("main")
    for _ in range(STEPS):
        history.change(chosen.choice(["main", "b"]))
        if chosen.random() < 0.3:
            main, mine = history.rows("main"), history.rows("b")
            expected, both = three_way(base, mine, main)
            try:
                table.at("b").rebase(squash=chosen.random() < 0.5)
            except ConcurrentChange:
                assert both or table.metadata.format_version == 1
                assert rows_of(table.at("b")) == mine
                continue
            found = rows_of(table.at("b"))
            assert {k: v for k, v in found.items() if k not in both} == {
                k: v for k, v in expected.items() if k not in both
            }
            history.known[table.metadata.refs["b"].snapshot_id] = found
            base = main
            assert table.metadata.refs["main"].snapshot_id in [
                s.snapshot_id for s in table.metadata.ancestors(table.metadata.ref_head("b"))
            ]
    assert not [f for f in table.fsck().findings if f.check != "dangling-deletes"]


@pytest.mark.parametrize("seed", SEEDS)
def test_snapshots_are_picked_and_reverted_as_in_the_model(seed: int) -> None:
    history = build(seed, redefines=seed % 2 == 0)
    table, chosen = history.table, history.random
    for _ in range(STEPS):
        history.change(chosen.choice(["main", "b"]))
        if chosen.random() < 0.4:
            metadata = table.metadata
            picks = chosen.random() < 0.5
            ancestors = list(metadata.ancestors(metadata.ref_head("b" if picks else "main")))
            picked = chosen.choice([s for s in ancestors if s.parent_snapshot_id is not None])
            assert picked.parent_snapshot_id is not None
            before, after = history.known.get(picked.parent_snapshot_id, {}), history.known[picked.snapshot_id]
            run = partial(table.cherry_pick if picks else table.revert, picked.snapshot_id)
            try:
                history.merge("main", *((before, after) if picks else (after, before)), run)
            except InvalidInput:  # it is there already, or was reverted before
                continue
            except KeyAddedTwice:
                return
    assert not [f for f in table.fsck().findings if f.check != "dangling-deletes"]
