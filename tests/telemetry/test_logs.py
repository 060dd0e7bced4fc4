# SPDX-License-Identifier: Apache-2.0
"""Logs: one line per event, with its request's id and without secrets, for our loggers and those of libraries."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import structlog
from botocore.parsers import create_parser
from botocore.session import Session

from limnos.telemetry.current_request import current_request
from limnos.telemetry.logs import configure, get_logger


@pytest.fixture(autouse=True)
def undo() -> Iterator[None]:
    """Restore the logging configuration after the test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    """Read the log lines as JSON."""
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_is_one_json_object() -> None:
    """Message, level, logger, time and values are in one JSON object on one line."""
    stream = io.StringIO()
    configure("info", "json", stream=stream)
    get_logger("limnos.test").info("table created", table_id=7, name="a\nb", who="é")
    (line,) = lines(stream)
    time = str(line.pop("timestamp"))

    assert line == {
        "event": "table created",
        "level": "info",
        "logger": "limnos.test",
        "table_id": 7,
        "name": "a\nb",
        "who": "é",
    }
    assert time.endswith("Z")


def test_standard_library_loggers_log_json() -> None:
    """A logger of the standard library also logs JSON, with its arguments formatted."""
    stream = io.StringIO()
    configure("info", "json", stream=stream)
    logging.getLogger("uvicorn.error").warning("port %d is %s", 80, "taken")
    (line,) = lines(stream)

    assert (line["event"], line["level"], line["logger"]) == ("port 80 is taken", "warning", "uvicorn.error")


def test_lines_carry_the_id_of_their_request() -> None:
    """Concurrent tasks log with their own request ids, including nested calls. Outside of requests there is no id."""
    stream = io.StringIO()
    configure("info", "json", stream=stream, libraries=("other",))
    log = get_logger("limnos.test")

    async def serve(request_id: str) -> None:
        current_request.set(SimpleNamespace(id=request_id, loop_use=None))
        await asyncio.sleep(0)
        log.info(request_id)
        logging.getLogger("other").info(request_id)

    async def both() -> None:
        await asyncio.gather(serve("a1"), serve("b2"))

    asyncio.run(both())
    log.info("outside")
    entries = lines(stream)

    assert sorted(str(line.get("request_id")) for line in entries) == ["None", "a1", "a1", "b2", "b2"]
    assert all(line["event"] == line.get("request_id", "outside") for line in entries)


def test_lower_levels_are_left_out() -> None:
    """Events below the level are not logged, for every logger."""
    stream = io.StringIO()
    configure("warning", "json", stream=stream)
    get_logger("limnos.test").info("quiet")
    logging.getLogger("other").info("quiet")
    get_logger("limnos.test").error("loud")

    assert [line["event"] for line in lines(stream)] == ["loud"]


@pytest.mark.parametrize("libraries", [(), ("botocore",)], ids=["unnamed", "named"])
def test_debug_level_does_not_log_vended_credentials(libraries: tuple[str, ...]) -> None:
    """At level `debug` the response of an STS request, which botocore logs whole, is not in the log, also if the
    setting names botocore.
    """
    stream = io.StringIO()
    configure("debug", "json", stream=stream, libraries=libraries)
    model = Session().get_service_model("sts")
    parser = create_parser("query")
    body = (
        b"<AssumeRoleResponse><AssumeRoleResult><Credentials><SecretAccessKey>planted-key</SecretAccessKey>"
        b"</Credentials></AssumeRoleResult><ResponseMetadata/></AssumeRoleResponse>"
    )
    shape = model.operation_model("AssumeRole").output_shape
    parsed = parser.parse({"status_code": 200, "headers": {}, "body": body}, shape)
    get_logger("limnos.test").debug("vended")

    assert parsed["Credentials"]["SecretAccessKey"] == "planted-key"
    assert "planted-key" not in stream.getvalue()
    assert [line["event"] for line in lines(stream)] == ["vended"]


def test_libraries_log_warnings_unless_named() -> None:
    """A logger of a library writes warnings; a named one, and those below it, write from the level on. A library cannot
    lower its own level. Names that only begin alike are not named.
    """
    stream = io.StringIO()
    configure("debug", "json", stream=stream, libraries=("pool", "urllib3"))
    for name in ("pool", "pool.a", "pools", "urllib3.pool", "limnos.a", "limnosx"):
        logging.getLogger(name).setLevel(logging.DEBUG)
        for level in (logging.DEBUG, logging.INFO, logging.WARNING):
            logging.getLogger(name).log(level, name)
    counts = Counter(line["event"] for line in lines(stream))

    assert counts == {"pool": 3, "pool.a": 3, "limnos.a": 3, "urllib3.pool": 2, "pools": 1, "limnosx": 1}


def test_level_above_warning_holds_for_libraries() -> None:
    """With level `error` a library's warnings are not written either."""
    stream = io.StringIO()
    configure("error", "json", stream=stream, libraries=("pool",))
    for name in ("pool", "other"):
        logging.getLogger(name).warning(name)

    assert lines(stream) == []


@pytest.mark.parametrize("name", ["token", "authorization", "password", "secret", "credential"])
def test_secret_values_are_not_logged(name: str) -> None:
    """A value with the name of a secret is not logged."""
    stream = io.StringIO()
    configure("info", "json", stream=stream)
    get_logger("limnos.test").info("login", **{name: "hunter2"})

    assert lines(stream)[0][name] == "***"
    assert "hunter2" not in stream.getvalue()


@pytest.mark.parametrize("format", ["json", "console"])
def test_a_traceback_is_written_without_local_variables(format: str) -> None:
    """A traceback has the code locations and no local variables."""
    stream = io.StringIO()
    configure("info", format, stream=stream)  # type: ignore[arg-type]
    secret = "hunter" + "2"
    try:
        int(f"x{len(secret)}")
    except ValueError:
        get_logger("limnos.test").exception("broken")

    assert "test_logs.py" in stream.getvalue()
    assert "ValueError" in stream.getvalue()
    assert "hunter2" not in stream.getvalue()


def test_console_format_has_values_in_the_line_without_colors() -> None:
    """The console format has message and values in the line. Without a terminal it has no color codes."""
    stream = io.StringIO()
    configure("info", "console", stream=stream)
    get_logger("limnos.test").info("table created", table_id=7)
    text = stream.getvalue()

    assert "table created" in text
    assert "table_id=7" in text
    assert "\x1b" not in text


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def test_auto_format_is_console_on_a_terminal_and_json_elsewhere() -> None:
    """The format `auto` is the console format on a terminal and JSON elsewhere."""
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        configure("info", "auto", stream=stream)
        get_logger("limnos.test").info("hello")

    assert lines(file)[0]["event"] == "hello"
    assert not terminal.getvalue().startswith("{")
    assert "hello" in terminal.getvalue()


def test_the_last_configuration_counts() -> None:
    """A second configuration moves every logger to its stream, also one that has logged before, and no line is
    doubled.
    """
    first, second = io.StringIO(), io.StringIO()
    configure("info", "json", stream=first)
    log = get_logger("limnos.test")
    log.info("one")
    configure("info", "json", stream=second)
    log.info("two")

    assert [line["event"] for line in lines(first)] == ["one"]
    assert [line["event"] for line in lines(second)] == ["two"]


def test_logs_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Logs go to standard error, so that standard output has only the output of commands."""
    configure("info", "json")
    get_logger("limnos.test").info("hello")
    captured = capsys.readouterr()

    assert captured.out == ""
    assert json.loads(captured.err)["event"] == "hello"


@pytest.mark.parametrize("level, format", [("loud", "json"), ("info", "xml"), ("INFO", "json")])
def test_unknown_level_or_format_is_refused_with_valid_values(level: str, format: str) -> None:
    """The refusal of an unknown level or format lists the valid ones."""
    with pytest.raises(ValueError, match=r"debug, info, warning, error .* auto, json, console"):
        configure(level, format)  # type: ignore[arg-type]
