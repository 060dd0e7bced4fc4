# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.fairness`: how long one user's expensive requests delay other users.

One server on SQLite. For each kind of expensive request, sixteen connections of one user send it without pause, and
another user probes health and commits to a table. Printed for both: the CPU of the server's process between request
and response, the median and the longest; and how many of the expensive requests were answered, with their CPU. Another
user's health probe should take at most 60 ms of CPU, and a commit 250 ms. It judges nothing.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import itertools
import json
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from bench.cpu import TreeCpu
from bench.measure import prepare, say
from bench.operations import PREFIX, table_path
from bench.search import wait_until_idle
from bench.seed import Forest, Shape, open_filler
from bench.stores import Place, filled_place, running_server
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.stores import Server

CONNECTIONS: Final = 16
HOLDER, ADMIN, WRITER = "holder", "admin", "writer"
"""Callers: one has 5,000 roles, one is the admin, one commits."""
_LAKE: Final = "/api/limnos/v1/metalakes/lake"
_STATEMENT: Final = json.dumps({"statement": "SELECT VALUE count(*) FROM Metadata.`Dataset`"})


class ExpensiveRequest(NamedTuple):
    """A request that costs much, and its user."""

    key: str
    title: str
    user: str
    path: str
    body: str | None = None


def requests_of(nodes: int) -> tuple[ExpensiveRequest, ...]:
    """Return the expensive requests for a tree of so many nodes."""
    listed = max(size for size in (1_000, 100_000) if size <= nodes)
    return (
        ExpensiveRequest(
            key="facets",
            title="search with facets, 5,000 roles",
            user=HOLDER,
            path=f"{_LAKE}/search?q=table&facets=true",
        ),
        ExpensiveRequest(
            key="facets-admin",
            title="search with facets, admin",
            user=ADMIN,
            path=f"{_LAKE}/search?q=table&facets=true",
        ),
        ExpensiveRequest(
            key="holders", title="access holders", user=ADMIN, path=f"{_LAKE}/access/holders?path=main&limit=1000"
        ),
        ExpensiveRequest(
            key="rules", title="access rules", user=ADMIN, path=f"{_LAKE}/access/rules?path=main&limit=1000"
        ),
        ExpensiveRequest(
            key="list", title=f"whole list of {listed:,}", user=ADMIN, path=f"{PREFIX}/namespaces/crowd{listed}/tables"
        ),
        ExpensiveRequest(
            key="count", title="count of Metadata.Dataset", user=ADMIN, path="/query/service", body=_STATEMENT
        ),
        ExpensiveRequest(key="reach", title="own reach", user=HOLDER, path=f"{_LAKE}/access/reach?path=main"),
        ExpensiveRequest(
            key="reach-admin", title="own reach, admin", user=ADMIN, path=f"{_LAKE}/access/reach?path=main"
        ),
    )


def plant_company(place: Place, *, users: int, roles: int, own_roles: int) -> None:
    """Write users and roles that may use the catalog, each role held by one user, and a user with `own_roles` roles."""
    forest = Forest(open_filler(place))
    ids = [forest.principal(f"user{number:05}") for number in range(users)]
    grant = (forest.catalog_id, Kind.CATALOG, Privilege.USE_CATALOG, True)
    for number in range(roles):
        forest.role(f"role{number:05}", [grant], held_by=ids[number % users])
    holder = forest.principal(HOLDER)
    space = forest.namespace(forest.catalog_id, "held")
    for number in range(own_roles):
        own = forest.namespace(space, f"of{number:05}")
        rules = [(own, Kind.NAMESPACE, right, True) for right in (Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)]
        forest.bare_table(own, f"table_{number:05}")
        forest.role(f"held{number:05}", [grant, *rules], held_by=holder)
    forest.close()


class Connection:
    """A connection of one user."""

    def __init__(self, server: Server, user: str) -> None:
        self._connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
        proof = base64.b64encode(f"{user}:".encode()).decode()
        self._headers = {"Authorization": f"Basic {proof}", "Content-Type": "application/json"}
        if user == ADMIN:
            self._headers["Authorization"] = f"Bearer {server.admin_token}"

    def ask(self, method: str, path: str, *, body: str | None = None) -> int:
        """Send a request and read the response. Returns its status."""
        self._connection.request(method, path, body, self._headers)
        response = self._connection.getresponse()
        response.read()
        return response.status


class Flood:
    """One user's requests on many connections; `statuses` are those of the responses."""

    def __init__(self, server: Server, request: ExpensiveRequest, *, connections: int) -> None:
        self.statuses: list[int] = []
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._send, args=(server, request), daemon=True) for _ in range(connections)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(60)

    def _send(self, server: Server, request: ExpensiveRequest) -> None:
        connection = Connection(server, request.user)
        while not self._is_over.is_set():
            self.statuses.append(
                connection.ask("GET" if request.body is None else "POST", request.path, body=request.body)
            )


def commit_body(number: int) -> str:
    """Return the body of a commit that sets a property."""
    update = {"action": "set-properties", "updates": {"bench": str(number)}}
    return json.dumps({"requirements": [], "updates": [update]})


def probe(server: Server, request: ExpensiveRequest, *, seconds: float, connections: int) -> str:
    """Measure another user's requests beside a flood. Returns a line of the table."""
    cpu, other = TreeCpu(server.pids, below=False), Connection(server, WRITER)
    health, commits = list[float](), list[float]()
    with Flood(server, request, connections=connections) as flood:
        time.sleep(min(2.0, seconds / 4))
        began, before = time.monotonic(), cpu.look()
        answered = len(flood.statuses)
        for number in itertools.count():
            for costs, (method, path, body) in (
                (health, ("GET", "/health/ready", None)),
                (commits, ("POST", table_path(["commits"], "t0"), commit_body(number))),
            ):
                start = cpu.look()
                status = other.ask(method, path, body=body)
                costs.append((cpu.look() - start) / 1e6)
                if status != 200:
                    say(f"{path}: {status}")
            if time.monotonic() - began > seconds:
                break
            time.sleep(0.02)
        used_ms, done = (cpu.look() - before) / 1e6, len(flood.statuses) - answered
    cells = "".join(f"{statistics.median(each):9.1f}{max(each):8.1f}" for each in (health, commits))
    kinds = " ".join(f"{status}:{flood.statuses.count(status)}" for status in sorted(set(flood.statuses)))
    return f"{request.title:34}{cells}{used_ms / max(done, 1):12.1f}  {kinds}"


def alone(server: Server, request: ExpensiveRequest) -> None:
    """Send a request once, so that the caches are warm."""
    status = Connection(server, request.user).ask(
        "GET" if request.body is None else "POST", request.path, body=request.body
    )
    if status != 200:
        say(f"{request.title}: {status}")


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.fairness", description=__doc__)
    parser.add_argument("--nodes", type=int, default=120_000, help="objects of the tree")
    parser.add_argument("--users", type=int, default=5_000)
    parser.add_argument("--roles", type=int, default=10_000)
    parser.add_argument("--held", type=int, default=5_000, help="roles of one user")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each kind of request")
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    parser.add_argument("--only", default="", help="keys of requests: facets,facets-admin,holders,…")
    parser.add_argument("--data", type=Path, default=None, help="folder of the store; filled once and kept")
    return parser.parse_args(arguments)


def main() -> int:
    """Measure and print."""
    arguments = options()

    def fill(place: Place) -> None:
        prepare(place, Shape(arguments.nodes), database_pid=None)
        plant_company(place, users=arguments.users, roles=arguments.roles, own_roles=arguments.held)

    with filled_place(arguments.data, fill, what=f"{arguments.nodes:,} nodes and {arguments.users:,} users") as place:
        chosen = [
            each for each in requests_of(arguments.nodes) if not arguments.only or each.key in arguments.only.split(",")
        ]
        with running_server(place, database_pid=None) as server:
            wait_until_idle(server)
            print(f"{'':34}{'health, ms of CPU':>17}{'commit':>17}{'each, ms':>12}  answers")
            for request in chosen:
                alone(server, request)
                line = probe(server, request, seconds=arguments.seconds, connections=arguments.connections)
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
