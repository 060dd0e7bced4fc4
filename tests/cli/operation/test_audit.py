# SPDX-License-Identifier: Apache-2.0
"""`limnos audit`: the order and the words of the printed records."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Run
from tests.client.fake import FakeServer

AUDIT = "/api/limnos/v1/metalakes/lake/audit?limit=51"


def test_records_are_printed_in_the_order_of_their_times(fake: FakeServer, limnos: Run) -> None:
    """Changes, which the server records later than refusals, are printed at their times, the newest first. A change
    without a word of its own is printed as its operation.
    """
    lines = [
        {"id": 3, "at": "2026-11-28T12:00:01Z", "user": "ana", "outcome": "done", "change": "create", "operation": "a"},
        {"id": 2, "at": "2026-11-28T12:00:03Z", "user": "ana", "outcome": "refused", "operation": "load-table"},
        {"id": 1, "at": "2026-11-28T12:00:02Z", "user": "ana", "outcome": "done", "change": "other", "operation": "b"},
    ]
    fake.on("GET", AUDIT, {"lines": lines, "next": None, "more": False})

    done = limnos("audit", "--output", "csv", "--columns", "at,did")

    assert done.out.split() == [
        "at,did",
        "2026-11-28T12:00:03Z,load-table",
        "2026-11-28T12:00:02Z,b",
        "2026-11-28T12:00:01Z,create",
    ]


def test_records_beyond_the_limit_are_reported(fake: FakeServer, limnos: Run) -> None:
    """A note says that there are more records than the limit; with all records there is none."""
    lines = [{"id": at, "at": f"2026-11-28T12:00:0{at}Z", "user": "ana", "outcome": "done"} for at in (3, 2, 1)]
    for limit in (2, 3):
        page = {"lines": lines[: limit + 1], "next": None, "more": False}
        fake.on("GET", AUDIT.replace("51", str(limit + 1)), page)

    cut, whole = (limnos("audit", "--limit", str(limit)) for limit in (2, 3))

    assert isinstance(cut.result, list)
    assert [line["id"] for line in cut.result] == [3, 2]
    assert "note: the newest 2 records" in cut.err
    assert "note" not in whole.err


@pytest.mark.parametrize(
    "text,path", [("svc-etl", "%60svc-etl%60"), ("main.raw.t", "main.raw.t"), ("`a.b`", "%60a.b%60")]
)
def test_names_of_records_are_quoted_as_the_server_stores_them(
    fake: FakeServer, limnos: Run, text: str, path: str
) -> None:
    """A name with other characters than letters is looked for in back-quotes, whether it is typed with them or not."""
    fake.on("GET", AUDIT.replace("?", f"?path={path}&"), {"lines": [], "next": None, "more": False})

    assert limnos("audit", "--what", text).code == 0
