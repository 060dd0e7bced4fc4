"""The body of an answer of the query service, whole or in pieces: results first, then how it went.

May import msgspec, `services` for how a request ends, `sqlpp` and this package. What was sent cannot be taken back: a failure
after the first results is told behind them, with status 200.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import msgspec

from limnos.http.asterix.errors import error_entry
from limnos.services.sqlpp.running_requests import RequestEnded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from limnos.http.asterix.errors import Failure
    from limnos.sqlpp import SqlppError

_SIGNATURE: Final = b'"signature":{"*":"*"},'


class QueryResponseBody:
    """What has to be told of a request, while it runs."""

    def __init__(self, *, request_id: str, client_context_id: str | None, pretty: bool, gives: bool) -> None:
        self.request_id = request_id
        self.client_context_id = client_context_id
        self.pretty = pretty
        self.gives = gives
        """Whether any of its statements has results."""
        self.count = 0
        self.size = 0
        self._began = time.perf_counter()
        self._ran = self._began

    def started(self) -> None:
        """Everything is read; from here on it runs."""
        self._ran = time.perf_counter()

    def head(self) -> bytes:
        """What stands before the first result."""
        named: dict[str, object] = {"requestID": self.request_id}
        if self.client_context_id is not None:
            named["clientContextID"] = self.client_context_id
        fields = msgspec.json.encode(named)[:-1] + b","
        return fields + _SIGNATURE + b'"results":[' if self.gives else fields

    def counted(self, lines: Iterable[bytes]) -> None:
        """Count results that are kept, not sent."""
        for line in lines:
            self.size += len(line)
            self.count += 1

    def rows(self, lines: Iterable[bytes]) -> bytes:
        """Results, each behind a comma but the very first."""
        made: list[bytes] = []
        for line in lines:
            self.size += len(line)
            shown = msgspec.json.format(line, indent=2) if self.pretty else line
            made.append((b",\n" if self.count else b"\n") + shown)
            self.count += 1
        return b"".join(made)

    def tail(self, warnings: Iterable[SqlppError] = (), failure: Failure | None = None) -> bytes:
        """What stands behind the last result."""
        return self.behind(self.outcome(warnings, failure))

    def behind(self, outcome: bytes) -> bytes:
        """The same, of an outcome that was told already."""
        return (b"\n]," if self.gives else b"") + outcome[1:]

    def outcome(self, warnings: Iterable[SqlppError] = (), failure: Failure | None = None) -> bytes:
        """How it went, as a JSON object: status, what is wrong, figures."""
        rest: dict[str, object] = {}
        listed = [error_entry(each) for each in warnings]
        if listed:
            rest["warnings"] = listed
        if failure is not None:
            rest["errors"] = [error_entry(failure)]
        rest["status"] = status_word(failure)
        rest["metrics"] = self._metrics(warnings=len(listed), errors=0 if failure is None else 1)
        return msgspec.json.encode(rest)

    def pointing(self, status: str, handle: str) -> bytes:
        """A whole body that says where more is to be had."""
        self.gives = False
        return self.head() + msgspec.json.encode({"status": status, "handle": handle})[1:]

    def refused(self, warnings: Iterable[SqlppError], failure: Failure) -> bytes:
        """A whole body that has no results."""
        self.gives, self.count, self.size = False, 0, 0
        return self.head() + self.tail(warnings, failure)

    def _metrics(self, *, warnings: int, errors: int) -> dict[str, object]:
        now = time.perf_counter()
        told_too = {name: count for name, count in (("warningCount", warnings), ("errorCount", errors)) if count}
        return {
            "elapsedTime": _format_duration(now - self._began),
            "executionTime": _format_duration(now - self._ran),
            "resultCount": self.count,
            "resultSize": self.size,
            "processedObjects": 0,
            **told_too,
        }


def status_word(failure: Failure | None) -> str:
    """The body's own status."""
    if failure is None:
        return "success"
    return "timeout" if isinstance(failure, RequestEnded) and failure.late else "fatal"


def _format_duration(seconds: float) -> str:
    return f"{seconds:.6f}s" if seconds >= 1 else f"{seconds * 1000:.6f}ms"
