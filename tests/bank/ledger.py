"""A bank whose accounts are in two tables; every transfer moves money from one table to the other."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pyarrow as pa

from icefield.commit.validate.key_history import IDEMPOTENCY_KEY
from icefield.lake import Lake
from icefield.table.table import Table

TABLES = ("bank.savings", "bank.checking")
ACCOUNTS = 12
OPENING = 1000
TOTAL = OPENING * ACCOUNTS * len(TABLES)
Balances = dict[tuple[str, int], int]


@dataclass(frozen=True)
class Transfer:
    """Money that goes from an account of one table to one of the other, under a token of its own."""

    idempotency_key: str
    moves: tuple[tuple[str, int, int], ...]


def transfer_of(teller: int, number: int) -> Transfer:
    """Return a teller's transfer, the same whenever it is asked for."""
    rng = random.Random(1000 * teller + number)
    source, target = rng.sample(TABLES, 2)
    amount = rng.randint(1, 50)
    moves = ((source, rng.randrange(ACCOUNTS), -amount), (target, rng.randrange(ACCOUNTS), amount))
    return Transfer(f"teller-{teller}/{number}", moves)


def open_bank(lake: Lake) -> None:
    """Make the tables, with money in every account."""
    for name in TABLES:
        table = lake.create_table(name, "account long not null, balance long not null", partition_by=["account"])
        table.append(_rows(dict.fromkeys(range(ACCOUNTS), OPENING)))


def transfer_at_once(lake: Lake, transfer: Transfer) -> None:
    """Make a transfer in one transaction."""
    with lake.transaction() as tx:
        tx.pin(TABLES)
        for name, account, change in transfer.moves:
            _change(tx.table(name), account, change, transfer.idempotency_key)


def transfer_apart(lake: Lake, transfer: Transfer) -> None:
    """Make a transfer in two commits: each is right, and the money is nowhere in between."""
    for name, account, change in transfer.moves:
        with lake.transaction() as tx:
            _change(tx.table(name), account, change, transfer.idempotency_key)


WAYS: dict[str, Callable[[Lake, Transfer], None]] = {"at once": transfer_at_once, "apart": transfer_apart}


def read_balances(lake: Lake) -> Balances:
    """Read all accounts as of one moment."""
    with lake.transaction() as tx:
        tx.pin(TABLES)
        read = {name: tx.table(name).scan().to_arrow().read_all().to_pylist() for name in TABLES}
    return {(name, row["account"]): row["balance"] for name, rows in read.items() for row in rows}


def balances_after(transfers: Iterable[Transfer]) -> Balances:
    """Say what the accounts hold after transfers, whatever their order."""
    balances = {(name, account): OPENING for name in TABLES for account in range(ACCOUNTS)}
    for transfer in transfers:
        for name, account, change in transfer.moves:
            balances[name, account] += change
    return balances


def tokens_in(table: Table) -> list[str]:
    """Return the tokens of a table's history, each as often as it is there."""
    return sorted(s.summary[IDEMPOTENCY_KEY] for s in table.snapshots() if IDEMPOTENCY_KEY in s.summary)


def _change(table: Table, account: int, change: int, idempotency_key: str) -> None:
    where = f"account = {account}"
    (balance,) = table.scan(where=where).to_arrow().read_all()["balance"].to_pylist()
    table.overwrite(_rows({account: balance + change}), where=where, idempotency_key=idempotency_key)


def _rows(balances: dict[int, int]) -> pa.Table:
    return pa.table({"account": pa.array(balances, pa.int64()), "balance": pa.array(balances.values(), pa.int64())})
