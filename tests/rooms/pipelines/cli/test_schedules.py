# SPDX-License-Identifier: Apache-2.0
"""The requests and the output of the commands on schedules."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.client.fake import FakeServer

LAKE = "/api/limnos/v1/metalakes/lake"
ONE = f"{LAKE}/pipelines/day/schedule"
SCHEDULE = {
    "pipeline": "day",
    "user": "ana",
    "paused": False,
    "file": "day.yaml",
    "cron": "0 6 * * *",
    "time_zone": "Europe/Paris",
    "next": ["2026-11-29T05:00:00.000Z", "2026-11-30T05:00:00.000Z"],
    "last_due_at": "2026-11-28T05:00:00.000Z",
    "job": "50e87dca-1932-4162-a9b3-f9a2093a7df9",
    "job_state": "succeeded",
    "attempts": 1,
}
FILE = """pipeline: day
catalog: main
schedule: {cron: "0 6 * * *", time_zone: Europe/Paris}
steps:
  shop.numbers: {sql_file: sql/numbers.sql}
"""


@pytest.fixture
def file(tmp_path: Path, fake: FakeServer) -> Path:
    """A pipeline in a directory of its own, and a server that takes it."""
    directory = tmp_path / "day"
    (directory / "sql").mkdir(parents=True)
    (directory / ".git").mkdir()
    (directory / ".git" / "config").write_text("secret")
    (directory / "day.yaml").write_text(FILE)
    (directory / "sql" / "numbers.sql").write_text("SELECT 1 AS id")
    pipeline = {"name": "day", "version": 1, "digest": "d"}
    fake.on("GET", f"{LAKE}/pipelines", {"pipelines": [pipeline]})
    fake.on("GET", f"{LAKE}/pipelines/day", pipeline).on("PUT", f"{LAKE}/pipelines/day", pipeline)
    fake.on("PUT", ONE, SCHEDULE)
    return directory / "day.yaml"


def test_pipeline_is_scheduled_with_the_files_of_its_directory(file: Path, fake: FakeServer, limnos: Run) -> None:
    """The declaration and the files are sent, without hidden ones; the answer has the local due time."""
    result = limnos("pipeline", "schedule", str(file), "--output", "table")
    (body,) = [each.body for each in fake.asked if each.target == ONE]

    assert result.code == 0, result.err
    assert "is due at Sun 2026-11-29 06:00 Europe/Paris" in result.out
    assert (body["file"], body["cron"], body["time_zone"]) == ("day.yaml", "0 6 * * *", "Europe/Paris")
    assert body["if_changed"] is False
    assert {path: b64decode(text).decode() for path, text in body["files"].items()} == {
        "day.yaml": FILE,
        "sql/numbers.sql": "SELECT 1 AS id",
    }


def test_refused_schedule_leaves_no_new_pipeline(file: Path, fake: FakeServer, limnos: Run) -> None:
    """If the server refuses the schedule, a pipeline that it did not know before is dropped again."""
    refusal = {"error": {"code": "not-supported", "message": "The server runs no pipelines: set jobs.pipelines"}}
    missing = {"error": {"code": "not-found", "message": "Pipeline day does not exist"}}
    del fake.routes["GET", f"{LAKE}/pipelines/day"], fake.routes["PUT", ONE]
    fake.on("GET", f"{LAKE}/pipelines/day", missing, status=404).on("PUT", ONE, refusal, status=406)
    fake.on("DELETE", f"{LAKE}/pipelines/day", None, status=204)

    result = limnos("pipeline", "schedule", str(file))

    assert result.code != 0
    assert "set jobs.pipelines" in result.err
    assert [each.method for each in fake.asked if each.target == f"{LAKE}/pipelines/day"][-1] == "DELETE"


def test_flags_replace_the_schedule_of_the_file(file: Path, fake: FakeServer, limnos: Run) -> None:
    """`--cron` is in UTC unless `--time-zone` is given, which belongs to it."""
    assert limnos("pipeline", "schedule", str(file), "--cron", "5 * * * *").code == 0
    (body,) = [each.body for each in fake.asked if each.target == ONE]
    alone = limnos("pipeline", "schedule", str(file), "--time-zone", "Europe/Paris")

    assert (body["cron"], body["time_zone"]) == ("5 * * * *", "UTC")
    assert (alone.code, alone.error["message"]) == (2, "--time-zone is that of --cron")


def test_condition_of_the_file_is_sent_with_its_due_times_and_others(file: Path, fake: FakeServer, limnos: Run) -> None:
    """`if_changed` stands in the file, and stays with the due times of `--cron`; lists show it."""
    file.write_text(FILE.replace("Europe/Paris}", "Europe/Paris, if_changed: true}"))
    fake.on("GET", f"{LAKE}/schedules?count=1", {"schedules": [SCHEDULE | {"if_changed": True}]})

    for flags in ((), ("--cron", "5 * * * *")):
        assert limnos("pipeline", "schedule", str(file), *flags).code == 0
    bodies = [each.body for each in fake.asked if each.target == ONE]
    (row,) = limnos("list", "schedules").result

    assert [(body["cron"], body["if_changed"]) for body in bodies] == [("0 6 * * *", True), ("5 * * * *", True)]
    assert row["due"] == "0 6 * * * Europe/Paris if changed"


def test_wrong_due_times_are_refused_before_the_pipeline_is_registered(
    file: Path, fake: FakeServer, limnos: Run
) -> None:
    """A wrong cron expression and a wrong time zone are both named, and nothing is sent."""
    done = limnos("pipeline", "schedule", str(file), "--cron", "0 6 * *", "--time-zone", "Mars/Base")

    assert done.code == 2
    assert "'0 6 * *' is not a cron expression" in str(done.error["message"])
    assert "'Mars/Base' is not a time zone" in str(done.error["message"])
    assert fake.asked == []


def test_file_without_schedule_is_refused(file: Path, limnos: Run) -> None:
    """The message says what to write."""
    file.write_text(FILE.replace('schedule: {cron: "0 6 * * *", time_zone: Europe/Paris}\n', ""))

    result = limnos("pipeline", "schedule", str(file))

    assert (result.code, result.error["message"]) == (2, "pipeline day has no schedule")
    assert "schedule: {cron:" in str(result.error["hint"])


def test_large_directory_is_refused(file: Path, fake: FakeServer, limnos: Run) -> None:
    """A directory with data is refused before anything is sent."""
    (file.parent / "data.csv").write_bytes(b"x" * (512 << 10))

    result = limnos("pipeline", "schedule", str(file))

    assert "put the pipeline into a directory of its own" in str(result.error["message"])
    assert fake.asked == []


def test_schedules_are_listed_shown_paused_and_deleted(fake: FakeServer, limnos: Run) -> None:
    """Each command sends its request; the calendar is sorted by due time."""
    other = SCHEDULE | {"pipeline": "hour", "next": ["2026-11-29T04:00:00.000Z"], "time_zone": "UTC"}
    fake.on("GET", f"{LAKE}/schedules?count=1", {"schedules": [SCHEDULE]})
    fake.on("GET", f"{LAKE}/schedules?count=2", {"schedules": [SCHEDULE, other]})
    fake.on("GET", f"{ONE}?count=1", SCHEDULE).on("GET", f"{ONE}?count=10", SCHEDULE)
    fake.on("POST", ONE, SCHEDULE | {"paused": True, "next": []}).on("DELETE", ONE, {"deleted": "day"})

    listed = limnos("list", "schedules").result
    calendar = limnos("pipeline", "calendar", "--count", "2").result

    assert [(row["pipeline"], row["state"], row["last_job"]) for row in listed] == [
        ("day", "active", "50e87dca succeeded")
    ]
    assert [(row["pipeline"], row["local"]) for row in calendar] == [
        ("hour", "Sun 2026-11-29 04:00 UTC"),
        ("day", "Sun 2026-11-29 06:00 Europe/Paris"),
    ]
    assert len(limnos("pipeline", "calendar", "day").result) == 2
    assert limnos("show", "schedule", "day").result["user"] == "ana"
    assert limnos("schedule", "pause", "day").result["state"] == "paused"
    assert limnos("schedule", "resume", "day").code == 0
    assert [each.body for each in fake.asked if each.target == ONE] == [{"paused": True}, {"paused": False}]
    assert limnos("delete", "schedule", "day", "--yes").result == {"deleted": "day"}


SOURCE = """sources:
  orders: {files: orders.csv, format: csv, schema: id bigint}
steps:
  shop.orders: {load: orders}
"""


def test_copied_files_are_named_and_refused_for_increments(file: Path, fake: FakeServer, limnos: Run) -> None:
    """A source in the pipeline's directory is read as a copy, which a note says. An incremental step on it is refused
    before anything is sent, and so is a run that a schedule starts.
    """
    (file.parent / "orders.csv").write_text("1")
    file.write_text(FILE[: FILE.index("steps")] + SOURCE)
    copied = limnos("pipeline", "schedule", str(file), "--output", "table")
    calls = len(fake.calls)
    file.write_text(file.read_text().replace("{load: orders}", "{load: orders, incremental: true, write: append}"))
    refusals = [
        limnos("pipeline", "schedule", str(file)),
        limnos("pipeline", "run", str(file), "--due", "2026-11-28T05:00:00Z"),
    ]

    assert "note: source orders reads the copy of orders.csv of now" in copied.err
    assert [done.code for done in refusals] == [2, 2]
    assert all("is incremental and reads orders.csv" in str(done.error["message"]) for done in refusals)
    assert len(fake.calls) == calls
