# SPDX-License-Identifier: Apache-2.0
"""Request parameters that select the format of the answer: each is applied, or refused by name."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from tests.http.driver import DriverNode
from tests.rooms.sqlpp.http.wire import SERVICE, ask, form, refusal, rows, status_and_message

QUERY = "select value {'d': date('2020-01-02'), 'n': x} from [1, 2] x"


@pytest.mark.parametrize(
    "format_,kind,expected",
    [
        ("json", None, [{"d": "2020-01-02", "n": 1}, {"d": "2020-01-02", "n": 2}]),
        ("clean-json", None, [{"d": "2020-01-02", "n": 1}, {"d": "2020-01-02", "n": 2}]),
        ("ADM", "application/x-adm", ['{ "d": date("2020-01-02"), "n": 1 }', '{ "d": date("2020-01-02"), "n": 2 }']),
        ("text/csv", "text/csv", ['"2020-01-02",1', '"2020-01-02",2']),
        ("text/csv; header=present", "text/csv", ['"d","n"', '"2020-01-02",1', '"2020-01-02",2']),
        ("lossless-json", None, [{"d": {"date": "2020-01-02"}, "n": {"int64": each}} for each in (1, 2)]),
    ],
)
def test_parameter_or_media_type_selects_the_format(
    shared: DriverNode, format_: str, kind: str | None, expected: list[object]
) -> None:
    """A parameter, in JSON or a form, or the media type selects the format. The answer states the type of text
    results.
    """
    for answer in (ask(shared, QUERY, format=format_), form(shared, ("statement", QUERY), ("format", format_))):
        body = answer.json()
        assert (body["results"], body.get("type")) == (expected, kind)
        assert body["metrics"]["resultCount"] == len(expected)


def test_all_kinds_of_results_have_the_requested_format(shared: DriverNode) -> None:
    """Results of the evaluator, of metadata and of worker processes have the requested format."""
    long = rows(shared, "select value {'a': tinyint('1')} from range(1, 20000) x", format="adm")
    metadata = rows(shared, "select value d.DataverseName from Metadata.`Dataverse` d", format="adm")

    assert (len(long), set(long)) == (20000, {'{ "a": 1 }'})
    assert '"Default"' in metadata


@pytest.mark.parametrize(
    "accept,kind",
    [
        ("application/x-adm", "application/x-adm"),
        ("text/html, text/csv;q=0.9", "text/csv"),
        ("*/*", None),
        ("application/json", None),
        ("image/png", None),
    ],
)
def test_accept_header_selects_the_format_without_parameter(shared: DriverNode, accept: str, kind: str | None) -> None:
    """Without a format parameter, the Accept header selects the format; an unknown media type means JSON."""
    by_header = shared.ask("POST", SERVICE, {"statement": QUERY}, accept=accept)
    both = shared.ask("POST", SERVICE, {"statement": QUERY, "format": "json"}, accept=accept)

    assert by_header.json().get("type") == kind
    assert "type" not in both.json()


def test_result_that_csv_cannot_represent_is_an_error(shared: DriverNode) -> None:
    """CSV has one line per object; a result that is no object, or has nested values, is an error."""
    assert refusal(shared, "select value x from [1] x", format="csv") == (
        400,
        "ASX4000: CSV has a line per object, and a result is of type bigint",
    )


def test_the_signature_can_be_left_out(shared: DriverNode) -> None:
    """A parameter omits the signature."""
    assert "signature" in ask(shared, "1", signature=True).json()
    assert "signature" not in ask(shared, "1", signature=False).json()


def test_several_statements_can_be_refused(shared: DriverNode) -> None:
    """If a parameter forbids several statements, they are refused before the first one runs."""
    several = {"multi-statement": False}

    assert refusal(shared, "1; 2", **several) == (400, "ASX0035: Unsupported multiple statements")
    assert rows(shared, "1;", **several) == [1]


def test_warnings_are_limited(shared: DriverNode) -> None:
    """The number of returned warnings is limited; the metrics contain the number of all warnings."""
    for most, listed in (("0", 0), ("1", 1), (None, 1)):
        body = form(
            shared, ("statement", "1"), ("dataverse", "nowhere"), *([("max-warnings", most)] if most else [])
        ).json()
        assert (len(body.get("warnings", [])), body["metrics"]["warningCount"]) == (listed, 1)


@pytest.mark.parametrize(
    "name,value,message",
    [
        ("format", "foo", "ASX0047: Invalid value for parameter 'format': foo"),
        ("signature", "perhaps", "ASX0047: Invalid value for parameter 'signature': perhaps"),
        ("multi-statement", "2", "ASX0047: Invalid value for parameter 'multi-statement': 2"),
        ("max-warnings", "1.5", "ASX0047: Invalid value for parameter 'max-warnings': 1.5"),
        ("max-result-reads", "0", "ASX0047: Invalid value for parameter 'max-result-reads': 0"),
        ("profile", "timings", "ASX0047: Invalid value for parameter 'profile': timings"),
        ("client-type", "odbc", "ASX0047: Invalid value for parameter 'client-type': odbc"),
        (
            "optimized-logical-plan",
            "true",
            "ASX1079: Compilation error: The parameter optimized-logical-plan is not supported: use EXPLAIN",
        ),
    ],
)
def test_unsupported_parameter_values_are_refused(shared: DriverNode, name: str, value: str, message: str) -> None:
    """Unsupported values of parameters are refused by name, in JSON, a form and the URL."""
    assert status_and_message(ask(shared, "1", **{name: value})) == (400, message)
    assert status_and_message(form(shared, ("statement", "1"), (name, value))) == (400, message)
    assert status_and_message(shared.get(f"{SERVICE}?statement=1&{name}={value}")) == (400, message)


@pytest.mark.parametrize(
    "name,reason",
    [("compiler.joinmem", ""), ("output-record-type", ""), ("wait-for-completion-feed", ": feeds are not supported")],
)
def test_unknown_options_are_refused(shared: DriverNode, name: str, reason: str) -> None:
    """Unknown options are refused, except for options that change no result."""
    status, message = refusal(shared, f"set `{name}` 'x'; 1")

    assert (status, message.partition(" (in")[0]) == (
        400,
        f"ASX1079: Compilation error: Query parameter {name} is not supported{reason}",
    )
    assert rows(shared, "set `compiler.sortmemory` '1MB'; set `IMPORT-private-functions` 'true'; 1") == [1]


ORDERED_FIELDS = "compiler.ordered.fields"


@pytest.mark.parametrize("source", ["""[parse_json('{"x": 3}')]""", "range(1, 30000)"])
def test_field_order_is_selected_by_parameter_or_set(shared: DriverNode, source: str) -> None:
    """The request parameter and the option of SET select the field order, on the event loop and in worker processes.
    The option takes precedence.
    """
    query = f"select max(d.x) as a, count(*) as b from {source} d"
    option = f"set `{ORDERED_FIELDS}` 'FALSE'; "
    by_url = shared.get(f"{SERVICE}?{urlencode({'statement': query, ORDERED_FIELDS: 'false'})}")
    answers = [
        rows(shared, query, **{ORDERED_FIELDS: False}),
        form(shared, ("statement", query), (ORDERED_FIELDS, "false")).json()["results"],
        by_url.json()["results"],
        rows(shared, option + query),
        rows(shared, option + query, **{ORDERED_FIELDS: "true"}),
    ]

    assert [list(row) for (row,) in answers] == [["b", "a"]] * 5
    for ordered in (rows(shared, query), rows(shared, query, **{ORDERED_FIELDS: "true"})):
        assert list(ordered[0]) == ["a", "b"]
    metadata = "select d.Hidden as a, d.DataverseName as b from Metadata.`Dataverse` d limit 1"
    assert [list(each) for each in rows(shared, f"{option} set `{ORDERED_FIELDS}` 'true'; {metadata}")] == [["b"]]


def test_field_order_accepts_only_booleans(shared: DriverNode) -> None:
    """The parameter and the option of the field order accept only true and false."""
    assert refusal(shared, "1", **{ORDERED_FIELDS: "perhaps"}) == (
        400,
        f"ASX0047: Invalid value for parameter '{ORDERED_FIELDS}': perhaps",
    )
    status, message = refusal(shared, f"set `{ORDERED_FIELDS}` 'perhaps'; 1")
    assert (status, message.partition(" (in")[0]) == (
        400,
        f"ASX1079: Compilation error: The option {ORDERED_FIELDS} takes true or false, and has perhaps",
    )


@pytest.mark.parametrize("depth", [400, 600])
@pytest.mark.parametrize("format_", ["json", "adm", "csv", "lossless-json", "lossless-adm"])
def test_deeply_nested_values_cause_no_server_error(shared: DriverNode, format_: str, depth: int) -> None:
    """Deeply nested values in a parameter are refused or returned in every format, without a server error."""
    value: object = 1
    for _ in range(depth):
        value = {"a": value}
    answer = ask(shared, "select value $1", format=format_, args=[value])

    assert answer.status in (200, 400), answer.body
    assert (depth == 400 or "too deep" in status_and_message(answer)[1]) is True
