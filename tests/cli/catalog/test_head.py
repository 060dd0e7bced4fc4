"""`head`: the rows as a table or JSON, and what was left out."""

from __future__ import annotations

from tests.cli.conftest import Run
from tests.client.fake import FakeServer

PREVIEW = "/api/limnos/v1/metalakes/lake/catalogs/main/tables/preview?table=raw.trips&rows=10"
TOLD = {
    "columns": [{"name": "id", "type": "long"}, {"name": "card", "type": "string", "masked": True}],
    "rows": [[1, None], [2, "xxxx1234"]], "snapshot_id": 7, "complete": False, "restricted": True, "columns_left_out": 3,
}  # fmt: skip


def test_rows_are_objects_for_programs(fake: FakeServer, limnos: Run) -> None:
    """JSON has one object for each row, with the names of columns as keys."""
    fake.on("GET", PREVIEW, TOLD)

    assert limnos("head", "main.raw.trips").result == [{"id": 1, "card": None}, {"id": 2, "card": "xxxx1234"}]


def test_people_read_what_was_left_out(fake: FakeServer, run: Run) -> None:
    """Beside the rows: that there are more, columns that were left out, and the restriction."""
    fake.on("GET", f"{PREVIEW}&columns=id%2Ccard&snapshot=7", TOLD)

    done = run(
        "head", "main.raw.trips", "--columns", "id,card", "--snapshot", "7", "--uri", fake.uri, "--output", "table"
    )

    assert (done.code, "xxxx1234" in done.out, "null" in done.out) == (0, True, True)
    for words in ("more rows", "3 more columns", "restriction applies to you"):
        assert words in done.err
