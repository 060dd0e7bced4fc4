# SPDX-License-Identifier: Apache-2.0
"""Preparation of servers over filled stores, and measurements of operations on all of them, in rounds.

May import the other modules of the benchmark. Rounds of an operation alternate between the servers, so that the
machine's noise affects all of them alike; the best round of each counts.
"""

from __future__ import annotations

import http.client
import json
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.cpu import TreeCpu
from bench.load import Generator, Load, LoadError, LoadResult
from bench.operations import PREFIX, TEMPLATES, Case, Operation, aim_of
from bench.report import Measurement
from bench.second_client import run_beside
from bench.seed import TEMPLATE, Shape, plant
from bench.stores import Place, Postgres, Server, running, running_server
from bench.yardstick import files_us

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

WARM_ONCE = 200
"""Requests that warm up an operation whose requests cannot be repeated, over all connections."""
WARM_EACH_MIN = 20
YARDSTICK_S = 0.15
ROUNDS_UNJUDGED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan: what is measured, how often and how long."""

    operations: tuple[Operation, ...]
    sizes: dict[str, tuple[int, ...]]
    connections: tuple[int, ...]
    rounds: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Target:
    """A server over a filled store."""

    store: str
    shape: Shape
    server: Server

    @property
    def host(self) -> str:
        return f"{self.server.host}:{self.server.port}"


@dataclass(frozen=True, slots=True)
class RoundFigures:
    """The result of a round: answers, CPU nanoseconds of all processes, and of the database alone."""

    answered: LoadResult
    run_ns: int
    database_ns: int

    @property
    def cpu_us(self) -> float:
        """CPU µs per request."""
        return self.run_ns / self.answered.count / 1000


def say(text: str) -> None:
    """Print progress to standard error."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def targets(plan: Plan, folder: Path) -> Iterator[list[Target]]:
    """Fill and serve every store for the body of a `with`."""
    with ExitStack() as stack:
        postgres: Postgres | None = None
        if "postgres" in plan.sizes:
            postgres = Postgres(folder / "pg")
            stack.callback(postgres.stop)
        served_targets = []
        for store, sizes in plan.sizes.items():
            for nodes in sizes:
                database = None if store == "sqlite" or postgres is None else postgres.new_database(f"bench_{nodes}")
                pid = None if store == "sqlite" or postgres is None else postgres.pid
                place = Place(folder / f"{store}-{nodes}", database)
                prepare(place, Shape(nodes), database_pid=pid)
                served_targets.append(
                    Target(store, Shape(nodes), stack.enter_context(running_server(place, database_pid=pid)))
                )
        yield served_targets


def prepare(place: Place, shape: Shape, *, database_pid: int | None) -> None:
    """Create the templates through a server, then fill the store while no server runs. Raises LoadError, StartError."""
    started = time.monotonic()
    with running_server(place, database_pid=database_pid) as server:
        for path, body in (
            (f"{PREFIX}/namespaces", {"namespace": [TEMPLATE]}),
            *((f"{PREFIX}/namespaces/{TEMPLATE}/tables", template) for template in TEMPLATES),
        ):
            _post(server, path, body)
    plant(place, shape)
    say(f"planted {shape.nodes:,} nodes in {place.data.name.partition('-')[0]}: {time.monotonic() - started:.1f} s")


def _post(server: Server, path: str, body: object) -> None:
    headers = {"Authorization": f"Bearer {server.admin_token}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
    connection.request("POST", path, json.dumps(body), headers)
    response = connection.getresponse()
    text = response.read().decode(errors="replace")
    connection.close()
    if response.status >= 300:
        raise LoadError(f"{response.status} for POST {path}: {text[:600]}")


def measure_all(plan: Plan, all_targets: Sequence[Target], *, log: Path) -> Iterator[list[Measurement]]:
    """Measure every operation. Yields the results of one operation on all servers at a time. Raises LoadError."""
    with Generator() as generator, Generator() as company, _yardstick(log) as bare:
        for operation in plan.operations:
            fitting = [each for each in all_targets if _fits(operation, each, plan)]
            for target in fitting:
                _check(operation, target)
            results: list[Measurement] = []
            for number, connections in enumerate(plan.connections):
                rounds: dict[Target, list[RoundFigures]] = {target: [] for target in fitting}
                alone: list[float] = []
                files: dict[Target, list[float]] = {target: [] for target in fitting}
                for turn in range(_rounds(operation, connections, plan)):
                    alone.append(bare(generator, connections))
                    for target in fitting:
                        files[target] += _files_alone(operation, target)
                        case = _case(target, connections, number * plan.rounds + turn, plan)
                        rounds[target].append(
                            measure_round(generator, company, operation, target, case=case, seconds=plan.seconds)
                        )
                results += [
                    _best(
                        operation,
                        target,
                        connections,
                        rounds[target],
                        alone_us=min(alone),
                        files_us=min(files[target], default=None),
                    )
                    for target in fitting
                ]
            yield results


def _rounds(operation: Operation, connections: int, plan: Plan) -> int:
    """Return all rounds if a target is judged: noise varies within seconds, and only the quietest round counts."""
    has_aim = any(aim_of(operation, store=store, connections=connections) is not None for store in plan.sizes)
    return plan.rounds if has_aim else min(plan.rounds, ROUNDS_UNJUDGED)


def _warm(operation: Operation, case: Case, *, requests: int) -> int:
    """Return the number of requests that warm a connection. For reads it is one pass over all requests."""
    if operation.once:
        return -(-WARM_ONCE // case.connections)
    if operation.writes or case.part > 0:
        return WARM_EACH_MIN
    return max(WARM_EACH_MIN, -(-requests // case.connections))


@contextmanager
def _yardstick(log: Path) -> Iterator[Callable[[Generator, int], float]]:
    """Run the server library alone. Yields a function that measures its CPU µs per request for some connections."""
    with running([sys.executable, "-m", "bench.yardstick"], log=log) as (pid, host, port):
        request = b"GET / HTTP/1.1\r\nHost: bench\r\nAccept: application/json\r\n\r\n"

        def measure(generator: Generator, connections: int) -> float:
            load = Load(
                host=host,
                port=port,
                requests=(request,) * connections,
                connections=connections,
                once=False,
                warm=20,
                seconds=YARDSTICK_S,
                count_max=1_000_000,
            )
            answered, run_ns = generator.run(load, [TreeCpu([pid])])
            return sum(run_ns) / answered.count / 1000

        yield measure


def _fits(operation: Operation, target: Target, plan: Plan) -> bool:
    if target.shape.nodes < operation.nodes_min:
        return False
    return not operation.big_tree_only or target.shape.nodes == max(plan.sizes[target.store]) >= 10_000


def _case(target: Target, connections: int, part: int, plan: Plan) -> Case:
    parts = len(plan.connections) * plan.rounds
    return Case(host=target.host, shape=target.shape, connections=connections, part=part, parts=parts)


def measure_round(
    generator: Generator, company: Generator, operation: Operation, target: Target, *, case: Case, seconds: float
) -> RoundFigures:
    """Measure one round."""
    requests = tuple(operation.requests(case))
    load = Load(
        host=target.server.host,
        port=target.server.port,
        requests=requests,
        connections=case.connections,
        once=operation.once,
        seconds=seconds,
        count_max=operation.count_max,
        warm=_warm(operation, case, requests=len(requests)),
    )
    clocks = [TreeCpu([pid]) for pid in target.server.pids]
    try:
        if operation.beside is None:
            answered, run_ns = generator.run(load, clocks)
        else:
            beside = replace(
                load,
                requests=tuple(operation.beside.requests(case)),
                connections=1,
                warm=WARM_EACH_MIN,
                per_second=operation.beside.per_second,
            )
            answered, run_ns = run_beside(generator, load, clocks, company=company, beside=beside)
    except LoadError as error:
        raise LoadError(f"{operation.title} ({target.store}, {target.shape.nodes:,} nodes): {error}") from None
    return RoundFigures(answered, sum(run_ns), sum(run_ns[1:]))


def _files_alone(operation: Operation, target: Target) -> list[float]:
    """Measure the cost of the operation's files alone, in the server's directory."""
    if operation.files is None:
        return []
    directories, size = operation.files
    return [files_us(target.server.place.data, directories=directories, size=size)]


def _best(
    operation: Operation,
    target: Target,
    connections: int,
    rounds: Sequence[RoundFigures],
    *,
    alone_us: float,
    files_us: float | None,
) -> Measurement:
    ordered = sorted(rounds, key=lambda each: each.cpu_us)
    best = ordered[0 if operation.beside is None else len(ordered) // 2]  # the minimum of a difference is biased
    answered = best.answered
    return Measurement(
        operation=operation.key,
        store=target.store,
        tree_nodes=target.shape.nodes,
        connections=connections,
        cpu_us=best.cpu_us,
        database_us=best.database_ns / answered.count / 1000,
        requests=answered.count,
        per_second=answered.count / answered.seconds,
        p50_ms=answered.p50_ms,
        p99_ms=answered.p99_ms,
        bytes_mean=answered.bytes_mean,
        alone_us=alone_us,
        files_us=files_us,
        rounds_us=tuple(round(each.cpu_us, 2) for each in rounds),
    )


def _check(operation: Operation, target: Target) -> None:
    """Check before the measurement that a list shows exactly what its caller may see. Raises LoadError."""
    if operation.names is None:
        return
    one = Case(host=target.host, shape=target.shape, connections=1, part=0, parts=1)
    line, *fields = operation.requests(one)[0].decode().partition("\r\n\r\n")[0].split("\r\n")
    connection = http.client.HTTPConnection(target.server.host, target.server.port, timeout=60)
    connection.request("GET", line.split()[1], headers=dict(field.split(": ", 1) for field in fields))
    body = json.loads(connection.getresponse().read())
    connection.close()
    listed = len(body.get("identifiers", ()))
    if listed != operation.names:
        raise LoadError(f"{operation.title}: {listed:,} names are listed, not {operation.names:,}: {str(body)[:300]}")
