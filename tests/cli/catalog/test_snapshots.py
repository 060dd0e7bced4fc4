# SPDX-License-Identifier: Apache-2.0
"""`snapshots`: rows of the states of a table, and metadata that a writer made up."""

from __future__ import annotations

import pytest

from limnos.cli import output
from tests.cli.conftest import Run
from tests.client.fake import FakeServer

LOAD = "/iceberg/v1/lake.main/namespaces/raw/tables/t"


def with_table(fake: FakeServer, *, snapshots: object, refs: object, log: object = None) -> None:
    """Answer a load with a table of these snapshots."""
    metadata = {"format-version": 2, "location": "/w/t", "schemas": [], "snapshots": snapshots, "refs": refs}
    metadata |= {} if log is None else {"snapshot-log": log}
    fake.on("GET", LOAD, {"metadata-location": "/w/t/1.json", "metadata": metadata})


def test_snapshots_are_listed_with_their_references(fake: FakeServer, limnos: Run) -> None:
    """The newest is first. Each has its time, operation, numbers of rows, and its branches and tags."""
    first = {"operation": "append", "added-records": "5", "total-records": "5"}
    second = {"operation": "delete", "deleted-records": "2", "total-records": "3"}
    snapshots = [
        {"snapshot-id": 7, "timestamp-ms": 1_790_000_000_000, "summary": first},
        {"snapshot-id": 8, "timestamp-ms": 1_790_000_060_000, "summary": second},
    ]
    with_table(fake, snapshots=snapshots, refs={"main": {"snapshot-id": 8}, "good": {"snapshot-id": 7}})

    rows = limnos("list", "snapshots", "main.raw.t").result
    cut = limnos("snapshots", "main.raw.t", "--limit", "1")

    assert rows == [
        {
            "id": 8,
            "at": "2026-09-21T14:14:20Z",
            "current_at": None,
            "operation": "delete",
            "refs": "main",
            "rows": 3,
            "added": None,
            "deleted": 2,
        },
        {
            "id": 7,
            "at": "2026-09-21T14:13:20Z",
            "current_at": None,
            "operation": "append",
            "refs": "good",
            "rows": 5,
            "added": 5,
            "deleted": None,
        },
    ]
    assert [row["id"] for row in cut.result] == [8]
    assert "the newest 1 of 2 snapshots" in cut.err


def test_snapshot_that_was_published_has_its_time(fake: FakeServer, limnos: Run) -> None:
    """A snapshot of the log has the time at which it was last current; one that no commit published has none."""
    snapshots = [{"snapshot-id": number, "timestamp-ms": 1_790_000_000_000} for number in (7, 8)]
    log = [
        {"snapshot-id": 7, "timestamp-ms": 1_790_000_000_000},
        {"snapshot-id": 7, "timestamp-ms": 1_790_000_060_000},
        {"snapshot-id": [9], "timestamp-ms": 1_790_000_060_000},
    ]
    with_table(fake, snapshots=snapshots, refs={"main": {"snapshot-id": 7}}, log=log)

    rows = limnos("list", "snapshots", "main.raw.t").result

    assert [(row["id"], row["current_at"]) for row in rows] == [(8, None), (7, "2026-09-21T14:14:20Z")]


@pytest.mark.parametrize(
    "snapshots,refs",
    [
        ("text", []),
        ([{"snapshot-id": 7, "timestamp-ms": -1, "summary": {"total-records": "many"}}, 5], {"main": "x"}),
        ([{"snapshot-id": 7, "timestamp-ms": 10**18, "summary": None}], None),
    ],
)
def test_values_of_another_form_are_left_out(fake: FakeServer, limnos: Run, snapshots: object, refs: object) -> None:
    """Metadata is what a writer of the table wrote: a value that is not of the format has no cell, and is no error."""
    with_table(fake, snapshots=snapshots, refs=refs)

    done = limnos("snapshots", "main.raw.t")

    assert done.code == 0, done.err
    assert all((row["at"], row["rows"], row["refs"]) == (None, None, "") for row in done.result)


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_table_of_many_snapshots_fits_the_terminal(
    fake: FakeServer, run: Run, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """Of 5,000 snapshots the newest 50 are listed, with a note, and no line is wider than the terminal."""
    monkeypatch.setattr(output, "terminal_width", lambda: width)
    summary = {"operation": "append", "added-records": "1000000", "total-records": "5000000000"}
    snapshots = [
        {"snapshot-id": 6_000_000_000_000_000_000 + number, "timestamp-ms": 1_790_000_000_000, "summary": summary}
        for number in range(5_000)
    ]
    with_table(fake, snapshots=snapshots, refs={"main": {"snapshot-id": 6_000_000_000_000_004_999}})

    done = run("list", "snapshots", "main.raw.t", "--uri", fake.uri, "--user", "ana", "--output", "table")

    assert done.code == 0, done.err
    assert "the newest 50 of 5000 snapshots" in done.err
    assert done.out.count("6000000000000004") == 50
    assert max(map(len, done.out.splitlines())) <= width


def test_versions_of_a_lance_table_are_listed_with_their_tags(fake: FakeServer, limnos: Run) -> None:
    """A table that is no Iceberg table has versions, the newest first; tags of branches are left out."""
    table, where = "/lance/v1/table/lance%24s%24t", "delimiter=%24&metalake=lake"
    fake.on("POST", f"{table}/describe?{where}", {"location": "/w/t", "version": 2})
    versions = [
        {"version": 2, "manifest_path": "b", "timestamp_millis": 1_790_000_060_000},
        {"version": 1, "manifest_path": "a"},
    ]
    fake.on("POST", f"{table}/version/list?{where}&descending=true&limit=51", {"versions": versions})
    fake.on(
        "POST",
        f"{table}/tags/list?{where}&limit=1000",
        {"tags": {"first": {"version": 1}, "dev": {"version": 2, "branch": "b"}}},
    )

    rows = limnos("list", "snapshots", "lance.s.t").result

    assert rows == [
        {"id": 2, "at": "2026-09-21T14:14:20Z", "refs": ""},
        {"id": 1, "at": None, "refs": "first"},
    ]


def test_versions_are_read_page_by_page_up_to_the_limit(fake: FakeServer, limnos: Run) -> None:
    """A page's token leads to the next one, and a note says that there are more versions than the limit."""
    table, where = "/lance/v1/table/lance%24s%24t", "delimiter=%24&metalake=lake"
    fake.on("POST", f"{table}/describe?{where}", {"location": "/w/t", "version": 3})
    first = {"versions": [{"version": 3}, {"version": 2}], "page_token": "2"}
    fake.on("POST", f"{table}/version/list?{where}&descending=true&limit=3", first)
    listed = f"{table}/version/list?{where}&descending=true&limit=3&page_token=2"
    fake.on("POST", listed, {"versions": [{"version": 1}]})
    fake.on("POST", f"{table}/tags/list?{where}&limit=1000", {"tags": {}})

    cut = limnos("list", "snapshots", "lance.s.t", "--limit", "2")

    assert [row["id"] for row in cut.result] == [3, 2]
    assert "the newest 2 versions" in cut.err
