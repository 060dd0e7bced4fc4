# SPDX-License-Identifier: Apache-2.0
"""The request log: content of a line, selection of requests, and no waiting for a reader that does not read."""

from __future__ import annotations

import asyncio
import fcntl
import io
import json
import os
import threading
from pathlib import Path

import pytest

from limnos.telemetry import request_log
from limnos.telemetry.logs import configure
from limnos.telemetry.logs import request_log as configured_log
from limnos.telemetry.request_log import RequestLog, RequestLogEntry
from tests.clocks import run

GOOD = RequestLogEntry(
    ended=10.0,
    seconds=0.0015,
    request_id="abc1",
    method="GET",
    path=b"/iceberg/v1/a%1Fb",
    operation="load-table",
    status=200,
    user="ana",
    client="10.0.0.7",
    bytes=512,
    reason="",
)
REFUSED = GOOD._replace(request_id="abc2", status=403, reason="ana may not\nsecond line")


def lines_of(text: str) -> list[dict]:
    """Return lines parsed as JSON."""
    return [json.loads(line) for line in text.splitlines()]


def written(*entries: RequestLogEntry, json: bool = True, **settings: object) -> str:
    """Return the log lines of entries."""
    out = io.StringIO()

    async def story() -> None:
        log = RequestLog(out, json=json, **settings)  # type: ignore[arg-type]
        for entry in entries:
            log.add(entry)
        await asyncio.sleep(1)

    run(story())
    return out.getvalue()


def test_log_line_has_all_fields_of_the_request() -> None:
    """A line has method, operation, path, status, user, client, duration, bytes and id, and for a refusal the first
    line of its reason.
    """
    good, refused = lines_of(written(GOOD, REFUSED))

    moment = good.pop("timestamp")
    assert good == {
        "request_id": "abc1",
        "method": "GET",
        "operation": "load-table",
        "path": "/iceberg/v1/a%1Fb",
        "status": 200,
        "user": "ana",
        "client": "10.0.0.7",
        "duration_ms": 1.5,
        "bytes": 512,
        "event": "request",
        "logger": "limnos.request",
        "level": "info",
    }
    assert len(moment) == len("2026-11-20T20:00:00.000000Z")
    assert refused["reason"] == "ana may not"


def test_terminal_format_escapes_control_characters() -> None:
    """The format for terminals has the same fields on one line, with control characters of names escaped."""
    (good, refused) = written(
        GOOD, REFUSED._replace(user="x\x1b]0;own\x07", reason="\u202eno\x1b[2J"), json=False
    ).splitlines()

    assert "request_id=abc1" in good
    assert "path=/iceberg/v1/a%1Fb" in good
    assert refused.isprintable()


@pytest.mark.parametrize("mode, ids", [("all", ["abc1", "abc2"]), ("refusals", ["abc2"]), ("none", [])])
def test_setting_selects_all_refused_or_no_requests(mode: str, ids: list[str]) -> None:
    """Depending on the setting, all requests have a line, or only refused ones, or none."""
    assert [line["request_id"] for line in lines_of(written(GOOD, REFUSED, mode=mode))] == ids


def test_sample_rate_logs_some_successes_and_all_refusals() -> None:
    """With a sample rate, an even part of the successful requests and every refused one have a line."""
    entries = lines_of(written(*[GOOD] * 100, *[REFUSED] * 10, sample=0.25))

    assert [line["status"] for line in entries] == [200] * 25 + [403] * 10


def test_log_lines_are_truncated_to_the_pipe_limit() -> None:
    """No line is longer than what a pipe accepts at once, whatever a client sends."""
    (line,) = written(GOOD._replace(path=b"/" + b"\xff" * 60_000, reason="\x00" * 5_000)).splitlines()

    assert len(line) < 4096
    assert json.loads(line)["path"].startswith("/\xff")


def test_full_pipe_does_not_delay_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full pipe delays no request: lines are queued up to a limit, further ones are counted, and the count is written
    when the pipe is read again.
    """
    monkeypatch.setattr(request_log, "LINES_MAX", 1_000)
    reading, writing = os.pipe()
    fcntl.fcntl(writing, 1031, 4096)  # F_SETPIPE_SZ
    before = request_log.LINES_LOST[()]

    async def story() -> str:
        with os.fdopen(writing, "w") as stream:
            log = RequestLog(stream, json=True)
            for _ in range(3):
                for _ in range(1_000):
                    log.add(GOOD)
                log.flush()
            chunks: list[bytes] = []
            reader = threading.Thread(target=lambda: chunks.extend(iter(lambda: os.read(reading, 1 << 16), b"")))
            reader.start()
            while log._encoded_lines or log._lost:
                log.flush()
                await asyncio.sleep(0.01)
        reader.join()
        os.close(reading)
        return b"".join(chunks).decode()

    entries = lines_of(asyncio.run(story()))
    lost = [line["lines"] for line in entries if line["event"] != "request"]

    assert len(entries) - len(lost) + sum(lost) == 3_000
    assert sum(lost) >= 1_900
    assert request_log.LINES_LOST[()] - before == sum(lost)


def test_closed_log_stream_does_not_fail_requests() -> None:
    """Requests do not fail if the log's stream is closed."""
    out = io.StringIO()
    log = RequestLog(out, json=True)
    out.close()

    async def story() -> None:
        log.add(GOOD)
        await asyncio.sleep(1)

    run(story())


def test_request_log_follows_the_log_configuration(tmp_path: Path) -> None:
    """The request log goes to the same stream as other lines, in their format. It is off at levels above `info` and if
    it is disabled.
    """
    try:
        with (tmp_path / "log").open("w") as stream:
            configure("info", "json", stream=stream)
            log = configured_log()
            silenced = configured_log("none")
            configure("warning", "json", stream=stream)
            above = configured_log()
            assert log is not None
            run(_added(log))
    finally:
        configure()

    assert (silenced, above) == (None, None)
    assert lines_of((tmp_path / "log").read_text())[0]["request_id"] == "abc1"


async def _added(log: RequestLog) -> None:
    log.add(GOOD)
    log.flush()


def test_entry_that_cannot_be_written_does_not_end_the_log() -> None:
    """After an error while lines are written, later entries are written."""
    out = io.StringIO()

    async def story() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        log = RequestLog(out, json=True)
        log.add(GOOD._replace(ended="no time"))  # type: ignore[arg-type]
        await asyncio.sleep(1)
        log.add(REFUSED)
        await asyncio.sleep(1)

    run(story())

    assert [line["request_id"] for line in lines_of(out.getvalue())] == ["abc2"]
