# SPDX-License-Identifier: Apache-2.0
"""Tables fit terminals of 60 to 200 columns: ids, times and names stay whole."""

from __future__ import annotations

import pytest

from limnos.cli import tables

RUN_ID = "0192f0c1-7b1e-7cc3-98c4-dc0c0c07398f"
STARTED = "2026-11-27T07:56:38.316Z"
COLUMNS = ["run", "pipeline", "state", "started_at", "user", "message"]
ROWS = [
    {
        "run": RUN_ID,
        "pipeline": f"pipeline_{number}",
        "state": "failed",
        "started_at": STARTED,
        "user": "ana",
        "message": "the expectation 'fare is positive' failed for 12 rows of step load_trips, see findings",
    }
    for number in range(3)
]


@pytest.mark.parametrize("width", [60, 80, 100, 160, 200])
def test_table_fits_with_ids_and_times_whole(width: int) -> None:
    """At each width no line is longer than the terminal, and each id and each printed time is whole."""
    table = tables.layout(ROWS, {column: column for column in COLUMNS}, width=width)
    text = "\n".join(table.lines)

    assert max(tables.text_width(line) for line in table.lines) <= width
    assert text.count(RUN_ID) == len(ROWS)
    assert text.count("2026-11-") == text.count(STARTED)
    assert {"run", "state"} & set(table.left_out) == set()


def test_texts_are_cut_before_columns_are_left_out() -> None:
    """A long text is cut to fit first; then columns are left out, the spare ones first."""
    wide = tables.layout(ROWS, {column: column for column in COLUMNS}, width=160)
    narrow = tables.layout(ROWS, {column: column for column in COLUMNS}, width=80)

    assert (wide.left_out, "…" in wide.lines[1]) == ((), True)
    assert narrow.left_out
    assert "started_at" in narrow.left_out


def test_column_with_one_value_is_left_out_first() -> None:
    """Of two columns of equal priority the one that is the same in each row goes first, and `did` never goes."""
    rows = [
        {"at": STARTED, "user": "ana", "did": f"take-lineage-{row}", "kind": "table", "detail": f"tag {row}"}
        for row in range(3)
    ]
    columns = {column: column for column in rows[0]}

    narrow = tables.layout(rows, columns, width=56)
    narrowest = tables.layout(rows, columns, width=50)

    assert narrow.left_out == ("kind",)
    assert "did" not in narrowest.left_out


def test_narrow_columns_return_where_a_wide_one_is_left_out() -> None:
    """A long name in a column of high priority does not take the columns after it along: those that fit are there."""
    rows = [{**row, "pipeline": "a_pipeline_with_a_very_long_name_for_hourly_loads_of_nyc_flights"} for row in ROWS]
    table = tables.layout(rows, {column: column for column in COLUMNS}, width=100)

    assert table.left_out == ("pipeline",)
    assert max(tables.text_width(line) for line in table.lines) <= 100
    assert "\n".join(table.lines).count(STARTED) == len(ROWS)


def test_rows_become_blocks_if_necessary_columns_do_not_fit() -> None:
    """If the necessary columns alone are too wide, each row is a block of lines with whole names."""
    name = "main.`a namespace with a long name`.another_namespace.a_table_with_a_long_name"
    table = tables.layout(
        [{"name": name, "kind": "table", "comment": "x " * 60}], {c: c for c in ("name", "kind", "comment")}, width=60
    )

    assert table.lines[0] == f"name     {name}"
    assert all(tables.text_width(line) <= 60 for line in table.lines[1:])


def test_unlimited_width_leaves_out_and_cuts_nothing() -> None:
    """Without a width, as with `--wide` or in a pipe, every text is whole."""
    table = tables.layout(ROWS, {column: column for column in COLUMNS}, width=None)

    assert table.left_out == ()
    assert ROWS[0]["message"] in table.lines[1]


def test_widths_count_cells_of_the_terminal() -> None:
    """Wide characters take two cells and combining ones none, so columns stay aligned."""
    rows = [{"name": "表", "kind": "table"}, {"name": "e\u0301t\u00e9", "kind": "view"}]
    lines = tables.layout(rows, {"name": "name", "kind": "kind"}, width=80).lines

    assert {tables.text_width(line.rpartition(" ")[0]) for line in lines} == {5}
    assert tables.cut("a long text", 8, ellipsis="...") == "a lon..."


def test_column_of_states_stays_unless_all_rows_have_the_ordinary_one() -> None:
    """The outcome stays beside longer columns if a row was refused, and goes first if all were done."""
    rows = [
        {"at": STARTED, "user": "ben", "outcome": outcome, "did": "list-missing-privileges", "path": "main.ports"}
        for outcome in ("done", "refused")
    ]
    columns = {column: column for column in rows[0]}

    differing = tables.layout(rows, columns, width=72)
    same = tables.layout([rows[0], rows[0]], columns, width=72)
    refused = tables.layout([rows[1], rows[1]], columns, width=72)

    assert "refused" in "\n".join(differing.lines)
    assert "refused" in "\n".join(refused.lines)
    assert same.left_out == ("outcome",)


def test_chosen_columns_are_never_left_out() -> None:
    """Columns that the caller chose become blocks where they do not fit beside each other."""
    rows = [{"at": STARTED, "user_name": "someone", "object_path": "main.sales.orders"}]

    table = tables.layout(rows, {column: column for column in rows[0]}, width=40, keeps_columns=True)

    assert table.left_out == ()
    assert "user_name    someone" in table.lines
