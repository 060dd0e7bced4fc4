# SPDX-License-Identifier: Apache-2.0
"""Work on statements in worker processes: parsing, binding and evaluation, and the decoding of their answers."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language import EmptyNameResolver, bind, offloaded_work, parse
from limnos.rooms.sqlpp.language.binder import BoundQuery, BoundView
from limnos.rooms.sqlpp.language.binding import NameLookup, QueryBinding, ResolvedNames, UnparsedQuery, parse_query_once
from limnos.rooms.sqlpp.language.errors import BudgetSpent, SqlppError, TextPosition
from limnos.rooms.sqlpp.language.offloaded_work import OFFLOADED_WORK
from limnos.rooms.sqlpp.language.plan import EncodedPlan, wire
from limnos.rooms.sqlpp.language.tree import QueryStatement

LONG = "select value 1;\n  /*+ hint */ create dataverse a;\n select value [?, ?]; select value ?"


def bound_apart(binding: QueryBinding, known: ResolvedNames) -> tuple[bytes, ...]:
    """Return the result of the offloaded work."""
    return tuple(OFFLOADED_WORK[offloaded_work.BIND](offloaded_work.packed_binding(binding, known)))


def evaluated(text: str) -> list[bytes]:
    """Return the result of the offloaded work for a query over constants."""
    statement = parse(text)[0].statement
    assert isinstance(statement, QueryStatement)
    bound_query = bind(statement.body, EmptyNameResolver())
    return OFFLOADED_WORK[offloaded_work.EVALUATE](
        wire.encode(bound_query.expression), str(bound_query.slots).encode(), offloaded_work.PLAIN, b"{}"
    )


def test_parsed_text_is_described_by_statement_spans() -> None:
    """A text is described by the spans of its statements; each span, parsed by itself, gives the same statement, with
    positions and numbered parameters.
    """
    done, encoded_spans = OFFLOADED_WORK[offloaded_work.PARSE](LONG.encode())
    spans = offloaded_work.spans_of(encoded_spans)

    assert done == b"done"
    assert [span.kind for span in spans] == ["QueryStatement", "CreateDataverse", "QueryStatement", "QueryStatement"]
    separate_statements = [parse(LONG[span.start : span.end], span)[0].statement for span in spans]
    assert separate_statements == [each.statement for each in parse(LONG)]
    for span, whole in zip(spans, parse(LONG), strict=True):
        if isinstance(whole.statement, QueryStatement):
            unparsed = UnparsedQuery(span.place, LONG[span.start : span.end], span.parameters)
            assert parse_query_once(unparsed) == whole.statement.body


def test_error_in_a_part_has_its_position_in_the_whole_text() -> None:
    """An error in a part has the line and position in the whole text."""
    spans = offloaded_work.spans_of(OFFLOADED_WORK[offloaded_work.PARSE](LONG.encode())[1])

    with pytest.raises(SqlppError) as whole:
        parse("select value 1;\n  select 2 3")
    with pytest.raises(SqlppError) as part:
        parse("select 2 3", spans[1]._replace(place=TextPosition(2, 3)))

    assert part.value.place == whole.value.place
    assert part.value.message.replace(">>select", ">>  select") == whole.value.message


def test_unparsable_text_is_refused_with_number_and_position() -> None:
    """A text that cannot be parsed is refused with number and position."""
    refused, encoded_refusal = OFFLOADED_WORK[offloaded_work.PARSE](b"select value 1;\nselect from")
    error = offloaded_work.refusal_of(encoded_refusal)

    assert refused == b"refused"
    assert (error.number, error.place) == (1001, TextPosition(2, 11))


def test_binding_returns_needed_names_and_then_the_plan() -> None:
    """Binding returns the names that it needs; with these, it returns the same plan as the binder in this process."""
    body = UnparsedQuery(TextPosition(1, 1), "select value x from v x")
    known = ResolvedNames()
    binding = QueryBinding(body=body, dataverse=("Default",), parameters={}, moment={})

    outcome, encoded_lookups = bound_apart(binding, known)
    assert outcome == b"wanted"
    (question,) = offloaded_work.decode_lookups(encoded_lookups)
    assert question == NameLookup("dataset", ("Default",), "v")
    known.facts[question] = BoundView(("Default",), "v", UnparsedQuery(TextPosition(1, 1), "select value 7"))
    done, plan, rest = bound_apart(binding, known)

    assert done == b"done"
    bound_query = offloaded_work.bound_of(plan, rest, at=TextPosition(1, 1))
    assert bound_query.reads == ()
    assert isinstance(bound_query.expression, EncodedPlan)
    assert wire.encode(bound_query.expression) == plan
    assert OFFLOADED_WORK[offloaded_work.EVALUATE](
        plan, str(bound_query.slots).encode(), offloaded_work.PLAIN, b"{}"
    ) == [
        b"done",
        b"[]",
        b"7",
    ]


def test_binding_refuses_unresolvable_names() -> None:
    """An unresolvable name is refused with the binder's message."""
    outcome, response = bound_apart(
        QueryBinding(
            body=UnparsedQuery(TextPosition(1, 1), "nobody(1)"), dataverse=("Default",), parameters={}, moment={}
        ),
        ResolvedNames(),
    )
    while outcome == b"wanted":
        outcome, response = bound_apart(
            QueryBinding(
                body=UnparsedQuery(TextPosition(1, 1), "nobody(1)"), dataverse=("Default",), parameters={}, moment={}
            ),
            ResolvedNames(dict.fromkeys(offloaded_work.decode_lookups(response))),
        )

    assert outcome == b"refused"
    assert "Cannot find function" in offloaded_work.refusal_of(response).message


@pytest.mark.parametrize("fact", [None, BoundView(("Default",), "v", UnparsedQuery(TextPosition(1, 1), "1"))])
def test_text_is_not_parsed_if_expressions_are_counted(fact: object) -> None:
    """If expressions are counted, unparsed text of the query or a view raises BudgetSpent, so that a process parses
    it.
    """
    text = "select value x from v x"
    body = parse(text)[0].statement.body if fact else UnparsedQuery(TextPosition(1, 1), text)  # type: ignore[attr-defined]

    with pytest.raises(BudgetSpent):
        QueryBinding(body=body, dataverse=("Default",), parameters={}, moment={}).bind(
            ResolvedNames({NameLookup("dataset", ("Default",), "v"): fact}), nodes_max=2000
        )


def test_results_are_returned_in_chunks_of_complete_lines() -> None:
    """Results come in chunks of complete lines, so that the reader needs only one copy."""
    done, warnings, *parts = evaluated("select value repeat('x', 100000) from range(1, 10) y")

    assert (done, warnings) == (b"done", b"[]")
    assert len(parts) == 4
    assert [line for part in parts for line in offloaded_work.lines_of(part)] == [b'"' + b"x" * 100_000 + b'"'] * 10


@pytest.mark.parametrize(
    "text",
    [
        "select value array_repeat(repeat('x', 1000), 100)",
        "select value repeat('x', 1000) from range(1, 100) y",
        "select value array_repeat('\\u0001\\u0001', 9000)",
    ],
)
def test_result_size_is_limited_before_writing(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of results is limited, for one value or many, by the text to be written, before it is written."""
    monkeypatch.setattr(offloaded_work, "RESULT_BYTES_MAX", 50_000)

    refused, encoded_refusal = evaluated(text)

    assert refused == b"refused"
    assert "make it select less" in offloaded_work.refusal_of(encoded_refusal).message


def test_encoded_plan_is_not_decoded_inside_another_plan() -> None:
    """An encoded plan is not decoded as a node of another plan."""
    bound_query = BoundQuery(EncodedPlan(TextPosition(1, 1), b"x"), 0, ())

    assert wire.encode(bound_query.expression) == b"x"
    with pytest.raises(wire.BadPlan):
        wire.decode(b'{"n":"EncodedPlan","at":[1,1],"data":"x"}')


def test_warnings_of_an_evaluation_come_before_its_results() -> None:
    """Warnings have their numbers, texts and positions and precede the results."""
    done, encoded_warnings, line = evaluated("array_sum([1, 'a'])")

    (warning,) = offloaded_work.warnings_of(encoded_warnings)
    assert (done, line) == (b"done", b"1")
    assert (
        warning.text == "ASX0004: Unsupported type: agg-sum cannot process input type string (in line 1, at column 1)"
    )


def test_decoded_warning_does_not_repeat_its_position() -> None:
    """A decoded warning whose message has the position does not add it again."""
    warning = SqlppError(1, "Cannot read (in line 2, at column 3)", TextPosition(2, 3), True)
    (decoded,) = offloaded_work.warnings_of(offloaded_work.packed_warnings([warning]))
    assert decoded.text == warning.text
