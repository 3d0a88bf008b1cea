"""Bank transfers over two tables by processes that are killed and come back, under the eyes of an auditor."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.bank.branch import MOST_KILLS, TELLERS, TRANSFERS
from tests.bank.ledger import TABLES, TOTAL, balances_after, open_bank, read_balances, tokens_in, transfer_of
from tests.postgres import PostgresServer, running_server

import icefield
from icefield.lake import Lake

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def bank_server() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


@dataclass(frozen=True)
class Bank:
    """A lake that other processes open too, and where they leave their notes."""

    lake: Lake
    target: str
    warehouse: str
    notes: Path

    def run(self, way: str) -> None:
        command = [sys.executable, "-m", "tests.bank.branch", self.target, self.warehouse, str(self.notes), way, "7"]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
        assert ran.returncode == 0, ran.stderr

    def seen_totals(self) -> list[int]:
        return [int(line) for line in (self.notes / "audit").read_text().splitlines()]

    def acknowledged(self) -> set[str]:
        notes = (self.notes / f"{teller}.done" for teller in range(TELLERS))
        return {line for path in notes for line in path.read_text().splitlines()}


@pytest.fixture
def bank(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bank]:
    (tmp_path / "notes").mkdir()
    folder, notes = tmp_path / "lake", tmp_path / "notes"
    if getattr(request, "param", "sqlite") == "sqlite":
        target, warehouse = str(folder), "-"
        lake = icefield.connect(folder, durable=False)
    else:
        target, warehouse = request.getfixturevalue("bank_server").new_schema(), str(folder)
        lake = icefield.connect(target, warehouse=folder, durable=False)
    with lake:
        open_bank(lake)
        yield Bank(lake, target, warehouse, notes)


@pytest.mark.parametrize("bank", ["sqlite", "postgres"], indirect=True)
def test_the_auditor_never_sees_a_wrong_total_and_every_transfer_is_made_once(bank: Bank) -> None:
    bank.run("at once")
    seen = bank.seen_totals()
    assert set(seen) == {TOTAL}
    assert len(seen) > 1
    assert int((bank.notes / "killed").read_text()) == MOST_KILLS
    transfers = [transfer_of(teller, number) for teller in range(TELLERS) for number in range(TRANSFERS)]
    idempotency_keys = sorted(transfer.idempotency_key for transfer in transfers)
    assert bank.acknowledged() == set(idempotency_keys)
    for name in TABLES:
        assert tokens_in(bank.lake.table(name)) == idempotency_keys
    assert read_balances(bank.lake) == balances_after(transfers)


def test_the_auditor_sees_a_wrong_total_where_a_transfer_is_two_commits(bank: Bank) -> None:
    bank.run("apart")
    seen = bank.seen_totals()
    assert set(seen) - {TOTAL}
    assert seen[-1] == TOTAL, "tokens mend it in the end"
