# SPDX-License-Identifier: Apache-2.0
"""`conformance/run slowest [PROTOCOL…] [--seconds N] [--seed N]`: searches for the small request that blocks the event
loop longest.

The search changes requests of at most 2 KB at random and continues with those that used the most CPU time of the
server's main thread. Prints the slowest of each protocol; the exit code is 1 if one takes longer than `--aim`
milliseconds in each of three attempts, or is answered with 500.
"""

from __future__ import annotations

import argparse
import http.client
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from conformance.openapi.world import World, believed
from conformance.slowest.crowd import beside
from conformance.slowest.long_bodies import long_requests
from conformance.slowest.requests import BODY_BYTES_MAX, PROTOCOLS, SentRequest, changed, first_requests
from tests.integration.live import serving

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.integration.live import LiveServer

SETTINGS = "[lance]\ndata_timeout_s = 5\n[sqlpp]\ntimeout_s = 5\n"
BEST_KEPT = 40
ANSWER_S = 20
TRIES = 3
FAILED = 500
LATE, LATE_TEXT = 504, b"may have been made"
"""A change that exceeds its time limit is answered with 500, because its outcome is unknown; it counts as 504."""
LONG_AGAIN_MS = 15
"""A long request that took more is repeated, and its minimum counts."""
SENDING_MS_PER_MIB = 4
"""Time for sending a MiB of an answer, in many steps with other tasks in between: it is subtracted."""
MEND_EVERY = 400
SHOWN_MAX = 600


class Slowness:
    """Sends requests and measures how long the event loop was busy with the answer, in milliseconds of CPU time."""

    def __init__(self, server: LiveServer) -> None:
        at = urlsplit(server.uri)
        self._at = (at.hostname or "", at.port or 80)
        self._clock = Path(f"/proc/{server.pid}/task/{server.pid}/schedstat")
        self._connection: http.client.HTTPConnection | None = None
        self._credential = believed("owner")

    def _now_ms(self) -> float:
        return int(self._clock.read_text().split()[0]) / 1e6

    def of(self, sent: SentRequest) -> tuple[float, int]:
        """Return the milliseconds, and the answer's status; 0 without an answer."""
        kind = "application/x-www-form-urlencoded" if sent.form == "statement" else "application/json"
        began = self._now_ms()
        status = size = 0
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection(*self._at, timeout=ANSWER_S)
            headers = {"authorization": self._credential, "content-type": kind}
            self._connection.request(sent.method, sent.path, sent.content or None, headers)
            answer = self._connection.getresponse()
            status = answer.status
            text = answer.read()
            size = len(text)
            status = LATE if status == FAILED and LATE_TEXT in text else status
        except (OSError, http.client.HTTPException, ValueError, UnicodeError):
            if self._connection is not None:
                self._connection.close()
            self._connection = None
        return self._now_ms() - began - SENDING_MS_PER_MIB * size / (1 << 20), status


def search(
    server: LiveServer, protocol: str, *, seconds: float, seed: int
) -> tuple[list[tuple[float, int, SentRequest]], int]:
    """Return the slowest requests found in the given time, each with its minimum of three attempts; and the number of
    requests with a 500.
    """
    random = Random(f"{seed} {protocol}")
    world, slowness = World(server.uri), Slowness(server)
    known: list[tuple[float, int, SentRequest]] = []
    best: list[tuple[float, int, SentRequest]] = []
    for sent in first_requests(protocol):
        slowness.of(sent)
        known.append((*slowness.of(sent), sent))
    world.mend()
    failed: set[tuple[str, str]] = set()
    until = time.monotonic() + seconds
    count = 0
    while time.monotonic() < until:
        pool = best if best and random.random() < 0.6 else known
        sent = changed(random.choice(pool)[2], random.choice(known)[2], random)
        if sent.size > BODY_BYTES_MAX:
            continue
        took, status = slowness.of(sent)
        if status == FAILED and (sent.method, sent.path.partition("?")[0]) not in failed:
            failed.add((sent.method, sent.path.partition("?")[0]))
            print(f"failed: {format_request((took, status, sent))}", flush=True)
        if len(best) < BEST_KEPT or took > best[-1][0]:
            again = [slowness.of(sent)[0] for _ in range(TRIES - 1)]
            took = min(took, *again)
            best.append((took, status, sent))
            best.sort(key=lambda each: -each[0])
            del best[BEST_KEPT:]
        count += 1
        if count % MEND_EVERY == 0:
            world.mend()
    print(f"{protocol}: {count} requests of at most {BODY_BYTES_MAX} bytes in {seconds:.0f} s")
    return best, len(failed)


def ask_long(server: LiveServer, protocol: str) -> tuple[list[tuple[float, int, SentRequest]], int]:
    """Send each request with a body of nearly 1 MiB; returns the slowest, and the number of answers with 500."""
    world, slowness = World(server.uri), Slowness(server)
    timings: list[tuple[float, int, str, SentRequest]] = []
    for count, (shape, sent) in enumerate(long_requests(protocol)):
        took, status = slowness.of(sent)
        if took > LONG_AGAIN_MS:
            took = min(took, *[slowness.of(sent)[0] for _ in range(TRIES - 1)])
        timings.append((took, status, shape, sent))
        if count % MEND_EVERY == 0:
            world.mend()
    timings.sort(key=lambda each: -each[0])
    print(f"{protocol}: {len(timings)} requests of nearly 1 MiB")
    failures = [each for each in timings if each[1] == FAILED]
    slowest = [
        (took, status, replace(sent, body=shape, form="statement")) for took, status, shape, sent in timings[:BEST_KEPT]
    ]
    for _, _, shape, sent in failures:
        print(f"failed: {sent.method} {sent.path} {shape}")
    return slowest, len(failures)


def format_request(timing: tuple[float, int, SentRequest]) -> str:
    """Return a line for a request."""
    took, status, sent = timing
    body = sent.body if sent.form == "statement" else sent.content.decode(errors="replace")
    return f"  {took:7.1f} ms  {status}  {sent.method} {sent.path[:300]}  {str(body)[:SHOWN_MAX]}"


@contextmanager
def _server(folder: Path) -> Iterator[LiveServer]:
    """Serve a store with all objects that requests name."""
    settings = folder / "limnos.toml"
    settings.write_text(SETTINGS)
    with serving(folder / "data", "--config", str(settings)) as server:
        World(server.uri).mend()
        yield server


def main(words: Sequence[str]) -> int:
    """Search and print."""
    parser = argparse.ArgumentParser(prog="conformance/run slowest", description=__doc__)
    parser.add_argument("protocols", nargs="*", default=PROTOCOLS, metavar="PROTOCOL", help=" ".join(PROTOCOLS))
    parser.add_argument("--seconds", type=float, default=60, help="for each protocol")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--aim", type=float, default=50, help="milliseconds that no request may take")
    parser.add_argument("--show", type=int, default=3, help="how many are printed of each protocol")
    parser.add_argument(
        "--beside", type=int, default=0, help="instead: so many attackers beside probes of the server's health"
    )
    parser.add_argument("--long", action="store_true", help="instead: bodies of 1 MiB, each field in costly shapes")
    options = parser.parse_args(words)
    if unknown := set(options.protocols) - set(PROTOCOLS):
        parser.error(f"no document of {', '.join(unknown)}")
    if options.beside:
        with tempfile.TemporaryDirectory(prefix="limnos-slowest-") as folder, _server(Path(folder)) as server:
            print(beside(server, attackers=options.beside, seconds=options.seconds))
        return 0
    over = 0
    for protocol in options.protocols:
        with tempfile.TemporaryDirectory(prefix="limnos-slowest-") as folder, _server(Path(folder)) as server:
            timings, failures = (
                ask_long(server, protocol)
                if options.long
                else search(server, protocol, seconds=options.seconds, seed=options.seed)
            )
        print("\n".join(map(format_request, timings[: options.show])), flush=True)
        over += failures + sum(took > options.aim for took, _, _ in timings)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
