# SPDX-License-Identifier: Apache-2.0
"""Logs: structlog and the standard library's loggers through one handler, as JSON or for a terminal, on stderr.

Must not know the events. Every line has the id of its request. Values under names of secrets are masked, and so are
secrets of the settings inside strings and tracebacks. Loggers of libraries write warnings and errors only, because
their other lines contain requests and responses with credentials that nothing here can know.

    log = get_logger(__name__)
    log.info("table created", table_id=7)
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from io import StringIO
from typing import Final, Literal, TextIO, cast

import structlog
from structlog.typing import EventDict, ExcInfo, Processor, WrappedLogger

from limnos.model.secrets import MASK, hide_secrets
from limnos.telemetry import worker
from limnos.telemetry.current_request import current_request
from limnos.telemetry.request_log import LoggedRequests, RequestLog

LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("auto", "json", "console")
Format = Literal["auto", "json", "console"]

_SECRETS: Final = frozenset({"authorization", "credential", "credentials", "password", "secret", "token", "cookie"})
_OWN: Final = "limnos"
"""The root of the names of the product's loggers."""
_WIRE_LOGGERS: Final = (
    "aiobotocore",
    "aiohttp",
    "azure",
    "boto3",
    "botocore",
    "google",
    "hpack",
    "httpcore",
    "httpx",
    "httpx2",
    "oauthlib",
    "pyiceberg",
    "requests",
    "requests_oauthlib",
    "s3fs",
    "s3transfer",
    "urllib3",
)
"""Libraries whose debug lines contain headers and bodies. They log from `info` on at most."""
_HIDDEN: set[str] = set()
"""Secrets of the settings, which are masked in every line."""


def configure(
    level: str = "info",
    format: Format = "auto",
    *,
    stream: TextIO | None = None,
    hidden: Iterable[str] = (),
    libraries: Iterable[str] = (),
) -> None:
    """Configure logging: send all log lines of the process to one stream, in one of FORMATS, from one of LEVELS
    upwards.

    May be called again; the last call applies, also to loggers already in use.

    Args:
        level: The least severe level that is written, by the product and by the loggers of `libraries`.
        libraries: Names of loggers of libraries, with the loggers below them. All others write from `warning` on, and
            those that log headers and bodies at `debug` write from `info` on.
        format: `auto` is `console` on a terminal and `json` elsewhere.
        stream: Where lines are written; standard error by default.
        hidden: Secrets, which are masked as `***` in strings and tracebacks.

    Raises:
        ValueError: The level or format is unknown.
    """
    _HIDDEN.update(hidden)
    if level not in LEVELS or format not in FORMATS:
        raise ValueError(
            f"Log level {level!r} and format {format!r}: use a level of {', '.join(LEVELS)} and a format of "
            f"{', '.join(FORMATS)}."
        )
    target = sys.stderr if stream is None else stream
    number = logging.getLevelNamesMapping()[level.upper()]
    shared = _shared_processors()
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    json = format == "json" or (format == "auto" and not target.isatty())
    handler = _handler(target, _renderers(json=json, terminal=target.isatty()), shared, json=json)
    handler.addFilter(_LevelFilter(number, tuple(libraries)))
    _replace_handler(handler, number)


def request_log(expected: LoggedRequests = "all", sample: float = 1.0) -> RequestLog | None:
    """Create the request log of this process; None if the settings disable it or `configure` was not called."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _Handler) and expected != "none" and logging.getLogger().level <= logging.INFO:
            return RequestLog(handler.stream, json=handler.json, mode=expected, sample=sample)
    return None


def get_logger(name: str) -> structlog.typing.FilteringBoundLogger:
    """Return the logger of a module. May be called before `configure`."""
    return cast("structlog.typing.FilteringBoundLogger", structlog.get_logger(name))


class _LevelFilter(logging.Filter):
    """Passes a record if its logger may write its level, whatever level a library has set for its own logger."""

    def __init__(self, level: int, libraries: tuple[str, ...]) -> None:
        super().__init__()
        self._level = level
        self._libraries = libraries
        self._least: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is written."""
        least = self._least.get(record.name)
        if least is None:
            least = self._least[record.name] = self._least_level_of(record.name)
        return record.levelno >= least

    def _least_level_of(self, name: str) -> int:
        if _is_below(name, (_OWN,)):
            return self._level
        if not _is_below(name, self._libraries):
            return max(self._level, logging.WARNING)
        return max(self._level, logging.INFO) if _is_below(name, _WIRE_LOGGERS) else self._level


def _is_below(name: str, roots: Iterable[str]) -> bool:
    return any(name == root or name.startswith(f"{root}.") for root in roots)


class _Handler(logging.StreamHandler[TextIO]):
    """The handler installed by `configure`; its class lets a second call find and replace it."""

    json = False


def _handler(stream: TextIO, renderers: list[Processor], shared: list[Processor], *, json: bool) -> _Handler:
    handler = _Handler(stream)
    handler.json = json
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
        )
    )
    return handler


def _replace_handler(handler: _Handler, level: int) -> None:
    root = logging.getLogger()
    for old in [each for each in root.handlers if isinstance(each, _Handler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)  # the handler's filter decides further


def _shared_processors() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_request_id,
        _add_worker,
        _mask_secrets,
    ]


def _renderers(*, json: bool, terminal: bool) -> list[Processor]:
    if json:
        return [structlog.processors.format_exc_info, _hide, structlog.processors.JSONRenderer(ensure_ascii=False)]
    return [_hide, structlog.dev.ConsoleRenderer(colors=terminal, exception_formatter=_traceback)]


def _traceback(stream: TextIO, exc_info: ExcInfo) -> None:
    """Write a traceback without local variables, which may contain credentials, and with masked secrets."""
    buffer = StringIO()
    structlog.dev.plain_traceback(buffer, exc_info)
    stream.write(hide_secrets(buffer.getvalue(), _HIDDEN))


def _hide(*called: object) -> EventDict:
    """Mask the secrets of the settings in a log event, as a structlog processor; the event is the last argument."""
    event = cast("EventDict", called[-1])
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = hide_secrets(value, _HIDDEN)
        elif isinstance(value, BaseException):
            event[name] = hide_secrets(repr(value), _HIDDEN)
    return event


def _add_request_id(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    request = current_request.get()
    if request is not None:
        event.setdefault("request_id", request.id)
    return event


def _add_worker(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    if worker.number is not None:
        event.setdefault("worker", worker.number)
    return event


def _mask_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    for name in event.keys() & _SECRETS:
        event[name] = MASK
    return event


def _configure_least() -> None:
    """Configure logging for the time before `configure`: warnings on standard error, with plain tracebacks.

    Structlog's own default writes every level to standard output, and local variables into tracebacks.
    """
    structlog.configure(
        processors=[structlog.processors.add_log_level, _mask_secrets, *_renderers(json=False, terminal=False)],
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )


if not structlog.is_configured():
    _configure_least()
