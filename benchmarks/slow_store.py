"""A store with a high latency: a proxy on loopback that forwards each request of an S3 client after a delay.

It runs in a separate process, so that its cost is not part of the measurement.
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def delayed(endpoint: str, delay_s: float) -> Iterator[str]:
    """Run a proxy for an endpoint, and yield the endpoint of the proxy."""
    command = [sys.executable, "-m", "benchmarks.slow_store", endpoint.removeprefix("http://"), str(delay_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


async def _serve(target: str, delay_s: float) -> None:
    host, port = target.split(":")

    async def accept(client: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        server, request = await asyncio.open_connection(host, int(port))
        await asyncio.gather(_copy_late(client, request, delay_s), _copy(server, answer))

    listening = await asyncio.start_server(accept, "127.0.0.1", 0)
    sys.stdout.write(f"{listening.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await listening.serve_forever()


async def _copy_late(source: asyncio.StreamReader, sink: asyncio.StreamWriter, delay_s: float) -> None:
    loop = asyncio.get_running_loop()
    while data := await source.read(1 << 16):
        loop.call_later(delay_s, sink.write, data)
    loop.call_later(delay_s, sink.close)


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(1 << 18):
        sink.write(data)
        await sink.drain()
    sink.close()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], float(sys.argv[2])))
