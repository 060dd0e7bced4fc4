# SPDX-License-Identifier: Apache-2.0
"""Comparisons: the cost of a feature relative to the same work without it, measured in turns in one run.

May import `load`, `cpu` and the builders of requests. `worlds` has the servers and requests. The machine's noise
affects all sides alike, so ratios are more reliable than absolute values; the best round of each side counts. Linux
only.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self
from urllib.parse import urlsplit

from bench.cpu import TreeCpu, descendants
from bench.load import Generator, Load
from bench.operations import spelled
from bench.workers import ask, served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType

CONNECTIONS = 16
WARM_EACH = 20


class Side(NamedTuple):
    """One side of a comparison. `run` sends requests for some seconds and returns the server's CPU µs per request."""

    title: str
    run: Callable[[float], float]
    peak_mb: Callable[[], int] | None = None
    """Peak memory of the server's processes, if it is measured."""


class Comparison(NamedTuple):
    """The sides of a comparison; the limit of each as a multiple of the first, and of the first in µs."""

    key: str
    title: str
    sides: tuple[Side, ...]
    aims: tuple[float | None, ...]


class SideResult(NamedTuple):
    """The result of one side."""

    key: str
    title: str
    side: str
    cpu_us: float
    times: float
    aim: float | None
    peak_mb: int | None


class ComparedServer:
    """A server of the comparisons, its admin, and a load generator."""

    def __init__(self, data: Path, env: Mapping[str, str]) -> None:
        self.data = data
        self._serving = served(data, 1, env=env)
        self._generator = Generator()

    def __enter__(self) -> Self:
        self._generator.__enter__()
        self.pid, self.uri, _ = self._serving.__enter__()
        self.token = (self.data / "admin.token").read_text().strip()
        self.host = urlsplit(self.uri).netloc
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._serving.__exit__(kind, error, trace)
        self._generator.__exit__(kind, error, trace)

    def ask(self, path: str, body: object = None) -> bytes:
        """Send one request as the admin."""
        return ask(self.uri, self.token, path, body)

    def spelled(
        self, method: str, path: str, *, token: str | None = None, body: object = None, more: tuple[str, ...] = ()
    ) -> bytes:
        """Build a request of the admin, or of the owner of another token."""
        return spelled(self.host, method, path, proof=f"Bearer {token or self.token}", body=body, more=more)

    def cost(self, requests: Sequence[bytes], *, seconds: float, once: bool = False) -> float:
        """Send requests over all connections for some seconds. Returns CPU µs per request."""
        parts = urlsplit(self.uri)
        load = Load(
            host=parts.hostname or "",
            port=parts.port or 0,
            requests=tuple(requests),
            connections=CONNECTIONS,
            once=once,
            warm=WARM_EACH,
            seconds=seconds,
            count_max=max(1, len(requests) - CONNECTIONS * WARM_EACH) if once else 10**9,
        )
        answered, (used_ns,) = self._generator.run(load, [TreeCpu([self.pid])])
        return used_ns / 1000 / answered.count

    def own_cost(self, work: Callable[[], None], *, times: int) -> float:
        """Run an action repeatedly. Returns the server's CPU µs per run."""
        clock = TreeCpu([self.pid])
        before = clock.look()
        for _ in range(times):
            work()
            clock.look()
        return (clock.look() - before) / 1000 / times

    def peak_mb(self) -> int:
        """Return the sum of the peak memory of the server's processes."""
        return sum(_peak_kb(pid) for pid in descendants([self.pid])) // 1024


def _peak_kb(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def compare(comparisons: Sequence[Comparison], *, rounds: int, seconds: float) -> Iterator[list[SideResult]]:
    """Measure; yields the sides of one comparison at a time. Raises LoadError."""
    for each in comparisons:
        best: dict[str, float] = {}
        for _ in range(rounds):
            for side in each.sides:
                cost = side.run(seconds)
                best[side.title] = min(best.get(side.title, cost), cost)
        first = best[each.sides[0].title]
        yield [
            SideResult(
                key=each.key,
                title=each.title,
                side=side.title,
                cpu_us=best[side.title],
                times=best[side.title] / first,
                aim=aim,
                peak_mb=None if side.peak_mb is None else side.peak_mb(),
            )
            for side, aim in zip(each.sides, each.aims, strict=True)
        ]
