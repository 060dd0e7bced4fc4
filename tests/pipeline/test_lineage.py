# SPDX-License-Identifier: Apache-2.0
"""Lineage as values: encoded in a run's record and decoded, and the event made from it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.client import ClientError
from limnos.pipeline.engine.plan_columns import ColumnOrigin
from limnos.pipeline.lineage import (
    TOLD_MAX,
    LineageSource,
    QueryLineage,
    decode_lineage,
    encode_lineage,
    lineage_event,
    lineage_of_tables,
    report_lineage,
    table_source,
)

ORDERS, FILE = table_source(("main", "raw", "orders")), LineageSource("file", "/data/orders.csv")
FOUND = QueryLineage(
    inputs=(ORDERS, FILE),
    columns={
        "id": (ColumnOrigin(ORDERS, "id", "IDENTITY", True),),
        "twice": (
            ColumnOrigin(FILE, "amount", "TRANSFORMATION", True),
            ColumnOrigin(ORDERS, "day", "CONDITIONAL", False),
        ),
    },
    rows=(ColumnOrigin(ORDERS, "day", "FILTER", False),),
)
TABLE = ("main", "marts", "x y")
_names = st.text(max_size=8)
_sources = st.one_of(
    st.builds(LineageSource, _names, _names),
    st.lists(_names, min_size=2, max_size=4).map(lambda parts: table_source(tuple(parts))),
)


@st.composite
def _lineages(draw: st.DrawFn) -> QueryLineage:
    inputs = draw(st.lists(_sources, max_size=4, unique=True))
    one = st.builds(
        ColumnOrigin,
        st.sampled_from(inputs or [ORDERS]),
        _names,
        st.sampled_from(["IDENTITY", "FILTER"]),
        st.booleans(),
    )
    origins = st.lists(one, min_size=1, max_size=3).map(tuple)
    return QueryLineage(inputs=tuple(inputs), columns=draw(st.dictionaries(_names, origins)), rows=draw(origins))


@given(_lineages())
def test_lineage_in_record_round_trip(lineage: QueryLineage) -> None:
    """Lineage in the JSON of a run's record is decoded to the same value."""
    assert decode_lineage(json.loads(json.dumps(encode_lineage(lineage)))) == lineage


def test_too_large_column_lineage_is_reduced_to_tables() -> None:
    """If the column lineage of a table is too large, the record has only the tables."""
    columns = {f"column_{number}": FOUND.columns["twice"] for number in range(TOLD_MAX // 40)}
    record = encode_lineage(QueryLineage(inputs=FOUND.inputs, columns=columns))

    assert len(json.dumps(record)) < 1000
    assert decode_lineage(record) == QueryLineage(inputs=FOUND.inputs, columns={})


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"sources": 1},
        {"sources": [], "inputs": "x"},
        {"sources": [{}], "inputs": 1},
        {"sources": [], "inputs": 0, "rows": [[1, "a", "FILTER", True]]},
        {"sources": [], "inputs": 0, "columns": [1]},
    ],
)
def test_foreign_lineage_data_in_record_is_ignored(record: dict[str, object]) -> None:
    """If the record contains other data in place of lineage, it is ignored and the run can be published."""
    assert decode_lineage(record) is None


def _event(*targets: tuple[str, ...]) -> dict[str, object]:
    return lineage_event(
        metalake="lake", pipeline="daily", run_id="01b2", step="marts.x", targets=targets, lineage=FOUND
    )


def test_event_names_tables_job_and_columns() -> None:
    """The event names tables by path, the step as a job of the pipeline's run, and columns with their kind of
    derivation.
    """
    event, again = _event(TABLE), _event(TABLE)
    (output,) = event["outputs"]  # type: ignore[misc]
    columns = output["facets"]["columnLineage"]
    orders, file = event["inputs"]  # type: ignore[misc]

    assert orders == {"namespace": "limnos://lake", "name": "main.raw.orders"}
    assert file == {"namespace": "file", "name": "/data/orders.csv"}
    assert (output["namespace"], output["name"]) == ("limnos://lake", "main.marts.`x y`")
    assert event["job"] == {"namespace": "limnos://lake", "name": "daily.marts.x"}
    assert event["run"] == again["run"]
    assert event["run"]["facets"]["parent"]["run"] == {"runId": "01b2"}  # type: ignore[index]
    twice, day = columns["fields"]["twice"]["inputFields"]
    assert {key: twice[key] for key in ("namespace", "name", "field")} == {**file, "field": "amount"}
    assert (twice["transformations"][0]["type"], twice["transformations"][0]["subtype"]) == ("DIRECT", "TRANSFORMATION")
    assert (day["field"], day["transformations"][0]["type"]) == ("day", "INDIRECT")
    assert [(one["field"], one["transformations"][0]["type"]) for one in columns["dataset"]] == [("day", "INDIRECT")]


def test_quarantine_table_has_lineage_of_step_table() -> None:
    """A quarantine table has the column lineage of the step's table; a table of malformed rows has none."""
    aside = [(*TABLE[:-1], f"x y__{word}") for word in ("quarantine", "malformed")]
    own, quarantine, malformed = _event(TABLE, *aside)["outputs"]  # type: ignore[misc]

    assert quarantine["name"] == "main.marts.`x y__quarantine`"
    assert quarantine["facets"] == own["facets"]
    assert (malformed["name"], malformed["facets"]) == ("main.marts.`x y__malformed`", {})


class _RefusingClient:
    """A client whose server refuses."""

    class lineage:  # noqa: N801 - stands for an attribute
        """Lineage calls that are refused."""

        class scope:  # noqa: N801
            """The metalake."""

            metalake = "lake"

        @staticmethod
        def send(_: object) -> None:
            """Raise the refusal."""
            raise ClientError("no")


def test_refused_lineage_is_logged_and_step_remains_published(caplog: pytest.LogCaptureFixture) -> None:
    """If the server refuses lineage, a log entry is written and the step remains published; without lineage nothing is
    sent.
    """
    known = {"pipeline": "p", "run_id": "r", "step": "s", "targets": [("main", "a", "t")]}
    refused = report_lineage(_RefusingClient(), lineage=lineage_of_tables([("main", "a", "s")]), **known)  # type: ignore[arg-type]
    silent = report_lineage(None, lineage=QueryLineage(inputs=(), columns={}), **known)  # type: ignore[arg-type]

    assert (refused, silent) == (None, None)
    assert "main.a.t" in caplog.text
