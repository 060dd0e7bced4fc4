# SPDX-License-Identifier: Apache-2.0
"""Runs one case: sends its steps in order, and compares results and errors.

May import this package. It must not know how a server is started. As in AsterixDB's own test framework, the n-th error
must be the n-th expected one, the n-th step with results belongs to the n-th file, and a case ends at the first failing
step.
"""

from __future__ import annotations

import http.client
import json
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

from conformance.asterixdb.requests import StepRequest, request_of, with_local_paths
from conformance.asterixdb.texts import lines_of, text_difference
from conformance.asterixdb.values import UnreadableResult, difference, read_values
from conformance.asterixdb.world import Answer

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.asterixdb.suite import Case, Step
    from conformance.asterixdb.world import QueryService

PASSED, DIFFERS, REFUSED, OTHER_ERROR, NOT_ELIGIBLE = OUTCOMES = (
    "passed",
    "differs",
    "refused",
    "other error",
    "not eligible",
)
_CODE: Final = re.compile(r"\b(ASX|HYR)\d{4}\b")
_ORDER: Final = re.compile(r"\border\s+by\b", re.IGNORECASE)
_PATTERN: Final = re.compile(r"R\{(.*?)\}", re.DOTALL)
_STATUS: Final = re.compile(r"HTTP/1\.1 (\d{3})\b")
"""An expected error that is the status of the response."""
_POLL_S: Final = 0.5
ACCEPTS: Final = {
    "Text": "application/x-adm",
    "Clean-JSON": "application/json",
    "Lossless-JSON": "application/json; lossless=true",
    "Lossless-ADM-JSON": "application/json; lossless-adm=true",
    "CSV": "text/csv",
    "CSV_Header": "text/csv; header=present",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOutcome:
    """The outcome of a case, the step that decided it, and the reason.

    `texts` counts the results of the case in ADM or CSV that are equal as values. `text_differences` has an entry for
    each of them that is not equal to AsterixDB's byte for byte: the class of difference, the file, and two lines.
    """

    key: str
    group: str
    outcome: str
    reason: str = ""
    step: str = ""
    seconds: float = 0.0
    texts: int = 0
    text_differences: list[str] = field(default_factory=list)


class _Failure(Exception):
    def __init__(self, outcome: str, reason: str) -> None:
        super().__init__(reason)
        self.outcome, self.reason = outcome, reason


@dataclass(kw_only=True)
class _CaseRun:
    case: Case
    service: QueryService
    files: str
    until: float
    errors: int = 0
    results: int = 0
    texts: int = 0
    text_differences: list[str] = field(default_factory=list)
    handles: dict[str, str] = field(default_factory=dict)

    def step(self, step: Step) -> None:
        request = request_of(step, files=self.files)
        answer = self._send(request)
        if request.status is not None and answer.status != request.status:
            raise _Failure(OTHER_ERROR, f"status {answer.status} where {request.status} is expected")
        is_web = request.path != "" and request.status is not None
        if answer.error and not is_web and not self._compares_whole():
            self._meet_error(answer)
            return
        self._keep_handle(request, answer)
        if request.has_results:
            self._compare(request, answer)

    def _compares_whole(self) -> bool:
        """Return whether the next expected result is a whole response, which may contain an error."""
        return self.results < len(self.case.expected) and self.case.expected[self.results].kind == "regexjson"

    def _send(self, request: StepRequest) -> Answer:
        if time.monotonic() > self.until:
            raise _Failure(OTHER_ERROR, "time limit of the case")
        accept = ACCEPTS.get(self.case.compare)
        if request.path:
            return self._send_web(request, accept=accept)
        parameters = dict(request.parameters)
        if request.kind in ("async", "deferred"):
            parameters.setdefault("mode", request.kind)
        return self.service.state(request.statement, parameters, as_json=request.as_json, accept=accept)

    def _send_web(self, request: StepRequest, *, accept: str | None) -> Answer:
        path = request.path
        if path.startswith("$"):
            url = urlsplit(self.handles.get(path[1:], ""))
            path = url.path + (f"?{url.query}" if url.query else "")
        body = None if request.body is None else request.body.encode()
        kind = None if body is None else "application/json"
        path = quote(path, safe="/?&=%;:+,@$!*'()-._~")
        answer = self.service.ask(request.method, path, body=body, kind=kind, accept=accept)
        while (
            request.kind.startswith("poll")
            and answer.body.get("status") in ("running", "queued")
            and time.monotonic() < self.until
        ):
            time.sleep(_POLL_S)
            answer = self.service.ask(request.method, path, accept=accept)
        return answer

    def _keep_handle(self, request: StepRequest, answer: Answer) -> None:
        handle = answer.body.get("handle")
        if isinstance(handle, str):
            for name in filter(None, (request.handle, "status" if request.kind == "async" else "result")):
                self.handles[name] = handle

    def _meet_error(self, answer: Answer) -> None:
        """Compare an error with the next expected one. Raises _Failure."""
        self.errors += 1
        error = answer.error
        if self.errors > len(self.case.errors):
            late = answer.body.get("status") == "timeout"
            outcome = OTHER_ERROR if late or answer.status >= 500 else REFUSED
            raise _Failure(outcome, f"time limit: {error}" if late else error)
        expected = self.case.errors[self.errors - 1]
        status = _STATUS.match(expected)
        if not (is_same_error(expected, error) if status is None else int(status[1]) == answer.status):
            raise _Failure(OTHER_ERROR, f"another error: expected {expected!r:.200}, found {error!r:.300}")

    def _compare(self, request: StepRequest, answer: Answer) -> None:
        if self.results >= len(self.case.expected):
            if self.errors < len(self.case.errors):
                raise _Failure(OTHER_ERROR, f"no error: expected {self.case.errors[self.errors]!r:.200}")
            raise _Failure(NOT_ELIGIBLE, "results absent")
        expected = self.case.expected[self.results]
        self.results += 1
        text = with_local_paths(expected.read(), self.files)
        if expected.kind == "ignore":
            return
        if expected.kind.startswith("regex") or (expected.kind == "jsonl" and "R{" in text):
            _match(text, answer, whole=expected.kind == "regexjson")
            return
        ordered = _ORDER.search(_top_level(request.statement)) is not None
        if self.case.compare.startswith("CSV") or expected.kind == "csv":
            _compare_lines(text, answer)
            self.texts += 1
            return
        try:
            expected_values = read_values(text)
        except UnreadableResult as reason:
            raise _Failure(NOT_ELIGIBLE, f"the expected result is not readable: {reason}") from None
        actual_values = [answer.body.get(request.part)] if request.part else _found_values(answer)
        mismatch = difference(expected_values, actual_values, ordered=ordered)
        if mismatch is not None:
            raise _Failure(DIFFERS, mismatch)
        if "adm" in str(answer.body.get("type", "")) and expected.kind == "adm" and not request.part:
            self.texts += 1
            self._keep_text_difference(text, _text_of(answer), ordered=ordered, name=expected.file.name)

    def _keep_text_difference(self, expected: str, answer: str, *, ordered: bool, name: str) -> None:
        difference = text_difference(expected, answer, ordered=ordered)
        if difference is not None:
            lines, answered = (lines_of(each, ordered=ordered) for each in (expected, answer))
            pair = next((both for both in zip(lines, answered, strict=False) if both[0] != both[1]), ("", ""))
            first = next((at for at, (one, other) in enumerate(zip(*pair, strict=False)) if one != other), 0)
            start = max(0, first - 40)
            expected, answer = (line[start : start + 300] for line in pair)
            self.text_differences.append(f"{difference}: {name}: expected {expected}, answer {answer}")


def run_case(case: Case, service: QueryService, *, root: Path) -> CaseOutcome:
    """Send a case's steps, whose files are below `root`.

    A case lasts at most twice the statement timeout, and longer if it has over 20 steps.
    """
    began = time.monotonic()
    files = f"{service.file_scheme}://{root}/"
    run = _CaseRun(
        case=case, service=service, files=files, until=began + service.limit_s * max(2.0, len(case.steps) / 10)
    )
    at = ""

    def ended(outcome: str, reason: str = "") -> CaseOutcome:
        seconds = round(time.monotonic() - began, 2)
        return CaseOutcome(
            key=case.key,
            group=case.group,
            outcome=outcome,
            reason=reason,
            step=at,
            seconds=seconds,
            texts=run.texts,
            text_differences=run.text_differences,
        )

    try:
        for step in case.steps:
            at = step.file.name
            run.step(step)
    except _Failure as failure:
        return ended(failure.outcome, failure.reason)
    except TimeoutError:
        return ended(OTHER_ERROR, "time limit: no answer")
    except (OSError, http.client.HTTPException) as error:
        return ended(OTHER_ERROR, f"connection: {error!r:.200}")
    if run.errors < len(case.errors):
        return ended(OTHER_ERROR, f"no error: expected {case.errors[run.errors]!r:.200}")
    at = ""
    return ended(PASSED)


def is_same_error(expected: str, actual: str) -> bool:
    """Return whether an error is the expected one: it has the text or the code. A syntax error without code is ASX1001.

    AsterixDB's tests write `{0}` for the name of a dataverse.
    """
    if expected and _names_pattern(_bare(expected)).search(_bare(actual)) is not None:
        return True
    expected_code, actual_code = _CODE.search(expected), _CODE.search(actual)
    if expected_code is not None:
        return actual_code is not None and expected_code[0] == actual_code[0]
    if re.search(r"syntax error|encountered|lexical error", expected, re.IGNORECASE):
        return actual_code is not None and actual_code[0] == "ASX1001"
    return False


def _names_pattern(text: str) -> re.Pattern[str]:
    return re.compile(".+?".join(map(re.escape, re.split(r"\{\d\}", text))), re.DOTALL)


def _bare(message: str) -> str:
    """Return a message on one line and without its position."""
    return " ".join(re.sub(r"\(in line \d+, at column \d+\)", "", message).split())


def _found_values(answer: Answer) -> list[object]:
    """Return the results of an answer; ADM text is parsed. A statement that is only a comment has none."""
    results = answer.body.get("results", [] if "status" in answer.body else answer.body or [])
    if not isinstance(results, list):
        return [results]
    if "adm" in str(answer.body.get("type", "")):
        try:
            return [value for text in results for value in read_values(str(text))]
        except UnreadableResult as reason:
            raise _Failure(DIFFERS, f"the result is not ADM: {reason}") from None
    return results


def _match(text: str, answer: Answer, *, whole: bool) -> None:
    """Compare a response with a pattern in which `R{…}` is a regular expression. Raises _Failure."""
    if whole:
        try:
            mismatch = _whole_difference(json.loads(text), answer.body, "")
        except ValueError:
            raise _Failure(NOT_ELIGIBLE, "the expected result is not readable") from None
        if mismatch is not None:
            raise _Failure(DIFFERS, mismatch)
        return
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines and all(len(line) > 1 and line[0] == line[-1] == "/" for line in lines):
        body = json.dumps(answer.body)
        absent = next((line for line in lines if re.search(line[1:-1], body) is None), None)
        if absent is not None:
            raise _Failure(DIFFERS, f"expected {absent}, found {body[:160]}")
        return
    result_texts = [each if isinstance(each, str) else json.dumps(each) for each in _raw_results(answer)]
    if len(lines) != len(result_texts) or not all(map(_fits, lines, result_texts)):
        raise _Failure(DIFFERS, f"expected {' '.join(lines)[:160]}, found {' '.join(result_texts)[:160]}")


def _raw_results(answer: Answer) -> list[object]:
    results = answer.body.get("results", [answer.body])
    return results if isinstance(results, list) else [results]


def _fits(pattern: str, text: str) -> bool:
    if "R{" in pattern:
        parts = _PATTERN.split(pattern)
        pattern = "".join(part if at % 2 else re.escape(part) for at, part in enumerate(parts))
    try:
        return re.search(re.sub(r"\\?\s+", r"\\s*", pattern), text.strip()) is not None
    except re.error:
        return False


def _whole_difference(expected: object, actual: object, where: str) -> str | None:
    if isinstance(expected, str) and "R{" in expected:
        actual_text = actual if isinstance(actual, str) else json.dumps(actual)
        return None if _fits(expected, actual_text) else f"{where}: expected {expected[:80]}, found {actual_text[:80]}"
    if isinstance(expected, dict):
        if not isinstance(actual, dict):
            return f"{where}: no object"
        for name, value in expected.items():
            if name not in actual and value not in ({}, "R{.*}"):
                return f"{where}.{name} is absent"
            mismatch = _whole_difference(value, actual.get(name, {} if value == {} else ""), f"{where}.{name}")
            if mismatch is not None:
                return mismatch
        return None
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(actual) != len(expected):
            return f"{where}: another list"
        return next(
            filter(None, (_whole_difference(*both, where) for both in zip(expected, actual, strict=True))), None
        )
    return (
        None if str(expected).strip() == str(actual).strip() else f"{where}: expected {expected}, found {actual!r:.80}"
    )


def _compare_lines(text: str, answer: Answer) -> None:
    """Compare results as lines of CSV. Raises _Failure."""
    lines, answer_lines = (lines_of(each, ordered=False) for each in (text, _text_of(answer)))
    if lines != answer_lines:
        raise _Failure(DIFFERS, f"expected {str(lines)[:160]}, found {str(answer_lines)[:160]}")


def _text_of(answer: Answer) -> str:
    """Return the results of an answer as lines."""
    return "".join(each if each.endswith("\n") else f"{each}\n" for each in map(str, _raw_results(answer)))


def _top_level(statement: str) -> str:
    """Return a statement's text without comments, strings and the content of brackets."""
    bare = re.sub(
        r"/\*.*?\*/|--[^\n]*|(?<!:)//[^\n]*|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'", " ", statement, flags=re.DOTALL
    )
    top_characters, depth = [], 0
    for character in bare:
        depth += (character in "([{") - (character in ")]}")
        if depth <= 0:
            top_characters.append(character)
    return "".join(top_characters)
