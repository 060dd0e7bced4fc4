# SPDX-License-Identifier: Apache-2.0
"""The cost of a request that does nothing: the server library alone, and the file system alone.

`python -m bench.yardstick` answers every request with 6 KB and prints `ready URL`. Measured at the same moment, these
costs show the machine's influence on a value. Other work on the same cores makes every request more expensive, on a
laptop by half, on a crowded host by a factor of three. ext4 without a journal creates files four times as slowly in the
minutes after mass deletions.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Final

import uvicorn
import uvloop

Message = MutableMapping[str, object]
BODY: Final = b"x" * 6_000
_START: Final[Message] = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(BODY))],
}


async def application(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    """Answer without reading the request."""
    await send(_START)
    await send({"type": "http.response.body", "body": BODY})


def files_us(folder: Path, *, directories: int, size: int, count: int = 100) -> float:
    """Return this process's CPU µs to create nested directories and a file in them. Nothing is deleted."""
    data, root = b"x" * size, Path(tempfile.mkdtemp(prefix="alone-", dir=folder))
    before = time.process_time_ns()
    for number in range(count):
        path = f"{root}/{number}"
        for _ in range(directories):
            os.mkdir(path)  # noqa: PTH102 - the system call alone
            path = f"{path}/d"
        descriptor = os.open(f"{path}.json", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        os.write(descriptor, data)
        os.close(descriptor)
    return (time.process_time_ns() - before) / count / 1000


async def serve() -> None:
    """Serve on a free loopback port until SIGTERM."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    config = uvicorn.Config(
        application,
        http="httptools",
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
    )
    sys.stdout.write(f"ready http://127.0.0.1:{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    await uvicorn.Server(config).serve(sockets=[listening])


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())
