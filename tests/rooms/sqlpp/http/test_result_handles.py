# SPDX-License-Identifier: Apache-2.0
"""Deferred and asynchronous results: their status, owner, limits, lifetime, and access over several nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from limnos.app.bootstrap import bootstrap
from limnos.app.node_builder import build
from limnos.config import Settings
from limnos.config.access import AccessSection
from limnos.config.server import ServerSection, TlsSection
from limnos.rooms.sqlpp.services.requests.running_requests import LEASE_MS, REQUESTS
from tests.http.driver import API, DriverAnswer, DriverNode
from tests.http.iceberg.wire import node_over
from tests.rooms.sqlpp.http.test_compaction import sql
from tests.rooms.sqlpp.http.test_locks import query
from tests.rooms.sqlpp.http.wire import ask, refusal, rows, status_and_message

pytestmark = pytest.mark.slow

SLOW = "select value count(*) from range(1, 3000) a, range(1, 3000) b, range(1, 3000) c"
MANY = "select value {'x': x, 's': repeat('y', 70000)} from range(1, 8) x"


def handle_of(answer: DriverAnswer) -> str:
    """Return the handle in an answer."""
    assert answer.status == 200, answer.body
    handle = answer.json()["handle"]
    assert isinstance(handle, str)
    return handle


def eventually(node: DriverNode, target: str, is_there: Callable[[DriverAnswer], bool]) -> DriverAnswer:
    """Repeat a request until its answer has the expected status."""
    while True:
        answer = node.get(target)
        if is_there(answer):
            return answer
        node.runner.run(asyncio.sleep(0.02))


def done(node: DriverNode, answer: DriverAnswer) -> DriverAnswer:
    """Return the status of an async request after its end."""
    return eventually(node, handle_of(answer), lambda response: response.json()["status"] != "running")


def test_a_deferred_result_is_fetched_from_its_handle(shared: DriverNode) -> None:
    """A deferred answer has a handle instead of results; they can be fetched repeatedly and equal those of an immediate
    request.
    """
    answer = ask(shared, "select value 1; select value {'a': missing};", mode="deferred", client_context_id="mine")

    body = answer.json()
    fetched = shared.get(handle_of(answer))
    assert (body["status"], set(body)) == ("success", {"requestID", "clientContextID", "status", "handle"})
    assert body["handle"].startswith("/query/service/result/")
    result_body = fetched.json()
    assert (result_body["results"], result_body["status"], result_body["clientContextID"]) == (
        [1, {}],
        "success",
        "mine",
    )
    assert (result_body["requestID"], result_body["metrics"]["resultCount"]) == (body["requestID"], 2)
    assert shared.get(handle_of(answer)).body == fetched.body
    assert b'\n  "a"' not in fetched.body


def test_handle_url_has_the_clients_host(shared: DriverNode) -> None:
    """The handle is a URL with the host name that the client used. Headers of proxies do not count."""
    body = {"statement": "select value 1", "mode": "deferred"}
    forged = {
        "x_forwarded_proto": "https",
        "x_forwarded_host": "evil.example.com",
        "forwarded": "host=evil.example.com",
    }
    plain = shared.ask("POST", "/query/service", body, host="lake.example.com:19002", **forged)

    assert handle_of(plain).startswith("http://lake.example.com:19002/query/service/result/")


@pytest.mark.parametrize(
    "public_url, tls, start",
    [
        ("https://data.example.com/lake", TlsSection(), "https://data.example.com/lake/query/service/"),
        (None, TlsSection(certificate="server.pem", key="server.key"), "https://lake.example.com:19002/query/service/"),
    ],
    ids=["public-url", "tls"],
)
def test_handle_url_follows_the_settings(tmp_path: Path, public_url: str | None, tls: TlsSection, start: str) -> None:
    """With a public URL, handles are below it, whatever the request's Host. A server with a certificate gives https."""
    body = {"statement": "select value 1", "mode": "deferred"}
    access = AccessSection(authentication="simple")
    settings = Settings(server=ServerSection(data=str(tmp_path), public_url=public_url), access=access, tls=tls)
    with asyncio.Runner() as runner:
        built = build(settings)
        runner.run(bootstrap(built.services, settings))
        node = DriverNode(built=built, data=tmp_path, runner=runner)

        deferred = node.ask("POST", "/query/service", body, host="lake.example.com:19002")
        started_request = node.ask("POST", "/query/service", body | {"mode": "async"}, host="lake.example.com:19002")
        runner.run(built.close())

    assert handle_of(deferred).startswith(f"{start}result/")
    assert handle_of(started_request).startswith(f"{start}status/")


def test_large_result_stored_in_parts_is_returned_completely(shared: DriverNode) -> None:
    """A large result is stored in parts and returned completely and in order, pretty-printed if requested."""
    handle = handle_of(ask(shared, MANY, mode="deferred"))

    results = shared.get(handle).json()["results"]
    pretty = shared.get(f"{handle}?pretty=true")
    assert [each["x"] for each in results] == list(range(1, 9))
    assert pretty.json()["results"] == results
    assert b'\n  "x": 1,' in pretty.body


@pytest.mark.parametrize(
    "query,parts",
    [
        ("select value 1 from range(1, 4000) x", 1),
        ("select value repeat('y', 70000) from range(1, 6) x", 2),
        ("select value repeat('y', 300000) from range(1, 3) x", 3),
    ],
)
def test_stored_parts_are_split_by_bytes(node: DriverNode, query: str, parts: int) -> None:
    """Parts of a stored result are split by bytes, not by rows."""
    handle = handle_of(ask(node, query, mode="deferred"))

    assert sql(node, "SELECT count(*) FROM sqlpp_result") == [(parts,)]
    assert node.get(handle).json()["status"] == "success"


def test_deleted_part_is_reported_at_the_end_of_the_body(node: DriverNode) -> None:
    """If a part of a result is deleted while the result is read, the end of the body reports the failure."""
    handle = handle_of(ask(node, MANY, mode="deferred"))
    sql(node, "DELETE FROM sqlpp_result WHERE number = 1")

    answer = node.get(handle)

    body = answer.json()
    assert (answer.status, body["status"]) == (200, "fatal")
    assert 0 < len(body["results"]) < 8
    assert body["errors"] == [{"code": 1, "msg": "The result was discarded while it was read"}]


def test_async_request_status_is_readable_until_its_result(node: DriverNode) -> None:
    """The status of an async request can be read until it ends; then it has the result's handle."""
    answer = ask(node, "create dataverse later; select value 1", mode="async")

    assert (answer.json()["status"], "/query/service/status/" in handle_of(answer)) == ("running", True)
    last = done(node, answer).json()
    assert last["status"] == "success"
    assert node.get(last["handle"]).json()["results"] == [1]
    assert rows(node, "use later") == []


def test_deferred_statement_without_rows_has_no_results(node: DriverNode) -> None:
    """The result of a deferred statement without rows has the status and no results."""
    handle = handle_of(ask(node, "create dataverse a", mode="deferred"))

    assert set(node.get(handle).json()) == {"requestID", "status", "metrics"}


def test_errors_of_deferred_and_async_requests_are_reported(node: DriverNode) -> None:
    """An error of a deferred request is in its answer, and nothing is stored; that of an async request is in its status
    and result.
    """
    deferred = refusal(node, "select value 1; use gone", mode="deferred")
    answer = ask(node, "select value 1; use gone", mode="async")

    last = done(node, answer)
    result = node.get(handle_of(answer).replace("/status/", "/result/"))
    words = "ASX1063: Cannot find dataverse with name gone (in line 1, at column 21)"
    assert deferred == (400, words)
    assert (last.status, last.json()["status"], last.json()["errors"][0]["msg"]) == (200, "fatal", words)
    assert status_and_message(result) == (400, words)


def test_unparsable_request_is_refused_and_not_stored(shared: DriverNode) -> None:
    """A request that cannot be parsed is refused immediately, and nothing is stored."""
    assert refusal(shared, "select value", mode="async")[1].startswith("ASX1001: ")
    assert refusal(shared, "create dataverse a", mode="async", readonly=True)[1].startswith("ASX0044: ")


def test_result_is_404_for_other_users(node: DriverNode) -> None:
    """Results are 404 for all other users, including service admins and later users of the same name."""
    for user in ("ana", "bob"):
        node.done("POST", f"{API}/lake/users", {"name": user})
    handle = handle_of(ask(node, "select value 1", mode="deferred", user="ana"))
    other = node.get("/query/service/result/none", user="bob")

    assert node.get(handle, user="ana").json()["results"] == [1]
    for user in ("bob", "admin"):
        for method, target in (("GET", handle), ("DELETE", handle), ("GET", handle.replace("/result/", "/status/"))):
            answer = node.ask(method, target, user=user)
            assert (answer.status, answer.json()["errors"]) == (404, other.json()["errors"])
    assert node.get(handle, user=None).status == 401
    node.done("DELETE", f"{API}/lake/users/ana")
    node.done("POST", f"{API}/lake/users", {"name": "ana"})
    assert node.get(handle, user="ana").status == 404


def test_discarded_result_is_404_and_frees_the_limit(node: DriverNode) -> None:
    """A discarded result is 404, and no longer counts towards the limit."""
    handle = handle_of(ask(node, "select value 1", mode="deferred"))

    assert node.delete(handle).status == 200
    assert node.get(handle).status == node.delete(handle).status == 404


def test_discard_cancels_a_running_request(node: DriverNode) -> None:
    """Discarding a running request cancels it and removes it from the list and the store."""
    answer = ask(node, SLOW, mode="async")
    result = handle_of(answer).replace("/status/", "/result/")
    running = node.get(result)

    assert (running.status, running.json()["status"]) == (409, "running")
    assert node.delete(result).status == 200
    assert eventually(node, "/admin/requests/running", lambda response: response.json() == []).status == 200
    assert node.get(handle_of(answer)).status == 404


def test_discard_stops_the_statement_before_it_answers(node: DriverNode) -> None:
    """Discarding a running request stops its statement, not only the storing of its result."""
    answer = ask(node, SLOW, mode="async")
    (running,) = REQUESTS.of(node.built.services).of(None)

    assert not running.is_stopped
    assert node.delete(handle_of(answer).replace("/status/", "/result/")).status == 200
    assert running.is_stopped


def test_discard_at_another_node_stops_the_statement(tmp_path: Path) -> None:
    """A running request that is discarded at another node stops when its own node looks for cancelled requests, though
    its row is deleted.
    """
    with node_over(tmp_path) as node, node_over(tmp_path) as other:
        answer = ask(node, SLOW, mode="async")
        other_answer = ask(node, SLOW, mode="async")
        requests = REQUESTS.of(node.built.services)
        first, second = requests.of(None)

        assert other.delete(handle_of(answer).replace("/status/", "/result/")).status == 200
        node.runner.run(requests.look())

        assert (first.is_stopped, second.is_stopped) == (True, False)
        assert node.get(handle_of(answer)).status == 404
        assert node.get(handle_of(other_answer)).json()["status"] == "running"


def test_async_request_is_cancelled_by_client_id(node: DriverNode) -> None:
    """An async request can be cancelled by the client's own id; its status then reports the cancellation."""
    answer = ask(node, SLOW, mode="async", client_context_id="slow")

    cancelled = node.delete("/admin/requests/running?client_context_id=slow")
    assert cancelled.json() == {"cancelled": [answer.json()["requestID"]]}
    last = done(node, answer).json()
    assert (last["status"], last["errors"][0]["msg"]) == ("fatal", "ASX0041: The request was cancelled")


def test_an_async_request_has_its_deadline(node: DriverNode) -> None:
    """A request past its deadline has the status `timeout`."""
    last = done(node, ask(node, SLOW, mode="async", timeout="100ms")).json()

    assert (last["status"], last["errors"][0]["msg"][-9:]) == ("timeout", "was ended")


def test_results_beyond_the_number_per_user_are_429(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the number of results per user, requests are refused with 429 and advice. Other users are not affected,
    and a discarded result no longer counts.
    """
    services = node.built.services
    monkeypatch.setattr(services, "defaults", services.defaults._replace(sqlpp_results_max=2))
    node.done("POST", f"{API}/lake/users", {"name": "ana"})
    handles = [handle_of(ask(node, "select value 1", mode=mode)) for mode in ("deferred", "async")]

    status, message = refusal(node, "select value 1", mode="async")
    assert (status, "sqlpp.results_max" in message) == (429, True)
    assert ask(node, "select value 1", mode="deferred", user="ana").status == 200
    assert node.delete(handles[0]).status == 200
    assert ask(node, "select value 1", mode="deferred").status == 200


def test_results_beyond_the_bytes_per_user_are_413(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result beyond the number of result bytes per user is refused with 413, and its parts are deleted."""
    services = node.built.services
    monkeypatch.setattr(services, "defaults", services.defaults._replace(sqlpp_results_bytes_max=300_000))
    node.done("POST", f"{API}/lake/users", {"name": "ana"})

    status, message = refusal(node, MANY, mode="deferred")
    assert (status, "sqlpp.results_bytes_max" in message) == (413, True)
    assert ask(node, "select value 1", mode="deferred").status == 200
    late = done(node, ask(node, MANY, mode="async", user="admin")).json()
    assert "sqlpp.results_bytes_max" in late["errors"][0]["msg"]


def test_expired_results_are_swept_with_all_parts(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Expired results are deleted with all parts; others stay."""
    services = node.built.services
    retained_handle = handle_of(ask(node, "select value 1", mode="deferred"))
    monkeypatch.setattr(services, "defaults", services.defaults._replace(sqlpp_results_keep_ms=-LEASE_MS))
    old = handle_of(ask(node, MANY, mode="deferred"))
    at = services.store.time.now_ms()
    monkeypatch.setattr(services.store.time, "now_ms", lambda: at + LEASE_MS + 1)
    requests = REQUESTS.of(services)

    swept = node.runner.run(services.store.submit(requests.permit, lambda tx: tx.requests.expire(10)))
    assert swept == 1
    assert node.get(retained_handle).status == 200
    assert node.get(old).status == 404
    assert query(node, "SELECT count(*) FROM sqlpp_result") == [1]


def test_any_node_serves_results_and_requests_of_another(tmp_path: Path) -> None:
    """Of two nodes over one store, either answers for status, result, list and cancellation of the other's requests."""
    with node_over(tmp_path) as node, node_over(tmp_path) as other:
        handle = handle_of(ask(node, "select value 1", mode="deferred"))
        answer = ask(node, SLOW, mode="async", client_context_id="slow")

        assert other.get(handle).json()["results"] == [1]
        assert other.get(handle_of(answer)).json()["status"] == "running"
        assert [each["clientContextID"] for each in other.get("/admin/requests/running").json()] == ["slow"]
        assert other.delete("/admin/requests/running?client_context_id=slow").status == 200
        assert done(node, answer).json()["errors"][0]["msg"] == "ASX0041: The request was cancelled"


def test_requests_of_a_stopped_node_fail_after_its_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the lease of a stopped node expires, its requests have the status failed, their results are 404, and they
    are not listed.
    """
    with node_over(tmp_path) as node, node_over(tmp_path) as other:
        answer = ask(node, SLOW, mode="async")
        at = other.built.services.store.time.now_ms()
        monkeypatch.setattr(other.built.services.store.time, "now_ms", lambda: at + LEASE_MS + 1)

        status = other.get(handle_of(answer))
        result = other.get(handle_of(answer).replace("/status/", "/result/"))
        assert (status.status, status.json()["status"], status.json()["errors"][0]["msg"][:8]) == (
            200,
            "fatal",
            "ASX3102:",
        )
        assert result.status == 410
        assert other.get("/admin/requests/running").json() == []
