"""`python -m bench.yardstick`: the server library alone, answering 6 KB to everything; prints `ready URL`.

What it costs at the same moment tells how much of a figure is the machine's mood: other work on the same cores makes
every request dearer, on a laptop by half, on a crowded host threefold.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
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
    """Answer without looking."""
    await send(_START)
    await send({"type": "http.response.body", "body": BODY})


async def serve() -> None:
    """Serve on a free loopback port until SIGTERM."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    config = uvicorn.Config(
        application, http="httptools", loop="none", lifespan="off", log_config=None, access_log=False,
        server_header=False, date_header=False,
    )  # fmt: skip
    sys.stdout.write(f"ready http://127.0.0.1:{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    await uvicorn.Server(config).serve(sockets=[listening])


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())
