# SPDX-License-Identifier: Apache-2.0
"""`limnos sql` in scripts: statements from the command line, files and pipes; output and exit codes."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.client import Client
from limnos.rooms.sqlpp.cli import sql_session
from limnos.rooms.sqlpp.cli.sql_prompt import history_at, names_of
from tests.cli.conftest import CommandResult, Run
from tests.cli.query_service import FakeQueryService, serving
from tests.client.fake import FakeServer

QUERY = "/query/service"


@pytest.fixture
def service() -> Iterator[FakeQueryService]:
    """The fake query service."""
    with serving() as running_service:
        yield running_service


def sql(run: Run, service: FakeQueryService, *words: str) -> CommandResult:
    """Run the command against the fake query service."""
    return run("sql", "--uri", service.uri, "--user", "ana", *words)


def _body(fake: FakeServer) -> dict[str, object]:
    """The body of the last request."""
    body = fake.asked[-1].body
    assert isinstance(body, dict)
    return body


def test_json_output_is_one_document_with_all_rows(run: Run, service: FakeQueryService) -> None:
    """The output is one JSON document with all rows; numbers keep their notation."""
    done = sql(run, service, "-c", "select value x from [1.0, null, {'a': 1}] x")

    assert (done.code, done.result, done.err) == (0, [1.0, None, {"a": 1}], "")
    assert "1.0" in done.out


def test_table_output_has_fields_as_columns(run: Run, service: FakeQueryService) -> None:
    """Fields are columns with their own names. MISSING is an empty cell, NULL is not, nested values are JSON."""
    done = sql(run, service, "--output", "table", "-c", "select value x from [{'a_b': 'x', 'c': [1]}, {'a_b': null}] x")

    assert [line.split() for line in done.out.splitlines()] == [["a_b", "c"], ["x", "[1]"], ["null"]]


def test_table_output_shows_scalars_and_empty_results(run: Run, service: FakeQueryService) -> None:
    """Values that are not objects are in the column `value`. An empty result is reported on standard error."""
    values = sql(run, service, "--output", "table", "-c", "select value x from ['a', 2] x")
    nothing = sql(run, service, "--output", "table", "-c", "select value x from [] x")

    assert [line.split() for line in values.out.splitlines()] == [["value"], ["a"], ["2"]]
    assert (nothing.out, nothing.err) == ("", "no rows\n")


def test_commands_and_files_run_in_order_with_last_dataverse(
    run: Run, service: FakeQueryService, tmp_path: Path
) -> None:
    """Commands and files run in order. Each uses the dataverse of the preceding USE statement, the first that of the
    command line, which a request of its own finds first.
    """
    file = tmp_path / "s.sqlpp"
    file.write_text("select value 3;")
    done = sql(
        run, service, "--dataverse", "`a.b`.c", "-c", "use d; select value 1;", "-c", "use e.f;", "-f", str(file)
    )

    assert done.code == 0
    first, *later = service.asked
    assert first["statement"] == "use `a.b`.c;"
    assert [body.get("dataverse") for body in later] == [["a.b", "c"], "d", ["e", "f"]]
    assert [body["timeout"] for body in later] == ["300s"] * 3


def test_missing_file_is_named_as_missing(run: Run, service: FakeQueryService, tmp_path: Path) -> None:
    """A file of statements that does not exist is an error that says so, and nothing is sent."""
    done = sql(run, service, "-f", str(tmp_path / "nofile.sql"))

    assert (done.code, service.asked) == (2, [])
    assert f"there is no file '{tmp_path / 'nofile.sql'}'" in done.err


def test_standard_input_is_run_as_one_request(
    run: Run, service: FakeQueryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without commands and files, standard input is run as one request."""
    monkeypatch.setattr("sys.stdin", io.StringIO("use a.b;\nselect value 1;\n"))

    done = sql(run, service)

    assert (done.code, done.result, len(service.asked)) == (0, [1], 1)


@pytest.mark.parametrize(
    "formats, sent, out",
    [
        (("csv", "csv; header=present"), ['"a,b"', '"1,\\"x, y\\""'], 'a,b\n1,"x, y"\n'),
        (("adm", "adm"), ['"{ \\"a\\": date(\\"2020-01-01\\") }"'], '{ "a": date("2020-01-01") }\n'),
        (("json-lines", "json"), ['{"a": 1.0}', '"x\\u001b"', "null"], '{"a": 1.0}\nx\x1b\nnull\n'),
        (("lossless-json", "lossless-json"), ['{"bigint": 1}'], '{"bigint": 1}\n'),
    ],
)
def test_results_flag_prints_lines_in_the_servers_format(
    run: Run, fake: FakeServer, formats: tuple[str, str], sent: list[str], out: str
) -> None:
    """With `--results` each result is a line as the server formats it, without JSON quotes."""
    fake.on("POST", QUERY, f'{{"results": [{",".join(sent)}], "status": "success"}}')

    done = run("sql", "--uri", fake.uri, "--results", formats[0], "-c", "select 1;")

    assert (done.code, done.out, done.err) == (0, out, "")
    assert _body(fake)["format"] == formats[1]


def test_plan_is_requested_in_the_output_format(run: Run, fake: FakeServer) -> None:
    """As a table the plan is requested as text and its lines are printed; as JSON the plan is requested as JSON."""
    fake.on("POST", QUERY, {"results": ["Query\n  Block"], "status": "success"})
    people = run("sql", "--uri", fake.uri, "--output", "table", "-c", "explain select value 1;")
    formats = [_body(fake).get("plan-format")]
    programs = run("sql", "--uri", fake.uri, "-c", "explain select value 1;")
    formats.append(_body(fake).get("plan-format"))

    assert people.out == "Query\n  Block\n"
    assert programs.result == ["Query\n  Block"]
    assert formats == ["string", None]


def test_warnings_are_counted_and_timing_is_shown(run: Run, fake: FakeServer) -> None:
    """Warnings that are not listed are counted; with `--timing` the server's execution time is shown."""
    warnings = [{"code": 1, "msg": "ASX0004: Unsupported type"}]
    metrics = {"elapsedTime": "1.5ms", "warningCount": 3}
    fake.on("POST", QUERY, {"results": [1, 2], "status": "success", "warnings": warnings, "metrics": metrics})

    done = run("sql", "--uri", fake.uri, "--timing", "-c", "select 1;")

    assert done.err.splitlines()[:2] == ["warning: ASX0004: Unsupported type", "warning: 2 more warnings"]
    assert re.fullmatch(r"2 rows, \d+\.\d{3} s \(server 1\.5ms\)", done.err.splitlines()[2])
    assert _body(fake)["max-warnings"] == "20"


def test_error_shows_its_position_and_stops_later_statements(run: Run, service: FakeQueryService) -> None:
    """The table output underlines the word; JSON has line and column. Statements after the error are not run."""
    text = "select value 1;\nselect value nope;"
    people = sql(run, service, "--output", "table", "-c", text, "-c", "select 2;")
    programs = sql(run, service, "-c", text)

    assert people.code == programs.code == 1
    assert people.err == (
        "error: ASX1073: Cannot resolve alias reference for undefined identifier nope (in line 2, at column 14)\n"
        "   2 | select value nope;\n"
        "                    ^^^^\n"
    )
    assert (programs.error["code"], programs.error["line"], programs.error["column"]) == ("ASX1073", 2, 14)
    assert len(service.asked) == 2


def test_rows_before_a_failure_are_printed(run: Run, fake: FakeServer) -> None:
    """Rows of a failed statement are printed before the error, and the exit code is that of the error."""
    fake.on(
        "POST",
        QUERY,
        {
            "results": [1, 2],
            "errors": [{"code": 1, "msg": "ASX0007: Overflow"}],
            "status": "fatal",
            "warnings": [{"code": 1, "msg": "ASX1063: Cannot find dataverse with name a"}],
        },
    )

    done = run("sql", "--uri", fake.uri, "-c", "select 1;", "--output", "table")

    assert (done.code, done.out.split()) == (1, ["value", "1", "2"])
    assert done.err == "warning: ASX1063: Cannot find dataverse with name a\nerror: ASX0007: Overflow\n"


def test_statement_timeout_is_recognized_by_http_status(run: Run, fake: FakeServer) -> None:
    """A statement that reached its timeout is recognized by the HTTP status, because its message has no error code."""
    fake.on("POST", QUERY, {"errors": [{"code": 1, "msg": "The request took: too long"}], "status": "timeout"})

    done = run("sql", "--uri", fake.uri, "-c", "select 1;")

    assert (done.code, done.error["code"]) == (1, "timeout")


@pytest.mark.parametrize("status, code", [(401, 4), (403, 4), (503, 6), (500, 1), (404, 1)])
def test_each_refusal_of_the_server_has_its_exit_code(run: Run, fake: FakeServer, status: int, code: int) -> None:
    """An invalid credential, a missing privilege and a busy server each have their exit code."""
    fake.on("POST", QUERY, {"errors": [{"code": 1, "msg": "no"}], "status": "fatal"}, status=status)

    done = run("sql", "--uri", fake.uri, "-c", "select 1;")

    assert done.code == code
    assert done.error["message"] == "no"


def test_unknown_token_is_reported_with_the_server(run: Run, fake: FakeServer, tmp_path: Path) -> None:
    """A token of another store is reported as by every command: the server, and where the token came from."""
    (tmp_path / "ana.token").write_text("lim_1_other")
    message = "The token is not valid: create one with 'limnos create token'"
    fake.on("POST", QUERY, {"errors": [{"code": 1, "msg": message}], "status": "fatal"}, status=401)

    done = run("sql", "--uri", fake.uri, "--token-file", str(tmp_path / "ana.token"), "-c", "select 1;")

    assert str(done.error["message"]).startswith(f"{fake.uri} does not know the token of --token-file")


def test_unreachable_server_gives_the_usual_error(run: Run) -> None:
    """If the server does not answer, the error is the same as that of every command."""
    done = run("sql", "--uri", "http://127.0.0.1:1", "-c", "select 1;")

    assert (done.code, done.error["code"]) == (6, "unavailable")


@pytest.mark.parametrize(
    "words", [("--file", "/no/such"), ("--statement-timeout", "0", "-c", "1;"), ("--dataverse", "a..b", "-c", "1;")]
)
def test_invalid_flags_are_refused_before_a_request(
    run: Run, service: FakeQueryService, words: tuple[str, ...]
) -> None:
    """Invalid flags are refused before a request is sent."""
    done = sql(run, service, *words)

    assert (done.code, service.asked) == (2, [])


def test_interrupt_cancels_the_running_statement(
    run: Run, service: FakeQueryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C cancels the running statement by its client context id, waits for the end, and exits with the code of an
    interrupt. Before that a note has said that the statement takes long, and how to cancel it.
    """
    monkeypatch.setattr(sql_session, "NOTED_S", 0.0)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores SIGINT from its start

    noted = threading.Event()

    def note(text: str, **options: object) -> None:
        print(text, **options)  # type: ignore[call-overload]
        noted.set()

    monkeypatch.setattr(sql_session, "print", note, raising=False)

    def interrupt() -> None:
        while not service.waiting or not noted.is_set():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    try:
        done = sql(run, service, "--output", "table", "-c", "select forever();")
    finally:
        signal.signal(signal.SIGINT, before)

    assert done.code == 130
    assert service.cancelled == [service.asked[0]["client_context_id"]]
    note, *others = done.err.splitlines()
    assert note.startswith("note: the server has not answered yet")
    assert others == ["cancelling", "error: ASX0041: The request was cancelled"]


def test_interrupt_before_the_response_cancels_the_statement(
    run: Run, service: FakeQueryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C before the response begins cancels the statement as well."""
    start = threading.Thread.start

    def start_then_interrupt(thread: threading.Thread) -> None:
        start(thread)
        if thread.name == "limnos-sql":
            while not service.waiting:
                time.sleep(0.01)
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", start_then_interrupt)

    done = sql(run, service, "--output", "table", "-c", "select forever();")

    assert done.code == 130
    assert service.cancelled == [service.asked[0]["client_context_id"]]


def test_the_client_runs_statements(service: FakeQueryService) -> None:
    """The client returns rows as received JSON and sends parameters by name. Cancelling an unknown request returns
    False.
    """
    with Client(service.uri, user="ana") as client:
        answer = client.sqlpp.run("select value 1.0;", dataverse=("a", "b"), parameters={"x": [1]}, timeout_s=2.5)
        cancelled = client.sqlpp.cancel("nobody")

    assert [bytes(row) for row in answer.results or ()] == [b"1.0"]
    assert service.asked == [{"statement": "select value 1.0;", "dataverse": ["a", "b"], "timeout": "2.5s", "$x": [1]}]
    assert cancelled is False


def test_history_file_is_readable_by_owner_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the owner can read the history file, also if it existed before. If it cannot be written, a message says
    so.
    """
    path = tmp_path / "new" / "history"
    path.parent.mkdir()
    path.write_text("")
    path.chmod(0o644)

    history_at(path).append_string("select 1;")
    history_at(tmp_path / "history" / "x").append_string("select 1;")
    link = tmp_path / "link"
    link.symlink_to(path)
    history_at(link)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "history").stat().st_mode) == 0o700
    assert "select 1;" in path.read_text()
    assert "history is not saved" in capsys.readouterr().err


def test_canonical_dataverse_names_are_decoded() -> None:
    """A dataverse name of the metadata is decoded part by part; names that are not canonical are skipped."""
    rows = tuple(json.dumps(row).encode() for row in (["a@.b.c", "t"], ["a@", "t"], ["d", ""]))

    assert list(names_of(rows)) == [(("a.b", "c"), "t"), (("d",), "")]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text, line",
    [
        ("copy t to localfs path('/tmp/x') with {'format': 'json'};", "done: COPY succeeded, without rows to show"),
        ("use d; insert into t ({'a': 1}); drop dataset u;", "done: INSERT, DROP succeeded, without rows to show"),
        ("use d;", "done: the statement succeeded, without rows to show"),
    ],
)
def test_statement_without_rows_has_a_line_for_people(fake: FakeServer, run: Run, text: str, line: str) -> None:
    """A successful statement that returns no rows is not silent on a terminal, and prints nothing for programs."""
    fake.on("POST", "/query/service", {"status": "success", "metrics": {}})

    for_people = run("sql", "--uri", fake.uri, "--output", "table", "-c", text)
    for_programs = run("sql", "--uri", fake.uri, "-c", text)

    assert (for_people.code, for_people.out, for_people.err.strip()) == (0, "", line)
    assert (for_programs.code, for_programs.out, for_programs.err) == (0, "", "")
