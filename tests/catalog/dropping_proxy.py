"""A proxy before a server that loses one COMMIT on request: on its way there, or the answer on its way back.

It can also look like a pooler, which tells each client a process id of its own.
"""

import re
import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from enum import Enum

_BACKEND_KEY = re.compile(rb"(K\x00\x00\x00\x0c)(....)", re.DOTALL)


def is_sql_commit(data: bytes) -> bool:
    """Return whether a client of PostgreSQL sends COMMIT."""
    return b"COMMIT\x00" in data


class Loss(Enum):
    """What is lost, along with the connection."""

    REQUEST = "request"
    REPLY = "reply"


class DroppingProxy:
    """Listens on loopback and passes bytes on to a port of loopback."""

    def __init__(self, target: int, *, pools: bool = False, is_commit: Callable[[bytes], bool] = is_sql_commit) -> None:
        self._target = target
        self._is_commit = is_commit
        self._pools = pools
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.next_loss: Loss | None = None
        self.losses = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        # Closing alone would leave the thread that waits for the next connection waiting.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client = self._listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        with client, socket.create_connection(("127.0.0.1", self._target)) as server, suppress(ConnectionError):
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    data = ready.recv(65536)
                    if not data:
                        return
                    if ready is client and self.next_loss and self._is_commit(data):
                        self._lose(server, data)
                        return
                    if self._pools and ready is server:
                        data = _BACKEND_KEY.sub(lambda found: found[1] + b"\x7f\0\0\1", data)
                    (server if ready is client else client).sendall(data)

    def _lose(self, server: socket.socket, data: bytes) -> None:
        loss, self.next_loss = self.next_loss, None
        self.losses += 1
        if loss is Loss.REPLY:
            server.sendall(data)
            server.recv(65536)
