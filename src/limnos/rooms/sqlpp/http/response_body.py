# SPDX-License-Identifier: Apache-2.0
"""The body of a query service's response, complete or in chunks: first the results, then status, errors and metrics.

Must not know connections. An error after the first results were sent is reported after them, with status 200.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

import msgspec

from limnos.rooms.sqlpp.http.errors import Failure, error_entry
from limnos.rooms.sqlpp.language import SqlppError
from limnos.rooms.sqlpp.language.result_text import ResultFormat
from limnos.rooms.sqlpp.services.requests.running_requests import RequestEnded
from limnos.rooms.sqlpp.services.requests.session import StatementDescription

_ANY_SIGNATURE: Final = b'"signature":{"*":"*"},'
_TYPES: Final = {
    "adm": b'"type":"application/x-adm",',
    "csv": b'"type":"text/csv",',
    "csv-header": b'"type":"text/csv",',
}


class QueryResponseBody:
    """Encodes the JSON body of a query's response in chunks: the leading fields, the results, then status and
    metrics.
    """

    def __init__(
        self,
        *,
        request_id: str,
        client_context_id: str | None,
        pretty: bool,
        has_results: bool,
        format_: ResultFormat = "json",
        signature: bool = True,
        warnings_max: int | None = None,
    ) -> None:
        self.request_id = request_id
        self.client_context_id = client_context_id
        self.pretty = pretty
        self.has_results = has_results
        """Whether any of the request's statements has results."""
        self._signature = _ANY_SIGNATURE if signature else b""
        self._plans = b""
        self._before_results = _TYPES.get(format_, b"") + b'"results":['
        self._warnings_max = warnings_max
        self.uses_cached_plan = False
        """Whether the last query used a cached plan of an earlier request."""
        self.count = 0
        self.size = 0
        self._began = time.perf_counter()
        self._ran = self._began

    def record_start(self) -> None:
        """Record the time at which parsing ended and execution began, for the metrics of the response."""
        self._ran = time.perf_counter()

    def head(self) -> bytes:
        """Return the start of the body, up to the opening bracket of `results`."""
        named: dict[str, object] = {"requestID": self.request_id}
        if self.client_context_id is not None:
            named["clientContextID"] = self.client_context_id
        fields = msgspec.json.encode(named)[:-1] + b","
        return fields + self._plans + (self._signature + self._before_results if self.has_results else b"")

    def describe(self, description: StatementDescription | None) -> None:
        """Add fields for AsterixDB's JDBC driver on the last statement: category, parameters, result signature."""
        if description is None:
            return
        plans: dict[str, object] = {"statementCategory": description.category}
        if description.parameters is not None:
            names = sorted(description.parameters.used, key=lambda name: (isinstance(name, str), name))
            plans["statementParameters"] = names
        if description.explains:
            plans["explainOnly"] = True
        self._plans = b'"plans":' + msgspec.json.encode(plans) + b","
        if self._signature and description.signature is not None:
            fields, types = description.signature
            self._signature = b'"signature":' + msgspec.json.encode({"name": fields, "type": types}) + b","

    def count_results(self, lines: Iterable[bytes]) -> None:
        """Add results that are stored, not sent, to the counts of the response's metrics."""
        for line in lines:
            self.size += len(line)
            self.count += 1

    def rows(self, lines: Iterable[bytes]) -> bytes:
        """Encode results as elements of the JSON array `results`, each after a comma except the first of the
        response.
        """
        results: list[bytes] = []
        for line in lines:
            self.size += len(line)
            line_text = msgspec.json.format(line, indent=2) if self.pretty else line
            results.append((b",\n" if self.count else b"\n") + line_text)
            self.count += 1
        return b"".join(results)

    def tail(self, warnings: Iterable[SqlppError] = (), failure: Failure | None = None) -> bytes:
        """Return the end of the body: the bracket that closes `results`, then status, errors, warnings and metrics."""
        return self.tail_with_outcome(self.outcome(warnings, failure))

    def tail_with_outcome(self, outcome: bytes) -> bytes:
        """Return the end of the body for a stored outcome: the bracket that closes `results`, then the fields of
        `outcome`.
        """
        return (b"\n]," if self.has_results else b"") + outcome[1:]

    def outcome(self, warnings: Iterable[SqlppError] = (), failure: Failure | None = None) -> bytes:
        """Return the fields after the results as a JSON object: status, errors, warnings, metrics."""
        warnings = tuple(warnings)
        rest = self._warning_field(warnings)
        if failure is not None:
            rest["errors"] = [error_entry(failure)]
        if self.has_results:
            rest["cachedPlan"] = self.uses_cached_plan
        rest["status"] = status_word(failure)
        rest["metrics"] = self._metrics(warnings=len(warnings), errors=0 if failure is None else 1)
        return msgspec.json.encode(rest)

    def _warning_field(self, warnings: Iterable[SqlppError]) -> dict[str, object]:
        """Return the field `warnings` with at most `max-warnings` warnings; an empty dict if there are none."""
        listed = [error_entry(each) for each in warnings][: self._warnings_max]
        return {"warnings": listed} if listed else {}

    def body_with_handle(self, status: str, handle: str, *, warnings: Iterable[SqlppError] = ()) -> bytes:
        """Return a complete body that has a handle in place of results.

        `status` is the value of the field `status`, such as `running`; `handle` is the URL of the status or results.
        """
        signature = self._signature if self.has_results and self._plans else b""
        self.has_results = False
        rest = self._warning_field(warnings) | {"status": status, "handle": handle}
        return self.head() + signature + msgspec.json.encode(rest)[1:]

    def error_body(self, warnings: Iterable[SqlppError], failure: Failure) -> bytes:
        """Return the complete body of a failed request, without results."""
        self.has_results, self.count, self.size = False, 0, 0
        return self.head() + self.tail(warnings, failure)

    def _metrics(self, *, warnings: int, errors: int) -> dict[str, object]:
        now = time.perf_counter()
        nonzero_counts = {name: count for name, count in (("warningCount", warnings), ("errorCount", errors)) if count}
        return {
            "elapsedTime": _format_duration(now - self._began),
            "executionTime": _format_duration(now - self._ran),
            "resultCount": self.count,
            "resultSize": self.size,
            "processedObjects": 0,
            **nonzero_counts,
        }


def status_word(failure: Failure | None) -> str:
    """Return the field `status` that AsterixDB's clients read: `success`, `timeout` or `fatal`."""
    if failure is None:
        return "success"
    return "timeout" if isinstance(failure, RequestEnded) and failure.late else "fatal"


def _format_duration(seconds: float) -> str:
    return f"{seconds:.6f}s" if seconds >= 1 else f"{seconds * 1000:.6f}ms"
