# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.profile OPERATION`: a profile of one operation, in process and without sockets.

Builds the node as the server does, over a small filled store, and calls its ASGI application directly: first in a plain
loop for CPU µs per request, then under a sampler for the hot functions and lines. The difference to `python -m bench`
is the cost of sockets, HTTP parser and kernel. With several requests at once (`--at-once 16`) group commit and shared
reads are visible.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import itertools
import logging
import pstats
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Self

import uvloop

from bench.load import LoadError
from bench.measure import prepare, say
from bench.operations import OPERATIONS, Case, Operation
from bench.seed import Shape
from bench.stores import STORES, Place, Postgres
from limnos.app.node_builder import build
from limnos.app.serving import settle_memory
from limnos.config import load

if TYPE_CHECKING:
    from limnos.http.application import Application

Message = MutableMapping[str, object]
Where = tuple[str, int, str]
"""A function in the profile: file, line, name."""
_SLICES = 60
_TICK_S = 0.001
"""The shortest tick of kernels; most tick every 4 ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request in the form of an ASGI server."""

    method: str
    raw_path: bytes
    query_string: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


def call_of(request: bytes) -> Call:
    """Parse the bytes of a request."""
    head, _, body = request.partition(b"\r\n\r\n")
    line, *fields = head.split(b"\r\n")
    method, target, _ = line.split(b" ")
    path, _, query = target.partition(b"?")
    headers = tuple((name.lower(), value) for name, _, value in (field.partition(b": ") for field in fields))
    return Call(method=method.decode(), raw_path=path, query_string=query, headers=headers, body=body)


class Caller:
    """Calls the application, one request after the other."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def call(self, call: Call) -> None:
        """Send one request. Raises LoadError unless it succeeds."""
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": call.body, "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        scope: Message = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": call.method,
            "scheme": "http",
            "path": call.raw_path.decode("latin-1"),
            "raw_path": call.raw_path,
            "query_string": call.query_string,
            "root_path": "",
            "headers": list(call.headers),
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
            "state": {},
            "extensions": {},
        }
        await self._application(scope, receive, send)
        if sent[0]["status"] not in (200, 204):
            raise LoadError(f"{sent[0]['status']} for {call.method} {call.raw_path!r}: {sent[-1].get('body')!r:.600}")

    async def calls(self, calls: Iterator[Call], *, at_once: int, until: Callable[[], bool]) -> int:
        """Send requests until the deadline, several at once. Returns their number."""
        count = 0

        async def one_after_another() -> None:
            nonlocal count
            for call in calls:
                await self.call(call)
                count += 1
                if until():
                    return

        await asyncio.gather(*(one_after_another() for _ in range(at_once)))
        return count


@contextmanager
def _place(store: str, nodes: int) -> Iterator[Place]:
    with tempfile.TemporaryDirectory(prefix="limnos-profile-", ignore_cleanup_errors=True) as folder:
        if store == "sqlite":
            place = Place(Path(folder) / "sqlite", None)
            prepare(place, Shape(nodes), database_pid=None)
            yield place
            return
        postgres = Postgres(Path(folder) / "pg")
        try:
            place = Place(Path(folder) / "postgres", postgres.new_database("bench_profile"))
            prepare(place, Shape(nodes), database_pid=postgres.pid)
            yield place
        finally:
            postgres.stop()


def _fresh(operation: Operation, case: Case) -> Iterator[Call]:
    """Yield requests that are never repeated. Only operations on the seeded tree can run out of them."""
    while True:
        yield from [call_of(request) for request in operation.requests(case)]
        if not operation.writes:
            return


def _deadline(seconds: float) -> Callable[[], bool]:
    end = time.perf_counter() + seconds
    return lambda: time.perf_counter() >= end


async def _profile(options: argparse.Namespace, operation: Operation, place: Place) -> None:
    flags = {"server.data": str(place.data), "database.url": place.database, "access.authentication": "simple"}
    built = build(
        load(flags={key: value for key, value in flags.items() if value is not None}, file=None, environ={}).settings
    )
    case = Case(host="127.0.0.1", shape=Shape(options.nodes), connections=options.at_once, part=0, parts=1)
    prepared_calls = [] if operation.once else [call_of(request) for request in operation.requests(case)]
    calls = itertools.cycle(prepared_calls) if prepared_calls else _fresh(operation, case)
    caller = Caller(built.application)
    try:
        warm = itertools.islice(calls, 200 if operation.writes or operation.once else max(200, len(prepared_calls)))
        await caller.calls(warm, at_once=options.at_once, until=lambda: False)
        settle_memory()
        await _time(caller, calls, options)
        await _sample(caller, calls, options)
        if options.cprofile:
            profile = cProfile.Profile()
            profile.enable()
            count = await caller.calls(calls, at_once=options.at_once, until=_deadline(options.seconds))
            profile.disable()
            _print(profile, count, options.top)
    finally:
        await built.close()


async def _time(caller: Caller, calls: Iterator[Call], options: argparse.Namespace) -> None:
    """Print CPU µs per request of this process, including threads, without the profiler: best and median slice."""
    costs_us = []
    for _ in range(_SLICES):
        before = time.process_time_ns()
        count = await caller.calls(calls, at_once=options.at_once, until=_deadline(options.seconds / _SLICES))
        if count:
            costs_us.append((time.process_time_ns() - before) / count / 1000)
    costs_us.sort()
    print(f"CPU µs per request without sockets: best {costs_us[0]:.1f}, median {costs_us[len(costs_us) // 2]:.1f}")


class Sampler:
    """Samples the event loop's stack at each tick of the process's CPU time, without slowing calls down.

    CPU ticks of other threads are attributed to the event loop's position at that moment, mostly waiting.
    """

    def __init__(self) -> None:
        self.own: Counter[Where] = Counter()
        self.own_line: Counter[Where] = Counter()
        self.total: Counter[Where] = Counter()
        self.count = 0

    def __enter__(self) -> Self:
        signal.signal(signal.SIGPROF, self._tick)
        signal.setitimer(signal.ITIMER_PROF, _TICK_S, _TICK_S)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)

    def _tick(self, _: int, frame: FrameType | None) -> None:
        self.count += 1
        seen: set[Where] = set()
        if frame is not None:
            code = frame.f_code
            self.own[code.co_filename, code.co_firstlineno, code.co_qualname] += 1
            self.own_line[code.co_filename, frame.f_lineno, code.co_qualname] += 1
        while frame is not None:
            code = frame.f_code
            seen.add((code.co_filename, code.co_firstlineno, code.co_qualname))
            frame = frame.f_back
        self.total.update(seen)

    def print_costs(self, count: int, each_us: float, *, top: int) -> None:
        """Print the functions and lines of `count` requests that took `each_us` of CPU."""
        per = each_us / max(1, self.count)
        print(f"\n{self.count:,} samples of {count:,} requests at {each_us:.1f} µs; µs per request by function:\n")
        print(f"{'own':>8}  {'with callees':>12}  function")
        for where, ticks in self.own.most_common(top):
            print(f"{ticks * per:8.2f}  {self.total[where] * per:12.2f}  {_where(*where)}")
        print("\nwith callees, in the product:\n")
        inside = [(where, ticks) for where, ticks in self.total.most_common() if "/limnos/" in where[0]]
        for where, ticks in inside[:top]:
            print(f"{'':8}  {ticks * per:12.2f}  {_where(*where)}")
        print("\nlines:\n")
        for where, ticks in self.own_line.most_common(top // 2):
            print(f"{ticks * per:8.2f}  {'':12}  {_where(*where)}")


async def _sample(caller: Caller, calls: Iterator[Call], options: argparse.Namespace) -> None:
    before = time.process_time_ns()
    with Sampler() as sampler:
        count = await caller.calls(calls, at_once=options.at_once, until=_deadline(options.seconds))
    sampler.print_costs(count, (time.process_time_ns() - before) / count / 1000, top=options.top)


def _print(profile: cProfile.Profile, count: int, top: int) -> None:
    stats = pstats.Stats(profile)
    rows: dict[Where, tuple[int, int, float, float, dict[Where, tuple[int, int, float, float]]]]
    rows = stats.stats  # type: ignore[attr-defined]
    print(f"\n{count:,} requests under the profiler, which makes calls look dearer than they are; µs per request:\n")
    print(f"{'own':>8}  {'with callees':>12}  {'calls':>6}  function")
    per = 1e6 / max(1, count)
    hottest = sorted(rows.items(), key=lambda each: -each[1][2])[:top]
    for where, (_, calls, own, cumulative, _) in hottest:
        print(f"{own * per:8.2f}  {cumulative * per:12.2f}  {calls * per / 1e6:6.2f}  {_where(*where)}")
    print("\nWho calls the hottest built-in functions:\n")
    for where, (_, _, _, _, callers) in [each for each in hottest if each[0][0] == "~"][:4]:
        print(_where(*where))
        for caller, (calls, _, own, _) in sorted(callers.items(), key=lambda each: -each[1][2])[:8]:
            print(f"{own * per:8.2f}  {'':12}  {calls * per / 1e6:6.2f}    {_where(*caller)}")


def _where(file: str, line: int, name: str) -> str:
    if file == "~":
        return name
    parts = Path(file).parts
    start = next((i for i, part in enumerate(parts) if part in {"limnos", "bench", "site-packages"}), len(parts) - 1)
    return f"{'/'.join(parts[start:])}:{line} {name}"


def _options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    parser.add_argument("operation", choices=[operation.key for operation in OPERATIONS])
    parser.add_argument("--store", choices=STORES, default="sqlite")
    parser.add_argument("--nodes", type=int, default=1_000, help="size of the bulk of the tree")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each loop")
    parser.add_argument("--at-once", type=int, default=1, help="requests in flight")
    parser.add_argument("--cprofile", action="store_true", help="also count calls, under cProfile")
    parser.add_argument("--top", type=int, default=40, help="functions to print")
    return parser.parse_args(arguments)


def main() -> int:
    """Prepare, time, profile, print."""
    options = _options()
    operation = next(each for each in OPERATIONS if each.key == options.operation)
    logging.disable(logging.INFO)
    try:
        with (
            _place(options.store, options.nodes) as place,
            asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
        ):
            runner.run(_profile(options, operation, place))
    except LoadError as error:
        say(f"failed: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
