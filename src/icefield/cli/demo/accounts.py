"""The accounts of the demo: money that is moved in batches, and the balances that must come out.

Every batch adds up to zero, so that any version of the table between two batches has the same total.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from icefield.cli.demo.orders import mix

SCHEMA = "id long not null, balance long not null"
FIRST_BALANCE = 10_000
PAIRS = 20  # of accounts, in a batch
MOST_MOVED = 500
_PER_WRITER = 1_000  # numbers of batches

Balances = dict[int, int]


def first_accounts(count: int) -> pa.Table:
    """Make accounts with equal balances."""
    return pa.table({"id": np.arange(count, dtype=np.int64), "balance": np.full(count, FIRST_BALANCE, np.int64)})


def transfers(writer: int, number: int, accounts: int) -> pa.Table:
    """Make a batch of a writer: what is added to each account. One account in it is new."""
    seed = (writer * _PER_WRITER + number) * PAIRS * 8
    picked = np.unique(mix(np.arange(seed, seed + PAIRS * 4, dtype=np.int64), 8) % accounts)
    ids = picked[np.argsort(mix(picked + seed, 10))][: PAIRS * 2 + 1]
    ids = ids[: len(ids) - (len(ids) + 1) % 2]  # pairs, and one that gives to the new account
    moved = mix(ids[1::2], 9) % MOST_MOVED + 1
    deltas = np.zeros(len(ids), np.int64)
    deltas[1::2], deltas[2::2] = moved, -moved
    deltas[0] = -number - 1
    new = accounts + writer * _PER_WRITER + number
    return pa.table({"id": np.append(ids, new), "delta": np.append(deltas, number + 1)})


def balances_of(rows: pa.Table) -> Balances:
    """Return the balance of each account."""
    return dict(zip(rows.column("id").to_pylist(), rows.column("balance").to_pylist(), strict=True))


def replay(accounts: int, batches: Iterable[pa.Table]) -> Balances:
    """Compute in plain Python what all batches come to, in whatever order they were applied."""
    balances = dict.fromkeys(range(accounts), FIRST_BALANCE)
    for batch in batches:
        for key, delta in _pairs(batch):
            balances[key] = balances.get(key, 0) + delta
    return balances


def _pairs(batch: pa.Table) -> Iterator[tuple[int, int]]:
    return zip(batch.column("id").to_pylist(), batch.column("delta").to_pylist(), strict=True)
