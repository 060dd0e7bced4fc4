# SPDX-License-Identifier: Apache-2.0
"""The process that executes a server's maintenance operations on Spark (`limnos.rooms.maintenance.engine.child`).

Must not know the server's packages. Its first line of input is JSON with the server's URL, the metalake and a token, so
that the token is on no command line. The process ends when it is idle, and when its input is closed.
"""

from __future__ import annotations

import logging
import os
import sys
import threading

import msgspec

from limnos.client import Client, ClientError
from limnos.confinement.file_rules import FileRules
from limnos.rooms.maintenance.engine.executor import MaintenanceExecutor, OperationRunner
from limnos.rooms.maintenance.engine.runners import runner_for
from limnos.spark.cluster import further_settings
from limnos.spark.confined_process import confine_spark_process
from limnos.spark.connect import SCHEME
from limnos.spark.files import SparkFiles
from limnos.spark.network import limit_java_network


class ChildStart(msgspec.Struct, frozen=True, kw_only=True):
    """The first input line of the process: the server, the Spark master, the executor's limits, and its files."""

    uri: str
    metalake: str
    token: str
    master: str
    config: dict[str, str] = {}
    """Further settings of Spark."""
    scratch: str
    """The directory of temporary files."""
    writable: tuple[str, ...] = ()
    """Directories of tables."""
    closed: tuple[str, ...] = ()
    """Directories that stay inaccessible except for the files below, and for `writable` ones."""
    jars: tuple[str, ...] = ()
    java_home: str = ""
    java_runtime: str = ""
    idle_s: float = 60.0
    threads: int = 4


def main() -> None:
    """Read the first input line, and execute operations until there are none for `idle_s` seconds.

    Exits with 1 and a line on standard error if the server refuses, or does not answer.
    """
    logger = logging.getLogger("limnos.spark")
    logger.setLevel(logging.INFO)
    logger.addHandler(logging.StreamHandler())
    start = msgspec.json.decode(_first_line(), type=ChildStart)
    rules = FileRules(
        readable=(),
        writable=(start.scratch, *start.writable),
        closed=start.closed,
        opened=tuple(filter(None, (*start.jars, start.java_home, start.java_runtime))),
    )
    confine_spark_process(rules)
    os.chdir(start.scratch)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    runner = runner_of(start)
    try:
        with Client(start.uri, token=start.token, metalake=start.metalake) as client:
            MaintenanceExecutor(client.maintenance, runner, threads=start.threads, idle_s=start.idle_s).run()
    except ClientError as error:
        logger.error("the executor of maintenance ends: %s", error.message)  # noqa: TRY400 - one line, no traceback
        sys.exit(1)


def _first_line() -> bytes:
    """Read a line from standard input without buffering: the process may continue in a child process."""
    line = bytearray()
    while not line.endswith(b"\n") and (piece := os.read(sys.stdin.fileno(), 1)):
        line += piece
    return bytes(line)


def runner_of(start: ChildStart) -> OperationRunner:
    """Return the runner of operations. Its Java process may connect to the server and to its own ports only, and has
    its temporary files in `scratch`.
    """
    if start.master.startswith(SCHEME):  # its Java process is another one, whose settings no session can change
        return runner_for(start.uri, metalake=start.metalake, master=start.master, config=start.config)
    fixed = {
        "spark.local.dir": start.scratch,
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={start.scratch}",
        **limit_java_network(start.uri, master=start.master),
    }
    config = {**further_settings(start.config, fixed=fixed, setting="maintenance.executor_conf"), **fixed}
    files = SparkFiles(start.jars, start.java_home, start.java_runtime) if start.jars else None
    return runner_for(start.uri, metalake=start.metalake, master=start.master, config=config, files=files)


def _end_with_parent() -> None:
    """End the process when the server closes its input or has ended. Its Java process ends with it."""
    # Not by `sys.stdin`: the interpreter aborts at its end if a thread still has the lock of that.
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
