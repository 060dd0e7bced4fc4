# SPDX-License-Identifier: Apache-2.0
"""The worksheet: statements run by POST only, under the user's rights, with results, plan, warnings and errors."""

from __future__ import annotations

import asyncio
import time

import pytest

from limnos.access.authentication import Credential
from limnos.model.errors import BadRequest
from limnos.rooms.console.http.protocol import ConsoleProtocol
from limnos.rooms.console.http.site import ConsoleSite
from limnos.rooms.sqlpp.services import worksheet as service
from limnos.rooms.sqlpp.services.execution.engine import ENGINE, NoSqlppEngine
from limnos.rooms.sqlpp.services.requests.running_requests import REQUESTS
from limnos.rooms.sqlpp.services.worksheet import WorksheetRequest, worksheet_run
from limnos.services.request.context import Context
from tests.http.driver import API, DriverNode
from tests.rooms.console.http.visitor import ConsoleVisitor, PageReader, text_of

PAGE = "/console/worksheet"
BOTH_HINTS = (
    "Names in statements begin below the catalog: leave out main."
    " raw is a reserved word. If you mean a name, write it in back-quotes: `raw`"
)
DATAVERSES = "SELECT VALUE d.DataverseName FROM Metadata.`Dataverse` AS d ORDER BY d.DataverseName;"


def run(visitor: ConsoleVisitor, text: str, *, status: int = 200, **fields: str) -> PageReader:
    """Run a text; the page must have a status."""
    answer = visitor.post(PAGE, {"text": text, **fields})
    assert answer.status == status, text_of(answer)
    return PageReader(text_of(answer))


def test_results_are_shown_as_a_table(admin: ConsoleVisitor) -> None:
    """Objects are shown with a column per field, which some may lack; other results have one column."""
    page = run(admin, 'SELECT VALUE r FROM [{"a": 1, "b": "<b>x</b>"}, {"a": null, "c": [1, 2]}, 7] AS r;')

    assert page.faults == []
    assert page.tags.count("tr") == 4
    assert page.tags.count("th") == 4
    for words in ("<b>x</b>", "null", "missing", "[1,2]", "3 results in"):
        assert words in page.text
    assert "b" not in page.tags


def test_results_are_shown_as_json_and_query_plan(admin: ConsoleVisitor) -> None:
    """JSON is indented, and the plan of a query is shown without running it; a change has no plan."""
    assert '{ "a": 1 }' in run(admin, "SELECT VALUE {'a': 1};", view="json").text
    plan = run(admin, "SELECT VALUE 12345 + 1;", view="plan")
    assert "12346" not in plan.text
    assert "Results" in plan.text
    assert "Only queries have a plan" in run(admin, "CREATE DATAVERSE x;", view="plan", mode="change", status=400).text


def test_change_without_the_option_is_not_executed(admin: ConsoleVisitor) -> None:
    """A change needs the option that allows it; without it nothing is changed."""
    refusal = run(admin, "CREATE DATAVERSE made;", status=400).text
    assert "not supported in read-only mode" in refusal
    assert "CREATE DATAVERSE made;" in refusal
    assert 'choose "Reads and changes"' in refusal
    assert admin.get("/console/o/namespace/lake/main/made").status == 404

    assert "gave no results" in run(admin, "CREATE DATAVERSE made;", mode="change").text
    assert admin.get("/console/o/namespace/lake/main/made").status == 200


def test_link_fills_the_field_without_running_the_statement(admin: ConsoleVisitor) -> None:
    """A link with a text fills the field with it, and does not run it."""
    page = text_of(admin.get(f"{PAGE}?text=DROP+DATAVERSE+main.raw%3B%3C/textarea%3E&mode=change"))

    assert "DROP DATAVERSE main.raw;&lt;" in page
    assert "Results" not in PageReader(page).text
    assert admin.get("/console/o/namespace/lake/main/raw").status == 200


def test_statements_run_with_the_rights_of_the_user(lake: DriverNode) -> None:
    """A user who is not in the metalake is refused. A member without rights sees no names and cannot change
    anything.
    """
    lake.done("POST", f"{API}/lake/users", {"name": "ana"})
    ana, stranger = (ConsoleVisitor(lake).sign_in(user) for user in ("ana", "stranger"))

    assert "raw" in run(ConsoleVisitor(lake).sign_in(), DATAVERSES).text
    assert "Default" in run(ana, DATAVERSES).text
    assert "raw" not in run(ana, DATAVERSES, view="json").text.partition("Results")[2]
    run(ana, "CREATE DATAVERSE made;", mode="change", status=403)
    assert ConsoleVisitor(lake).sign_in().get("/console/o/namespace/lake/main/made").status == 404
    for status, text in ((403, "SELECT VALUE 1;"), (403, DATAVERSES)):
        run(stranger, text, status=status)


def test_failed_statement_shows_error_and_retains_text(admin: ConsoleVisitor) -> None:
    """An error is shown with its code and position, and the field keeps the text."""
    page = run(admin, "SELEKT <1>;", status=400)

    assert "ASX1001" in page.text
    assert "SELEKT <1>;" in page.text


def test_many_results_are_cut(admin: ConsoleVisitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first rows are shown with a note that more exist. The number of rows and of bytes is limited."""
    many = "SELECT VALUE r FROM range(1, 20000) AS r;"
    page = run(admin, many)
    monkeypatch.setattr(service, "BYTES_MAX", 30)
    small = run(admin, many)

    assert page.tags.count("tr") == service.ROWS_MAX + 1
    assert "The first 500 results" in page.text
    assert "There are more." in page.text
    assert small.tags.count("tr") == 20


def test_change_after_a_long_result_is_carried_out(admin: ConsoleVisitor) -> None:
    """A text with changes runs to its end, also if an earlier statement has more results than the page shows."""
    page = run(admin, "SELECT VALUE r FROM range(1, 20000) AS r; CREATE DATAVERSE made;", mode="change")

    assert "There are more." in page.text
    assert admin.get("/console/o/namespace/lake/main/made").status == 200


def test_deep_results_are_not_indented(admin: ConsoleVisitor) -> None:
    """Deeply nested results are not indented, because indentation would turn a few bytes into megabytes."""
    lets = "".join(f", a{number} AS [a{number - 1}]" for number in range(1, 300))
    answer = admin.post(
        PAGE, {"text": f"WITH a0 AS [1]{lets} SELECT VALUE a299 FROM range(1, 400) AS r;", "view": "json"}
    )

    assert answer.status == 200
    assert len(answer.body) < 4 << 20
    assert "[" * 300 in text_of(answer)


def test_wide_results_are_cut(admin: ConsoleVisitor) -> None:
    """Columns beyond sixty are counted and not shown."""
    fields = ", ".join(f"'f{number}': 1" for number in range(70))

    assert "10 more columns are not shown" in run(admin, f"SELECT VALUE {{{fields}}};").text


def test_statement_is_cancelled_at_its_deadline(admin: ConsoleVisitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement that exceeds its deadline is cancelled, and the page advises using a client."""
    monkeypatch.setattr(service, "TIMEOUT_S", 0.3)
    slow = "SELECT VALUE count(*) FROM range(1, 900000) AS a, range(1, 900000) AS b;"

    assert "limnos sql" in run(admin, slow, status=400).text


def test_deadline_during_engine_start_offers_a_retry(lake: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the deadline passes while the engine starts, the page says so without an error, keeps the text, and has a
    button that runs the statement again.
    """

    class StartingEngine(NoSqlppEngine):
        is_starting = True

    monkeypatch.setattr(service, "TIMEOUT_S", 0.3)
    ENGINE.put(lake.built.services, StartingEngine())
    slow = "SELECT VALUE count(*) FROM range(1, 900000) AS a, range(1, 900000) AS b;"

    page = run(ConsoleVisitor(lake).sign_in(), slow, status=503)

    for words in ("The engine of SQL++ is starting", slow, "Run again"):
        assert words in page.text
    assert ("role", "alert") not in page.attributes


@pytest.mark.parametrize(
    "text,hint",
    [
        ("SELEC VALUE 1;", "Did you mean SELECT instead of SELEC?"),
        ("SELECT 1 AS order;", "order is a reserved word"),
        ("SELECT VALUE d FROM main.`raw`.flights AS d;", "Names in statements begin below the catalog: leave out main"),
        ("SELECT VALUE 1;\r\nSELECT VALUE d FROM main.raw.nyc.flights AS d;", BOTH_HINTS),
        ("SELECT VALUE d FROM `main` . raw.flights AS d;", BOTH_HINTS),
        (
            "SELECT VALUE d.order FROM [1] AS d;",
            "order is a reserved word. If you mean a name, write it in back-quotes",
        ),
    ],
)
def test_errors_have_hints_about_probable_mistakes(admin: ConsoleVisitor, text: str, hint: str) -> None:
    """An error has a hint about the probable mistake."""
    page = run(admin, text, status=400).text
    assert hint in page, page


def test_user_can_cancel_only_own_statements(lake: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The button cancels the user's own statement. The id of another user's statement cancels nothing."""
    lake.done("POST", f"{API}/lake/users", {"name": "ana"})
    requests = REQUESTS.of(lake.built.services)
    monkeypatch.setattr(requests, "reach_s", 0.0)
    admin, ana = ConsoleVisitor(lake).sign_in(), ConsoleVisitor(lake).sign_in("ana")
    stopped: list[str] = []
    real = requests.cancel

    async def cancel(by: str, value: str, *, requester: object, everybody: bool) -> list[str]:
        stopped.append(f"{by} {value} {everybody}")
        return await real(by, value, requester=requester, everybody=everybody)  # type: ignore[arg-type]

    monkeypatch.setattr(requests, "cancel", cancel)
    assert ana.post(f"{PAGE}/cancel", {"id": "x"}).status == 404
    assert admin.post(f"{PAGE}/cancel", {"id": ""}).status == 404
    assert stopped == ["client_context_id x False"]


def test_cancelled_statement_reports_its_cancellation(lake: DriverNode) -> None:
    """A running statement is cancelled by its id and reports that."""
    ctx = Context(lake.built.services, Credential(user="admin", expires_ms=1 << 62), "r")
    text = "SELECT VALUE count(*) FROM range(1, 900000) AS a, range(1, 900000) AS b;"
    request = WorksheetRequest(text=text, may_change=False, is_plan=False, own_id="mine", request_id="r")

    async def both() -> str:
        running = asyncio.create_task(worksheet_run(ctx, request))
        while not any(True for _ in REQUESTS.of(lake.built.services).of(None)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        await service.worksheet_cancel(ctx, "mine")
        with pytest.raises(BadRequest) as caught:
            await running
        return str(caught.value)

    assert "cancelled" in lake.runner.run(both())


def test_worksheet_is_missing_without_sqlpp(admin: ConsoleVisitor) -> None:
    """A server without SQL++ has no worksheet."""
    application = admin.node.built.application
    protocol = ConsoleProtocol(ConsoleSite(allows_name_only=True, rooms_off=frozenset({"sqlpp"})))
    application.protocols = [protocol if each.name == "console" else each for each in application.protocols]

    assert admin.get(PAGE).status == 404
    assert admin.post(PAGE, {"text": "SELECT VALUE 1;"}).status == 404


def test_results_can_be_downloaded_as_csv(admin: ConsoleVisitor) -> None:
    """Results can be downloaded as a CSV file with a header. Nested values are JSON, and null and missing are empty."""
    text = 'SELECT VALUE r FROM [{"a": 1, "b": "x, \\"y\\""}, {"a": null, "c": [1, 2]}, 7] AS r;'

    answer = admin.post(PAGE, {"text": text, "view": "csv"})

    assert answer.status == 200
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="results.csv"'
    assert answer.headers["cache-control"] == "no-store"
    assert answer.body.decode().split("\r\n") == ["a,b,c,value", '1,"x, ""y""",,', ',,"[1,2]",', ",,,7", ""]


def test_name_of_a_truncated_csv_file_has_the_result_count(admin: ConsoleVisitor) -> None:
    """The name of an incomplete CSV file has the number of its results. An error is a page, not a file."""
    answer = admin.post(PAGE, {"text": "SELECT VALUE n FROM range(1, 600) AS n;", "view": "csv"})

    assert answer.headers["content-disposition"] == 'attachment; filename="first-500-results.csv"'
    assert "ASX1001" in run(admin, "SELEKT <1>;", view="csv", status=400).text


def test_hints_name_reserved_words_and_similar_datasets(admin: ConsoleVisitor) -> None:
    """The hint of an error names a reserved word, or similar dataset names that the user may see."""
    reserved = run(admin, "SELECT VALUE f FROM raw.flights AS f;", status=400).text
    misspelt = run(admin, "SELECT VALUE f FROM `raw`.flihgts AS f;", status=400).text
    other = run(admin, "SELECT VALUE f FROM `raw`.zebra AS f;", status=400).text

    assert "write it in back-quotes: `raw`" in reserved
    assert "Did you mean flights?" in misspelt
    assert "All datasets that you may read" in other


def test_hints_do_not_reveal_hidden_datasets(lake: DriverNode) -> None:
    """Hints for a user without rights contain no dataset name."""
    lake.done("POST", f"{API}/lake/users", {"name": "ana"})
    ana = ConsoleVisitor(lake).sign_in("ana")

    answer = ana.post(PAGE, {"text": "SELECT VALUE f FROM `raw`.flihgts AS f;"})

    assert answer.status in {400, 403, 404}
    assert "flights" not in PageReader(text_of(answer)).text


def test_headings_are_aligned_with_numeric_columns(admin: ConsoleVisitor) -> None:
    """The heading of a column of numbers is aligned like the numbers."""
    answer = admin.post(PAGE, {"text": 'SELECT VALUE r FROM [{"a": 1, "b": "x"}] AS r;'})

    assert '<th scope="col" class="number">a</th><th scope="col">b</th>' in text_of(answer)


def test_hints_of_long_lines_need_no_quadratic_time(admin: ConsoleVisitor) -> None:
    """The search for a name in front of an error is bounded: a line of 60,000 letters does not take quadratic time."""
    began = time.thread_time()
    for text in (f"SELECT VALUE {'a' * 60_000}+ . raw;", f"SELECT VALUE {'a' * 60_000}+ order;"):
        run(admin, text, status=400)

    assert time.thread_time() - began < 3
