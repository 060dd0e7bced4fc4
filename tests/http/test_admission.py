# SPDX-License-Identifier: Apache-2.0
"""Long request bodies: a route reads them only from callers with a right to use them. Short bodies are read first."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.http.application import Application
from limnos.http.routing import LONG_BODY_BYTES, SHORT_BODY_BYTES, Route
from tests.http import declared_requests
from tests.http.driver import API, OWN, DriverNode, grant, node_at
from tests.http.iceberg import wire
from tests.http.test_coverage import NAMES
from tests.installed import absent_operations

PIECE = b" " * 20_000
OWNERS_MAY = (
    "create-namespace",
    "create-schema",
    "transaction",
    "bulk",
    "joint-transaction",
    "put-pipeline",
    "put-step",
    "put-schedule",
    "take-lineage",
    "take-lineage-v1",
    "take-lineage-of-metalake",
    "update-statistics",
    "update-partition-statistics",
)
"""Routes whose object is named in the body or does not exist yet. Owners of namespaces may create namespaces in them,
owners of tables may report their lineage and statistics, and owners of pipelines and runs may continue these. So long
bodies of members are read, but not those of users outside of the metalake.
"""
METHODS = ("POST", "PUT", "PATCH")
LESSER = ("member", "keyless", "visitor", "uses", "reader", "writer", "viewer")
"""Callers who may load or use objects but create none."""
_USERS = "visitor uses reader writer viewer"
READ_FOR: dict[str, str] = {
    **dict.fromkeys(
        (
            "iceberg create-namespace",
            "gravitino create-schema",
            "gravitino update-statistics",
            "gravitino update-partition-statistics",
            "admin put-pipeline",
            "admin put-step",
            "admin put-schedule",
            "admin take-lineage",
            "admin take-lineage-v1",
            "admin take-lineage-of-metalake",
            "admin transaction",
            "admin bulk",
            "admin joint-transaction",
        ),
        " ".join(LESSER),
    ),
    **dict.fromkeys(
        (
            "iceberg commit-transaction",
            "gravitino alter-schema",
            "gravitino create-schema-table",
            "gravitino alter-schema-table",
            "gravitino create-schema-view",
            "gravitino alter-schema-view",
            "gravitino register-model",
            "gravitino alter-model",
            "gravitino link-model-version",
            "gravitino create-fileset",
            "gravitino alter-fileset",
            "gravitino register-function",
            "gravitino alter-function",
            "gravitino create-topic",
            "gravitino alter-topic",
            "asterix query-service",
            *declared_requests.READ_FOR,
        ),
        _USERS,
    ),
    "iceberg commit-table": "writer",
    "iceberg report-metrics": "reader writer viewer",
    "iceberg plan-scan": "reader",
    "iceberg sign-request": "reader writer",
    "lance lance-update-table": "writer",
    "lance lance-delete-from-table": "writer",
    "lance lance-explain-table-query-plan": "reader",
}
"""The lesser callers whose long body each of these routes reads, because they may have the right for it, or own an
object that only the body names.
"""


def routes(application: Application) -> Iterator[tuple[str, str, Route]]:
    """Return every route that may get a body: protocol, path, route."""
    for protocol in application.protocols:
        for route in protocol.router.routes:
            if route.method in METHODS and protocol.name + route.operation != "icebergissue-token":
                path = protocol.router.root + route.path
                for name, value in NAMES.items():
                    path = path.replace(f"{{{name}}}", value)
                yield protocol.name, path, route


class Sender:
    """A client that sends a body piece by piece, and counts the pieces taken."""

    def __init__(self, pieces: int) -> None:
        self.left = pieces
        self.taken = 0

    async def receive(self) -> dict[str, object]:
        """Return the next piece of the body."""
        self.left -= 1
        self.taken += len(PIECE)
        return {"type": "http.request", "body": PIECE, "more_body": self.left > 0}


def send(
    node: DriverNode, method: str, path: str, user: str | None, *, pieces: int = 40, declared: bool = True
) -> tuple[int, int, dict]:
    """Send a body of spaces. Returns the status, the number of bytes taken, and the JSON answer; {} for other
    content.
    """
    sender = Sender(pieces)
    headers = {b"content-length": b"%d" % (pieces * len(PIECE))} if declared else {b"transfer-encoding": b"chunked"}
    if user is not None:
        headers[b"authorization"] = b"Basic " + base64.b64encode(f"{user}:x".encode())
    work = node.built.application.respond(
        method,
        path.encode(),
        b"",
        headers,
        sender.receive,
        request_id="r",  # type: ignore[arg-type]
    )
    status, _, body = node.runner.run(asyncio.wait_for(work, 300))
    return status, sender.taken, json.loads(body) if body.startswith(b"{") else {}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """A node with the objects of the paths, a member without rights, a disabled user, and a user with a right for each
    kind of body.
    """
    with wire.node_over(tmp_path_factory.mktemp("admission"), body_bytes_max=1 << 22) as running:
        wire.make_table(running, "a", "t")
        for user in ("member", "disabled", "ana"):
            running.done("POST", f"{API}/lake/users", {"name": user})
        running.done("POST", f"{API}/lake/groups", {"name": "crew"})
        running.done("POST", f"{API}/lake/roles", {"name": "hands", "properties": {}, "securableObjects": []})
        running.done("PATCH", f"{OWN}/metalakes/lake/users/disabled", {"enabled": False})
        grant(running, "reader", "use_catalog use_schema select_table", kind="CATALOG", on="main")
        grant(running, "writer", "use_catalog use_schema modify_table", kind="CATALOG", on="main")
        grant(running, "visitor", "use_catalog", kind="CATALOG", on="main")
        grant(running, "uses", "use_catalog use_schema", kind="CATALOG", on="main")
        grant(running, "viewer", "use_catalog use_schema select_view", kind="CATALOG", on="main")
        grant(running, "keyless", "use_schema select_table modify_table select_view", kind="CATALOG", on="main")
        yield running


def test_routes_without_stated_actions_limit_bodies_to_short(node: DriverNode) -> None:
    """Each route that reads long bodies states the actions that need them. All other routes have the limit of short
    bodies.
    """
    limits = {route.body_limit for _, _, route in routes(node.built.application) if not route.asks}

    assert limits == {SHORT_BODY_BYTES}


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("user", [None, "stranger", "member", "disabled"])
def test_long_body_of_unprivileged_caller_is_not_read(node: DriverNode, user: str | None, declared: bool) -> None:
    """Callers without rights are refused on every route: before the body if its length is declared, otherwise after a
    short body at most.
    """
    for protocol, path, route in routes(node.built.application):
        pieces = min(40, route.body_limit // len(PIECE)) if route.asks else 40
        status, bytes_read, refusal = send(node, route.method, path, user, pieces=pieces, declared=declared)

        if user == "member" and route.operation in OWNERS_MAY:
            continue
        if user in ("stranger", "member") and route.operation == "create-console-code":
            continue  # the route is about the caller, and reads no body
        assert status in (401, 403, 413), (path, refusal)
        assert bytes_read <= (0 if declared else SHORT_BODY_BYTES + len(PIECE)), path
        if route.asks and user is not None:
            assert status == 403, (protocol, path, refusal)


def test_long_and_short_bodies_get_the_same_refusal(node: DriverNode) -> None:
    """The refusal of a long body has the same message as that of a short one."""
    for path, body in (
        (f"{wire.ROOT}/namespaces/a/tables", {"name": "n", "schema": wire.SCHEMA}),
        (f"{wire.ROOT}/namespaces/a/tables/t", {"updates": [wire.set_properties(k="v")]}),
        (f"{API}/lake/roles", {"name": "n", "properties": {}, "securableObjects": []}),
    ):
        for user in (None, "stranger", "member", "reader"):
            short = node.ask("POST", path, body, user=user)
            status, bytes_read, refusal = send(node, "POST", path, user)

            assert (status, bytes_read) == (short.status, 0)
            assert refusal == short.json()


def test_long_body_is_not_read_with_a_lesser_privilege(node: DriverNode) -> None:
    """Users with a lesser right than the route needs are refused before a long body is read, except for the operations
    in `READ_FOR`.
    """
    readers: dict[str, list[str]] = {}
    for protocol, path, route in routes(node.built.application):
        for user in LESSER if route.asks else ():
            status = node.ask(route.method, path, b" " * (SHORT_BODY_BYTES + 1), user=user).status
            if status != 403:
                readers.setdefault(f"{protocol} {route.operation}", []).append(user)

    assert {operation: " ".join(users) for operation, users in readers.items()} == {
        operation: users for operation, users in READ_FOR.items() if tuple(operation.split()) not in absent_operations()
    }


@pytest.mark.parametrize("declared", [True, False])
def test_long_body_of_privileged_caller_is_read_completely(node: DriverNode, declared: bool) -> None:
    """For a caller with the right, the body is read completely, and refused because of its content."""
    commit = f"{wire.ROOT}/namespaces/a/tables/t"

    for method, path, user in (
        ("POST", commit, "writer"),
        ("POST", f"{wire.ROOT}/namespaces/a/tables", "admin"),
        ("POST", f"{API}/lake/roles", "admin"),
        ("POST", f"{wire.ROOT}/namespaces", "admin"),
        ("PUT", f"{API}/lake/catalogs/main", "admin"),
        ("POST", API, "admin"),
    ):
        status, bytes_read, refusal = send(node, method, path, user, pieces=50, declared=declared)

        assert (status, bytes_read) == (400, 50 * len(PIECE)), refusal


def test_bodies_over_the_route_limit_return_413(node: DriverNode) -> None:
    """Metadata may have the server's limit, other long bodies a megabyte, all others 64 KiB: 413 for every caller."""
    over = LONG_BODY_BYTES // len(PIECE) + 1
    assert send(node, "POST", f"{wire.ROOT}/namespaces/a/tables/t", "admin", pieces=over)[0] == 400
    assert send(node, "POST", f"{wire.ROOT}/namespaces/a/tables/t", "admin", pieces=over * 4)[0] == 413
    assert send(node, "POST", f"{wire.ROOT}/namespaces", "admin", pieces=over)[0] == 413
    assert send(node, "POST", f"{wire.ROOT}/tables/rename", "admin", pieces=4)[0] == 413


def test_long_bodies_are_read_without_access_control(tmp_path: Path) -> None:
    """With access control off, long bodies of all callers are read."""
    with node_at(tmp_path / "open", access=False) as open_node:
        assert send(open_node, "POST", f"{wire.ROOT}/namespaces", None, pieces=5)[0] == 400
