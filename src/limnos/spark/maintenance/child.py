"""The process that executes a server's maintenance operations on Spark (`limnos.spark.maintenance.child`).

May import `spark`, `client` and msgspec. Must not know the server's packages. Its first line of input is JSON with the
server's URL, the metalake and a token, so that the token is on no command line. The process ends when it is idle, and
when its input is closed.
"""

from __future__ import annotations

import logging
import os
import sys
import threading

import msgspec

from limnos.client import Client, ClientError
from limnos.spark.maintenance.executor import MaintenanceExecutor, OperationRunner
from limnos.spark.maintenance.runners import runner_for
from limnos.spark.network import limit_java_network


class ChildStart(msgspec.Struct, frozen=True):
    """The first input line of the process: the server's URL, the metalake, the token, the Spark master, and the
    executor's limits.
    """

    uri: str
    metalake: str
    token: str
    master: str
    idle_s: float = 60.0
    threads: int = 4


def main() -> None:
    """Read the first input line, and execute operations until there are none for `idle_s` seconds.

    Exits with 1 and a line on standard error if the server refuses, or does not answer.
    """
    logger = logging.getLogger("limnos.spark.maintenance")
    logger.setLevel(logging.INFO)
    logger.addHandler(logging.StreamHandler())
    start = msgspec.json.decode(sys.stdin.buffer.readline(), type=ChildStart)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    runner = runner_of(start)
    try:
        with Client(start.uri, token=start.token, metalake=start.metalake) as client:
            MaintenanceExecutor(client.maintenance, runner, threads=start.threads, idle_s=start.idle_s).run()
    except ClientError as error:
        logger.error("the executor of maintenance ends: %s", error.message)  # noqa: TRY400 - one line, no traceback
        sys.exit(1)


def runner_of(start: ChildStart) -> OperationRunner:
    """Return the runner of operations, whose Java process may connect to the server and to its own ports only."""
    network = limit_java_network(start.uri, master=start.master)
    return runner_for(start.uri, metalake=start.metalake, master=start.master, config=network)


def _end_with_parent() -> None:
    """End the process when the server closes its input or has ended. Its Java process ends with it."""
    # Not by `sys.stdin`: the interpreter aborts at its end if a thread still has the lock of that.
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
