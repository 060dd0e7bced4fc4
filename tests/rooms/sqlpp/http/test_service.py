# SPDX-License-Identifier: Apache-2.0
"""The query service: request formats, response shape, status codes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from urllib.parse import urlencode

import pytest

from limnos.model.errors import ServiceUnavailable
from limnos.rooms.sqlpp.language.errors import EngineUnavailable
from limnos.rooms.sqlpp.language.jobs import EngineJob
from limnos.rooms.sqlpp.services.execution.engine import ENGINE
from limnos.rooms.sqlpp.services.requests.running_requests import REQUESTS
from tests.http.driver import API, DriverNode, grant
from tests.rooms.sqlpp.http.wire import FORM, SERVICE, ask, form, refusal, rows, status_and_message


def test_an_answer_has_asterixdbs_shape(shared: DriverNode) -> None:
    """An answer has results, status and metrics, the request's id and the client's own id."""
    answer = ask(shared, "select value x from [1, 'a', null, missing, 1.0, {'b': {{2}}}] x;", client_context_id="mine")

    body = answer.json()
    assert answer.headers["content-type"] == "application/json"
    assert list(body) == ["requestID", "clientContextID", "signature", "results", "cachedPlan", "status", "metrics"]
    assert body["requestID"] == answer.headers["x-request-id"]
    assert (body["clientContextID"], body["signature"], body["status"]) == ("mine", {"*": "*"}, "success")
    assert body["results"] == [1, "a", None, None, 1.0, {"b": [2]}]
    assert body["metrics"]["resultCount"] == 6
    assert body["metrics"]["resultSize"] == len('1"a"nullnull1.0{"b":[2]}')


def test_statement_is_read_from_url_form_or_json(shared: DriverNode) -> None:
    """A statement is sent in the URL, as a form, or as JSON; the first of several values is used."""
    by_get = shared.get(f"{SERVICE}?{urlencode({'statement': 'select value 1'})}")
    by_form = form(shared, ("statement", "select value 1"), ("statement", "select value 2"))
    without_type = shared.ask("POST", SERVICE, b"statement=select+value+1")
    json_without_type = shared.post(SERVICE, {"statement": "select value 1"})

    for answer in (by_get, by_form, without_type, json_without_type, ask(shared, "select value 1")):
        assert answer.json()["results"] == [1], answer


@pytest.mark.parametrize("count", [2, 60_000])
def test_a_sum_that_leaves_values_out_warns(shared: DriverNode, count: int) -> None:
    """SUM ignores values of other types with a warning, on the event loop and in a worker process."""
    numbers = f"(select value y from range(1, {count}) y union all select value 'a' from [1] z)"

    body = ask(shared, f"select value sum(x) from {numbers} x").json()

    assert body["results"] == [count * (count + 1) // 2]
    assert [warning["msg"] for warning in body["warnings"]] == [
        "ASX0004: Unsupported type: agg-sum cannot process input type string (in line 1, at column 14)"
    ]


def test_several_statements_give_their_results_in_order(node: DriverNode) -> None:
    """Results of several statements come in order, and later statements see the effects of earlier ones."""
    results = rows(node, "create dataverse a.b; select value 1; use a.b; 2; declare function f(x) { x + 1 }; f(2);")

    assert results == [1, 2, 3]


def test_ddl_only_request_has_no_results(node: DriverNode) -> None:
    """As in AsterixDB, a request with DDL only has no results."""
    body = ask(node, "create dataverse a").json()

    assert set(body) == {"requestID", "status", "metrics"}


@pytest.mark.parametrize("text", ["-- a note", "/* one\n */ // another\n", ";;", "/* a */; ;"])
def test_a_request_of_comments_alone_is_a_success(shared: DriverNode, text: str) -> None:
    """A request that contains only comments or empty statements succeeds without results."""
    answer = ask(shared, text)

    assert (answer.status, set(answer.json())) == (200, {"requestID", "status", "metrics"})


@pytest.mark.parametrize(
    "sent, statement, expected",
    [
        ({"$x": 2, "$y": [1, {"a": None}]}, "[$x + 1, $y]", [3, [1, {"a": None}]]),
        ({"args": [1, "a"]}, "[$1, $2, ?]", [1, "a", 1]),
        ({"$x": 2**70}, "$x", float(2**70)),
        ({"$`a b`": 1, "$x": 3}, "$x", 3),
    ],
)
def test_parameters_are_parsed_as_json_values(
    shared: DriverNode, sent: dict[str, object], statement: str, expected: object
) -> None:
    """Parameters `$x` and `args` are JSON values, also as texts in a form."""
    as_form = form(shared, ("statement", statement), *((name, json.dumps(value)) for name, value in sent.items()))

    assert rows(shared, statement, **sent) == [expected]
    assert as_form.json()["results"] == [expected]


def test_pretty_results_parse_to_the_same_values(shared: DriverNode) -> None:
    """Pretty-printed results parse to the same values."""
    answer = ask(shared, "[{'a': [1, 2]}, 'x']", pretty=True)

    assert b'\n    "a": [\n' in answer.body
    assert answer.json()["results"] == rows(shared, "[{'a': [1, 2]}, 'x']")


def test_statements_of_a_request_share_the_current_time(shared: DriverNode) -> None:
    """All statements of a request see the same current time."""
    first, second = rows(shared, "current_datetime(); current_datetime();")

    assert first == second


@pytest.mark.parametrize(
    "statement, message",
    [
        ("", "ASX0040: No statement provided"),
        ("  ", "ASX0040: No statement provided"),
        ("select value 1;\nselec 2", "ASX1001: Syntax error: In line 2 >>selec 2<< Encountered"),
        (
            "select * from x",
            "ASX1077: Cannot find dataset x in dataverse Default nor an alias with name x (in line 1, at column 15)",
        ),
        ("select * from a.b.x", "ASX1063: Cannot find dataverse with name a.b (in line 1, at column 15)"),
        ("use a.b", "ASX1063: Cannot find dataverse with name a.b (in line 1, at column 5)"),
        ("select value y", "ASX1073: "),
        ("no_such(1)", "ASX1081: Cannot find function with signature no_such(1 argument)"),
        ("$x", "ASX1086: No value for parameter: $x"),
        ("select value x from 1 x", "ASX1091: "),
        ("[" * 10_000, "ASX1079: "),
        ("1 + 'a' + " + "1" * 40, "ASX1001: "),
    ],
)
def test_invalid_statement_is_400_with_code_and_position(shared: DriverNode, statement: str, message: str) -> None:
    """An invalid statement is 400 with AsterixDB's code, message and position."""
    status, error_message = refusal(shared, statement)

    assert status == 400
    assert error_message.startswith(message)


@pytest.mark.parametrize(
    "sent, message",
    [
        ({"mode": "later"}, "ASX0047: Invalid value for parameter 'mode': later"),
        ({"pretty": "maybe"}, "ASX0047: Invalid value for parameter 'pretty': maybe"),
        ({"timeout": "soon"}, "ASX0047: Invalid value for parameter 'timeout': soon"),
        ({"timeout": "0s"}, "ASX0047: Invalid value for parameter 'timeout': 0s"),
        ({"args": 5}, "ASX0047: Invalid value for parameter 'args': 5"),
        ({"dataverse": 7}, "ASX0047: Invalid value for parameter 'dataverse': 7"),
        ({"dataverse": []}, "ASX0047: Invalid value for parameter 'dataverse': []"),
        ({"dataverse": ["a", 1]}, "ASX0047: "),
        ({"dataverse": ""}, "ASX1115: Invalid name for a database object: ''"),
        ({"dataverse": ["a", " b"]}, "ASX1115: Invalid name for a database object: ' b'"),
        ({"statement": ["select 1"]}, "ASX0047: Invalid value for parameter 'statement': "),
    ],
)
def test_invalid_parameter_is_400_with_name_and_value(
    shared: DriverNode, sent: dict[str, object], message: str
) -> None:
    """An invalid parameter is 400 with its name and value."""
    status, error_message = status_and_message(shared.post(SERVICE, {"statement": "select value 1", **sent}))

    assert status == 400
    assert error_message.startswith(message)


@pytest.mark.parametrize("body", [b"{", b"[1]", b'"x"', b'{"statement": "\xff"}', b"{" * 100_00])
def test_malformed_json_is_refused(shared: DriverNode, body: bytes) -> None:
    """Malformed JSON is ASX0048."""
    status, message = status_and_message(shared.ask("POST", SERVICE, body, content_type="application/json"))

    assert (status, message) == (400, "ASX0048: Unable to process JSON content in request")


def test_unsupported_media_type_is_415(shared: DriverNode) -> None:
    """Another media type is 415, and the message names the accepted ones."""
    answer = shared.ask("POST", SERVICE, b"<x/>", content_type="application/xml")

    assert status_and_message(answer)[0] == 415


def test_writing_statement_in_read_only_request_is_refused(node: DriverNode) -> None:
    """GET and `readonly` requests with writing statements are refused before the first one runs."""
    by_get = node.get(f"{SERVICE}?{urlencode({'statement': 'create dataverse a; select value 1'})}")

    message = "ASX0044: CREATE_DATAVERSE statement is not supported in read-only mode"
    assert status_and_message(by_get) == (400, message)
    assert refusal(node, "create dataverse b; create dataverse a", readonly=True) == (400, message)
    assert refusal(node, "use a")[0] == refusal(node, "use b")[0] == 400


def test_compile_only_request_executes_nothing(node: DriverNode) -> None:
    """A compile-only request resolves names and reports errors, but evaluates and changes nothing."""
    assert rows(node, "select value x from range(1, 3) x", compile_only=True) == []
    assert refusal(node, "select * from x", compile_only=True)[0] == 400
    assert rows(node, "create dataverse a", compile_only=True) == []
    assert refusal(node, "use a")[0] == 400


def test_dataverse_parameter_of_a_request_is_used(node: DriverNode) -> None:
    """The dataverse of a request is a string, an array, or a repeated parameter. If it does not exist, the answer has a
    warning.
    """
    rows(node, "create dataverse a.b; create dataverse `a.b`")

    def missing(answer: object) -> str:
        return status_and_message(answer)[1]  # type: ignore[arg-type]

    assert "in dataverse a.b nor" in missing(ask(node, "select * from x", dataverse=["a", "b"]))
    assert "in dataverse `a.b` nor" in missing(ask(node, "select * from x", dataverse="a.b"))
    assert "in dataverse `a.b` nor" in missing(ask(node, "select * from x", dataverse=["a.b"]))
    pairs = [("statement", "select * from x"), ("dataverse", "a"), ("dataverse", "b")]
    assert "in dataverse a.b nor" in missing(form(node, *pairs))
    assert "in dataverse a.b nor" in missing(node.get(f"{SERVICE}?{urlencode(pairs)}"))
    warned = ask(node, "select value 1", dataverse=["no", "such"]).json()
    assert (warned["results"], warned["warnings"]) == (
        [1],
        [{"code": 1, "msg": "ASX1063: Cannot find dataverse with name no.such"}],
    )


CHANGES = (
    "create type T as {}",
    "select value 1; create view v as select value 1",
    "create type here.T as {}",
    "insert into t ({'id': 1})",
    "create dataverse other; create synonym s for t",
    "create function f() { 1 }; use here",
)


@pytest.mark.parametrize("mode", ["immediate", "deferred"])
@pytest.mark.parametrize("statement", CHANGES)
def test_unqualified_change_in_a_missing_dataverse_is_refused(node: DriverNode, statement: str, mode: str) -> None:
    """If the `dataverse` of a request does not exist, changes of unqualified names are refused before the first
    statement runs. Nothing is created in `Default`.
    """
    rows(node, "create dataverse here")
    before = node.get(f"{API}/lake/catalogs/main/schemas").json()

    status, message = refusal(node, statement, dataverse=["he", "re"], mode=mode)

    assert status == 400
    assert message.startswith(
        "ASX1063: Cannot find dataverse with name he.re, which the parameter dataverse names. No statement was run"
    )
    assert node.get(f"{API}/lake/catalogs/main/schemas").json() == before
    assert (
        rows(
            node, "select value d.DatatypeName from Metadata.`Datatype` d where d.DataverseName in ['here', 'Default']"
        )
        == []
    )


@pytest.mark.parametrize(
    "statement",
    [
        "use here; create type T as {}",
        "create dataverse other",
        "drop dataverse here",
        "use Metadata; select value 1",
        "set `compiler.parallelism` `2`",
    ],
)
def test_qualified_change_ignores_a_missing_dataverse_parameter(node: DriverNode, statement: str) -> None:
    """After USE, or with qualified names, a change is executed although the `dataverse` of the request does not exist;
    the answer has a warning.
    """
    rows(node, "create dataverse here")

    body = ask(node, statement, dataverse="heer").json()

    assert (body["status"], body["warnings"][0]["msg"]) == ("success", "ASX1063: Cannot find dataverse with name heer")


def test_long_query_in_a_worker_has_the_same_results(shared: DriverNode) -> None:
    """Long queries give the same results and errors in a worker process, and large answers are streamed."""
    many = rows(shared, "select value {'x': x, 'd': date('2020-01-01')} from range(1, 20000) x")

    assert len(many) == 20_000
    assert many[-1] == {"x": 20_000, "d": "2020-01-01"}
    status, message = refusal(
        shared, "select value x / 0 from range(1, 20000) x where x = 19999 and [x][0] + 9223372036854775807 > 1"
    )
    assert (status, message[:9]) == (400, "ASX0007: ")


def test_a_request_ends_at_its_deadline(shared: DriverNode) -> None:
    """A request that exceeds its deadline is answered with 200 and status `timeout`, as in AsterixDB."""
    status, message = refusal(
        shared, "select value count(*) from range(1, 3000) a, range(1, 3000) b, range(1, 3000) c", timeout="200ms"
    )

    assert (status, message) == (200, "The request took longer than its limit of 0.2 s, and was ended")


def test_statement_up_to_the_body_limit_is_accepted(shared: DriverNode) -> None:
    """Statements up to the server's body limit are accepted, also in a form."""
    long = "select value '" + "x" * 500_000 + "'"

    assert rows(shared, long)[0].startswith("xxx")
    assert form(shared, ("statement", long)).status == 200
    assert shared.ask("POST", SERVICE, b" " * ((1 << 20) + 1), content_type=FORM).status == 413


def test_missing_credentials_are_401_and_non_members_403(shared: DriverNode) -> None:
    """Requests without credentials are refused with 401 and those of users outside of the metalake with 403, before the
    body is read.
    """
    assert ask(shared, "select value 1", user=None).status == 401
    assert ask(shared, "select value 1", user="stranger").status == 403
    assert ask(shared, "selec", user="stranger").status == 403


def test_cancelling_an_unknown_request_is_404(node: DriverNode) -> None:
    """The list of running requests is empty without requests. Cancelling an unknown id is 404; a cancel without an id
    is refused with 400.
    """
    node.done("POST", f"{API}/lake/users", {"name": "ana"})

    assert node.get("/admin/requests/running").json() == []
    assert status_and_message(node.delete("/admin/requests/running?client_context_id=x"))[0] == 404
    assert status_and_message(node.delete("/admin/requests/running", user="ana"))[0] == 400


def test_only_its_user_or_a_service_admin_cancels_a_request(node: DriverNode) -> None:
    """Only the user of a request, or a service admin, sees it in the list and may cancel it, by either id."""
    requests = REQUESTS.of(node.built.services)
    requests.reach_s = 0.0
    for user in ("ana", "ben"):
        node.done("POST", f"{API}/lake/users", {"name": user})
    slow = "select value count(*) from range(1, 3000) a, range(1, 3000) b, range(1, 3000) c"
    at = "/admin/requests/running"
    for who, number in (("ana", 1), ("admin", 2)):
        own = ask(node, slow, user="ana", mode="async", client_context_id=f"mine-{number}").json()

        for by in (f"client_context_id=mine-{number}", f"request_id={own['requestID']}"):
            assert status_and_message(node.delete(f"{at}?{by}", user="ben"))[0] == 404
        assert node.get(at, user="ben").json() == []
        assert [each["requestId"] for each in node.get(at, user="ana").json()] == [own["requestID"]]
        ended = node.delete(f"{at}?client_context_id=mine-{number}", user=who)
        assert (ended.status, ended.json()) == (200, {"cancelled": [own["requestID"]]})
        node.runner.run(asyncio.wait_for(asyncio.gather(*requests._background), 300))


class RowsEngine:
    """A fake engine that returns rows and then fails. It records the number of rows that were read."""

    def __init__(self, rows: list[bytes], failure: Exception | None = None) -> None:
        self.rows, self.failure, self.taken = rows, failure, 0

    async def run(self, _job: EngineJob, **_more: object) -> AsyncIterator[bytes]:
        """Return the rows."""
        for row in self.rows:
            self.taken += 1
            yield row
        if self.failure is not None:
            raise self.failure

    def close(self) -> None:
        """No-op: the fake holds no resources."""


DATA = "create type T as { id: bigint }; create dataset t(T) primary key id"
ROW = json.dumps("x" * 99_998).encode()
LATER = EngineUnavailable("The engine ended in the middle of the statement: try again", number=3102)


@pytest.mark.parametrize(
    "failure,message",
    [
        (LATER, "ASX3102: The engine ended in the middle of the statement: try again"),
        (ServiceUnavailable("The store is busy"), "The store is busy"),
        (RuntimeError("nobody foresaw it"), "An unexpected error occurred; tell your administrator the request id "),
    ],
)
def test_failure_of_a_streamed_result_is_reported_in_the_body(
    node: DriverNode, failure: Exception, message: str
) -> None:
    """If a streamed result fails, the status stays 200, and the end of the body has the error."""
    rows(node, DATA)
    ENGINE.put(node.built.services, RowsEngine([ROW] * 4, failure))  # type: ignore[assignment]

    answer = ask(node, "select value t from t")

    body = answer.json()
    assert (answer.status, len(body["results"]), body["status"]) == (200, 4, "fatal")
    assert [each["msg"].startswith(message) for each in body["errors"]] == [True]
    assert (body["metrics"]["resultCount"], body["metrics"]["errorCount"]) == (4, 1)


def test_failure_of_a_buffered_result_has_its_own_status(node: DriverNode) -> None:
    """Small results are buffered: a failure after the first rows has its own status, and no rows are sent."""
    rows(node, DATA)
    ENGINE.put(node.built.services, RowsEngine([b"1"] * 1000, LATER))  # type: ignore[assignment]

    answer = ask(node, "select value t from t")

    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert status_and_message(answer)[1].startswith("ASX3102: ")


@pytest.mark.parametrize("result_rows,whole", [([b"1"] * 50_000, True), ([ROW] * 2, True), ([ROW] * 3, False)])
def test_result_buffer_is_bounded_in_bytes(node: DriverNode, result_rows: list[bytes], whole: bool) -> None:
    """The buffer is bounded in bytes: many small results are buffered, a few large ones are streamed."""
    rows(node, DATA)
    ENGINE.put(node.built.services, RowsEngine(result_rows))  # type: ignore[assignment]

    answer = ask(node, "select value t from t")

    assert len(answer.json()["results"]) == len(result_rows)
    assert ("content-length" in answer.headers) is whole


def test_cluster_version_and_library_routes_have_answers(shared: DriverNode) -> None:
    """The routes for cluster state, version and libraries have answers."""
    assert shared.get("/admin/cluster").json()["state"] == "ACTIVE"
    assert "limnos" in shared.get("/admin/version").json()["git.build.version"]
    assert shared.get("/admin/udf").json() == []


def test_object_in_another_catalog_is_refused_with_the_reason(shared: DriverNode) -> None:
    """A statement that names an object in another catalog is refused with this reason to users of that catalog, and as
    unknown to others.
    """
    grant(shared, "amy", "use_catalog use_schema", kind="catalog", on="main")
    words = "Cannot find dataverse with name lance.ml: lance is a catalog, and statements read only the catalog main"

    assert refusal(shared, "select * from lance.ml.docs d")[1] == f"ASX1063: {words} (in line 1, at column 15)"
    assert "is a catalog" not in refusal(shared, "select * from lance.ml.docs d", user="amy")[1]
    assert "is a catalog" not in refusal(shared, "select * from nowhere.ml.docs d")[1]


def test_explain_returns_json_or_a_string(node: DriverNode) -> None:
    """EXPLAIN returns JSON, or one string on request."""
    (plan,) = rows(node, "explain select value x from [1] x")
    (text,) = rows(node, "explain select value x from [1] x", plan_format="string")

    assert plan["n"] == "Subquery"
    assert text.splitlines()[0] == "Subquery"
    assert refusal(node, "explain 1", plan_format="xml")[1].startswith("ASX0047")
