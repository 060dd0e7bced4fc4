# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.request_log`: the cost of a request log line, in CPU µs per request, for formatting and writing.

Imports `limnos.telemetry` only. Lines go through a pipe to a reader in another process, and to a file. A batch has as
many lines as a busy server collects before it writes.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from typing import TextIO

from limnos.telemetry.request_log import RequestLog

REQUESTS = 40_000
BATCH = 500
ROUNDS = 5
AIM_US = 3.0


async def cost_us(stream: TextIO, *, json: bool) -> float:
    """Return the best of a few rounds."""
    log = RequestLog(stream, json=json)
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        for number in range(REQUESTS):
            log.add(
                (
                    time.perf_counter(),
                    0.000213,
                    f"5f0c3a9be17d{number:06x}",
                    "GET",
                    b"/iceberg/v1/lake.main/namespaces/a/tables/t",
                    "load-table",
                    200,
                    "ana",
                    "127.0.0.1",
                    6_120,
                    "",
                )
            )
            if number % BATCH == 0:
                log.flush()
        log.flush()
        best = min(best, (time.process_time() - began) / REQUESTS * 1e6)
    return best


def main() -> None:
    """Measure and print."""
    for json, shape in ((True, "json"), (False, "console")):
        with subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.buffer.read()"], stdin=subprocess.PIPE
        ) as reader:
            assert reader.stdin is not None
            with os.fdopen(os.dup(reader.stdin.fileno()), "w") as pipe:
                piped = asyncio.run(cost_us(pipe, json=json))
            reader.stdin.close()
        with tempfile.TemporaryFile("w") as file:
            filed = asyncio.run(cost_us(file, json=json))
        sys.stdout.write(f"{shape:8} pipe {piped:.2f} µs, file {filed:.2f} µs a request (aim for json {AIM_US:g})\n")


if __name__ == "__main__":
    main()
