# SPDX-License-Identifier: Apache-2.0
"""Attackers and a caller who requests the server's health: the time of these answers, and the growth of the server's
memory.

May import this package. The attackers send statements and bodies that once blocked a server, one after the other, as
fast as they are answered.
"""

from __future__ import annotations

import http.client
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

from conformance.openapi.world import believed

if TYPE_CHECKING:
    from tests.integration.live import LiveServer

PROBES_PER_S: Final = 50
ANSWER_S: Final = 60
ATTACKS: Final = (
    "select value array_sort(array_flatten(array_repeat(array_repeat(1,3000),3000),1))",
    f"select value [{', '.join(['array_length(array_sort(array_range(0,999999)))'] * 30)}]",
    "select value array_repeat(repeat('x',16000000),9)",
    "select value " + " or ".join(["true"] * 1300),
    "declare function f0(x){x+x};"
    + "".join(f"declare function f{at}(x){{f{at - 1}(x)+f{at - 1}(x)}};" for at in range(1, 18))
    + "f17(1)",
    "select value [" + ",".join(["1"] * 900) + "]",
    "select sum(x) over (order by x range between 3 preceding and current row) from range(1,400) x",
    "select value array_repeat(repeat('x',999999),30)",
)


class Company(NamedTuple):
    """Measurements of the probes: sorted times of answers in milliseconds; answers to attackers; the server's largest
    size in MiB.
    """

    probes_ms: list[float]
    attacks: int
    peak_mib: float

    def __str__(self) -> str:
        """Return one line."""
        at = len(self.probes_ms) * 99 // 100
        return (
            f"health beside {self.attacks} answers to attackers: {len(self.probes_ms)} probes, p50"
            f" {self.probes_ms[len(self.probes_ms) // 2]:.1f} ms, p99 {self.probes_ms[at]:.1f} ms, most"
            f" {self.probes_ms[-1]:.1f} ms; most memory of the server {self.peak_mib:.0f} MiB"
        )


def beside(server: LiveServer, *, attackers: int, seconds: float) -> Company:
    """Attack for the given number of seconds, and probe meanwhile."""
    until = time.monotonic() + seconds
    counts = [0] * attackers
    threads = [threading.Thread(target=_attack, args=(server, number, until, counts)) for number in range(attackers)]
    for thread in threads:
        thread.start()
    probes, peak = _probe(server, until)
    for thread in threads:
        thread.join()
    return Company(sorted(probes), sum(counts), peak)


def _attack(server: LiveServer, number: int, until: float, counts: list[int]) -> None:
    at = urlsplit(server.uri)
    headers = {"authorization": believed("reader"), "content-type": "application/x-www-form-urlencoded"}
    while time.monotonic() < until:
        connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=ANSWER_S)
        try:
            for turn in range(len(ATTACKS)):
                body = urlencode({"statement": ATTACKS[(number + turn) % len(ATTACKS)]})
                connection.request("POST", "/query/service", body, headers)
                connection.getresponse().read()
                counts[number] += 1
                if time.monotonic() > until:
                    break
        except (OSError, http.client.HTTPException):
            continue
        finally:
            connection.close()


def _probe(server: LiveServer, until: float) -> tuple[list[float], float]:
    """Request health at a steady rate, on one connection; a late answer delays the next probe."""
    at = urlsplit(server.uri)
    connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=ANSWER_S)
    delays_ms: list[float] = []
    peak = 0.0
    while time.monotonic() < until:
        began = time.perf_counter()
        connection.request("GET", "/health/live")
        connection.getresponse().read()
        took = time.perf_counter() - began
        delays_ms.append(took * 1000)
        peak = max(peak, _resident_mib(server.pid))
        time.sleep(max(0.0, 1 / PROBES_PER_S - took))
    connection.close()
    return delays_ms, peak


def _resident_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / (1 << 20)
