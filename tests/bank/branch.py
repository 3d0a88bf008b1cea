"""A branch of the bank: tellers who are killed and come back, and an auditor who looks on.

    branch.py <lake> <warehouse, or -> <folder for notes> <at once|apart> <seed>

This process opens no catalog: it forks the others, kills tellers at random, and starts them again where they were.
Notes: `<teller>.done` has a line for every transfer that was acknowledged, `audit` a line for every total seen, and
`killed` says how often somebody was.
"""

import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.bank.ledger import WAYS, Transfer, open_bank, read_balances, transfer_of
from tests.effort import DEEP

import icefield
from icefield.errors import CommitConflict, CommitStateUnknown, ConcurrentChange
from icefield.lake import Lake

TELLERS = 8 if DEEP else 6
TRANSFERS = 4 if DEEP else 3
MOST_KILLS = 8 if DEEP else 6
PAUSES_S = (0.02, 0.3)
AUDIT_PAUSE_S = 0.02
CLOSED = "closed"


class Branch:
    def __init__(self, target: str, warehouse: str, notes: Path, way: str) -> None:
        self._target = target
        self._warehouse = None if warehouse == "-" else warehouse
        self._notes = notes
        self._transfer = WAYS[way]

    def run(self, rng: random.Random) -> None:
        """Let everybody work until all transfers are made."""
        auditor = fork(self.audit)
        tellers = {fork(lambda n=n: self.serve(n)): n for n in range(TELLERS)}  # type: ignore[misc]
        kills = 0
        while tellers:
            time.sleep(rng.uniform(*PAUSES_S))
            if kills < MOST_KILLS:
                os.kill(rng.choice(list(tellers)), signal.SIGKILL)
                kills += 1
            for process, teller in list(tellers.items()):
                ended, status = os.waitpid(process, os.WNOHANG)
                if ended:
                    del tellers[process]
                    if os.waitstatus_to_exitcode(status) == -signal.SIGKILL:
                        tellers[fork(lambda n=teller: self.serve(n))] = teller  # type: ignore[misc]
                    elif status:
                        sys.exit(f"teller {teller} failed")
        (self._notes / "killed").write_text(str(kills))
        (self._notes / CLOSED).touch()
        if os.waitpid(auditor, 0)[1]:
            sys.exit("the auditor failed")

    def serve(self, teller: int) -> None:
        """Make a teller's transfers, from the first that was not acknowledged on."""
        done = self._notes / f"{teller}.done"
        with self._open() as lake:
            for number in range(len(done.read_text().splitlines()) if done.exists() else 0, TRANSFERS):
                transfer = transfer_of(teller, number)
                while not self._lands(lake, transfer):
                    continue
                note(done, transfer.idempotency_key)

    def audit(self) -> None:
        """Look at all accounts at one moment, again and again, and once more after the last transfer."""
        with self._open() as lake:
            over = False
            while not over:
                over = (self._notes / CLOSED).exists()
                note(self._notes / "audit", str(sum(read_balances(lake).values())))
                time.sleep(AUDIT_PAUSE_S)

    def _lands(self, lake: Lake, transfer: Transfer) -> bool:
        try:
            self._transfer(lake, transfer)
        except (ConcurrentChange, CommitConflict, CommitStateUnknown):
            return False
        return True

    def _open(self) -> Lake:
        return icefield.connect(self._target, warehouse=self._warehouse, durable=False)


def note(path: Path, line: str) -> None:
    """Add a line in one write, so that a death leaves it whole or out."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def fork(work: Callable[[], None]) -> int:
    """Run work in a child and return its id."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    return child


def main(target: str, warehouse: str, notes: str, way: str, seed: str) -> None:
    with icefield.connect("memory:") as lake:  # have everything compiled that the children need
        open_bank(lake)
        WAYS[way](lake, transfer_of(0, 0))
        read_balances(lake)
    Branch(target, warehouse, Path(notes), way).run(random.Random(seed))


if __name__ == "__main__":
    main(*sys.argv[1:])
