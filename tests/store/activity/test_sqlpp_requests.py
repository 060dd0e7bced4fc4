# SPDX-License-Identifier: Apache-2.0
"""Requests of the query service in the store, on both databases: visible to their users, cancelled by marks, swept at
their end.
"""

from __future__ import annotations

from limnos.model.entities import RUNNING, StatementRequest
from limnos.model.principals import Requester
from limnos.store.activity.sqlpp_requests import held_query, part_query, request_query, rows_of, runs_query
from limnos.store.sql import read_rows
from tests.backends import StoreLab
from tests.store.world import StoreWorld

ANA = Requester("ana", 7)
LEASE_MS = 15_000


def row(lab: StoreLab, world: StoreWorld, handle: str, **more: object) -> StatementRequest:
    """Insert a running request of ana."""
    now_ms = lab.write(lambda tx: tx.now_ms, zone=world.main.id)
    arguments: dict[str, object] = {
        "user_name": "ana",
        "user_id": 7,
        "request_id": f"r-{handle}",
        "client_context_id": "mine",
        "statement": "select 1",
        "mode": "async",
        "started_at": now_ms,
        "holder": "here",
        "alive_until": now_ms + LEASE_MS,
        **more,
    }
    request = StatementRequest(handle=handle, **arguments)  # type: ignore[arg-type]
    lab.write(lambda tx: tx.requests.insert(request), zone=world.main.id)
    return request


def find(lab: StoreLab, query: tuple) -> list:
    """Return the rows of one statement."""
    return lab.load(read_rows(query[0], **query[1]))


def test_request_is_returned_only_for_its_handle_and_user(lab: StoreLab, world: StoreWorld) -> None:
    """A request is found only with its handle and with its user's name and id."""
    request = row(lab, world, "a")

    assert rows_of(find(lab, request_query("a", ANA))) == [request]
    assert request.requester == ANA
    for requester in (Requester("bob", 7), Requester("ana", 8)):
        assert find(lab, request_query("a", requester)) == []


def test_result_parts_can_be_added_only_while_running(lab: StoreLab, world: StoreWorld) -> None:
    """Result parts of a running request are counted for its user. After its end no part can be added, and the parts of
    a failed request are deleted.
    """
    for handle in ("a", "b"):
        row(lab, world, handle)
    added = lab.write(lambda tx: tx.requests.add("a", 0, body=b"1\n2", count=2), zone=world.main.id)
    lab.write(lambda tx: tx.requests.add("b", 0, body=b"1", count=1), zone=world.main.id)
    result_totals = lab.write(lambda tx: tx.requests.count_results(ANA), zone=world.main.id)
    for handle, state in (("a", "success"), ("b", "fatal")):
        lab.write(
            lambda tx, handle=handle, state=state: tx.requests.end(handle, state=state, outcome=b"[]", keep_ms=10),
            zone=world.main.id,
        )
    late = lab.write(lambda tx: tx.requests.add("a", 1, body=b"3", count=1), zone=world.main.id)

    assert (added, result_totals, late) == (True, (2, 4), False)
    (stored_request,) = rows_of(find(lab, request_query("a", ANA)))
    assert (stored_request.state, stored_request.rows_count, stored_request.size, stored_request.outcome) == (
        "success",
        2,
        3,
        b"[]",
    )
    assert [bytes(body) for (body,) in find(lab, part_query("a", 0))] == [b"1\n2"]
    assert find(lab, part_query("b", 0)) == []


def test_cancellation_marks_requests_on_live_nodes(lab: StoreLab, world: StoreWorld) -> None:
    """A cancellation marks requests on a live node, by the request's id, the client's id or the handle, of one user or
    of all users.
    """
    row(lab, world, "a")
    row(lab, world, "b", user_name="bob", holder="there")
    row(lab, world, "dead", alive_until=0)

    def cancel(by: str, identifier: str, *, requester: Requester = ANA, everybody: bool = False) -> list[str]:
        return lab.write(
            lambda tx: tx.requests.cancel(by, identifier, requester=requester, everybody=everybody), zone=world.main.id
        )

    assert cancel("request_id", "r-b") == cancel("handle", "dead") == []
    assert find(lab, held_query("there")) == [("b", 0)]
    assert cancel("client_context_id", "mine") == ["r-a"]
    assert sorted(find(lab, held_query("here"))) == [("a", 1), ("dead", 0)]
    assert lab.write(lambda tx: tx.requests.add("a", 0, body=b"1", count=1), zone=world.main.id) is False
    assert cancel("request_id", "r-b", everybody=True) == ["r-b"]
    assert find(lab, held_query("there")) == [("b", 1)]


def test_running_requests_are_listed_while_their_node_is_live(lab: StoreLab, world: StoreWorld) -> None:
    """Running requests are listed while their node's lease is valid: the caller's own, or those of all users, the
    oldest first.
    """
    first = row(lab, world, "b", started_at=1)
    second = row(lab, world, "a", user_name="bob")
    row(lab, world, "dead", alive_until=0)
    now_ms = first.alive_until - 1

    assert rows_of(find(lab, runs_query(ANA, everybody=False, now_ms=now_ms))) == [first]
    assert rows_of(find(lab, runs_query(ANA, everybody=True, now_ms=now_ms))) == [first, second]
    lab.write(lambda tx: tx.requests.beat("here", lease_ms=10 * LEASE_MS), zone=world.main.id)
    late = rows_of(find(lab, runs_query(ANA, everybody=True, now_ms=first.alive_until)))
    assert {each.handle for each in late} == {"dead", "a", "b"}


def test_expired_request_is_deleted_with_its_parts(lab: StoreLab, world: StoreWorld) -> None:
    """A request whose time and whose node's lease have expired is deleted together with its result parts."""
    row(lab, world, "old", alive_until=0)
    row(lab, world, "lives")
    row(lab, world, "kept", alive_until=0, expires_at=1 << 50)
    lab.write(lambda tx: tx.requests.add("old", 0, body=b"1", count=1), zone=world.main.id)

    assert lab.write(lambda tx: tx.requests.expire(10), zone=world.main.id) == 1
    assert find(lab, request_query("old", ANA)) == find(lab, part_query("old", 0)) == []
    assert [rows_of(find(lab, request_query(each, ANA)))[0].state for each in ("lives", "kept")] == [RUNNING, RUNNING]
