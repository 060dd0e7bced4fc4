# SPDX-License-Identifier: Apache-2.0
"""Cases of an operation, generated from its document and existing names, sent as one caller; each answer is compared
with the document.

May import schemathesis. Knows nothing of the meaning of an operation.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import requests
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode, openapi, serializer
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.http.test_coverage import BODIES, NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypothesis.strategies import DrawFn, SearchStrategy
    from schemathesis import Case
    from schemathesis.core.transport import Response
    from schemathesis.schemas import APIOperation

    from conformance.openapi.world import Caller, World

FOLDER = Path(__file__).parents[2] / "openapi"
PROTOCOLS = tuple(sorted(file.stem for file in FOLDER.glob("*.json")))


@serializer("application/vnd.apache.arrow.stream")
def _arrow(_context: object, value: object) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value, default=str).encode()


def nothing_undocumented(_context: object, response: Response, case: Case) -> None:
    """Check that there is no body if the document has none. Raises AssertionError."""
    documented_response = case.operation.definition.raw["responses"].get(str(response.status_code), {})
    if "$ref" not in documented_response and "content" not in documented_response:
        assert not response.content, "An undocumented body"


ANSWER_S = 120
"""Longer than any timeout of the server of `world`: a request that waits for changes may take 90 s on a busy
machine.
"""
CHECKS = (
    not_a_server_error,
    nothing_undocumented,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
)
OTHERS = {
    "c": ("main", "lance", "models", "files", "topics", "gone"),
    "m": ("lake", "gone"),
    "s": ("a", "gone"),
    "namespace": ("a", "gone"),
    "prefix": ("lake.main", "lake.lance", "lake.gone"),
    "p": ("flights", "nyc", "gone"),
    "r": ("hands", "readers"),
    "u": ("ana", "reader", "owner"),
    "type": (
        "METALAKE",
        "CATALOG",
        "SCHEMA",
        "TABLE",
        "COLUMN",
        "ROLE",
        "TAG",
        "VIEW",
        "FUNCTION",
        "MODEL",
        "FILESET",
        "TOPIC",
        "JOB",
    ),
    "fullName": (
        "lake",
        "main",
        "main.a",
        "main.a.t",
        "main.a.t.id",
        "hands",
        "red",
        "main.a.v",
        "models.a.churn",
        "files.a.f",
        "nyc",
    ),
    "namespace_id": ("$", "lance", "lance$a", "lance$gone"),
    "table_id": ("lance$a$t", "lance$a$gone"),
    "v": ("v", "red", "1", "0", "gone"),
    "version": ("0", "1", "-1", "9999999999999999999999"),
    "id": ("1", "0", "x"),
}
"""Existing names by path parameter; others are named as in the coverage test."""
HURDLES = ("", " ", "\x00", "a/b", "ä", "%", "..", "a" * 300, "\U0001f600", "'", '"', "$", "\x1f", "a\nb")
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from((*HURDLES, "a", "t", "main", "lake")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


class Wrong(NamedTuple):
    """A finding; the same one for an operation is reported once."""

    operation: str
    status: int
    title: str
    caller: str
    detail: str

    def __str__(self) -> str:
        """Return a line for the operation, and how to reproduce it."""
        return f"{self.operation} as {self.caller}: {self.status}: {self.title}\n{self.detail}"


@dataclass
class ProtocolResults:
    """The results of one protocol."""

    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Counts by caller and status."""
    wrong: dict[tuple[str, int, str], Wrong] = field(default_factory=dict)

    @property
    def cases(self) -> int:
        """The number of sent requests."""
        return self.statuses.total()


def operations(protocol: str) -> list[APIOperation]:
    """Every operation of a protocol's document."""
    schema = openapi.from_dict(json.loads((FOLDER / f"{protocol}.json").read_text(encoding="utf-8")))
    return [result.ok() for result in schema.get_all_operations()]


def ask_all(
    world: World, chosen: Sequence[APIOperation], *, callers: Sequence[Caller], cases: int, number: int
) -> ProtocolResults:
    """Send the given number of cases of each operation as each caller; `number` is the seed."""
    results = ProtocolResults()
    for operation in chosen:
        for caller in callers:
            if _ask(world, operation, caller, results, cases=cases, number=number):
                world.mend()
    return results


def _ask(
    world: World, operation: APIOperation, caller: Caller, results: ProtocolResults, *, cases: int, number: int
) -> bool:
    """Send the cases; returns whether one may have changed something."""
    credentials = cycle(caller.credentials)
    done: list[int] = []

    @seed(number)
    @settings(
        max_examples=cases,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(_cases(operation))
    def send(case: Case) -> None:
        case.headers = {key: value for key, value in (case.headers or {}).items() if key.lower() != "authorization"}
        if (credential := next(credentials)) is not None:
            case.headers["authorization"] = credential
        try:
            response = case.call(base_url=world.uri, timeout=ANSWER_S)
        except (requests.exceptions.InvalidHeader, requests.exceptions.InvalidJSONError):
            return  # an invalid request that cannot be sent
        except requests.exceptions.RequestException as error:
            key = (operation.label, 0, "No answer")
            results.wrong.setdefault(key, _wrong(key, caller, detail=f"{error}\n{case.as_curl_command()}"))
            return
        done.append(response.status_code)
        results.statuses[caller.name, response.status_code] += 1
        _judge(case, response, caller, results)

    send()
    return operation.method not in ("get", "head") and any(status < 300 or status >= 500 for status in done)


def _wrong(key: tuple[str, int, str], caller: Caller, *, detail: str) -> Wrong:
    label, status, title = key
    return Wrong(operation=label, status=status, title=title, caller=caller.name, detail=detail)


def _judge(case: Case, response: Response, caller: Caller, results: ProtocolResults) -> None:
    """Compare an answer with the document."""
    try:
        case.validate_response(response, checks=list(CHECKS))
    except FailureGroup as failures:
        for failure in failures.exceptions:
            title = failure.title if isinstance(failure, Failure) else str(failure)
            key = (case.operation.label, response.status_code, title)
            detail = f"{failure}\n{case.as_curl_command()}\n{response.text[:500]}"
            results.wrong.setdefault(key, _wrong(key, caller, detail=detail))


def _cases(operation: APIOperation) -> SearchStrategy[Case]:
    """Generate cases that match the document, or nearly do; most of them use existing names, many a meaningful body."""
    wild = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    if operation.body:
        wild |= operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
    definition = operation.definition.raw
    kinds = list(definition.get("requestBody", {"content": ()})["content"])
    right = BODIES.get(definition["operationId"].removesuffix("-default-catalog")) if kinds else None

    @st.composite
    def tamed(draw: DrawFn) -> Case:
        case = draw(wild)
        for name in case.path_parameters or {}:
            if draw(st.integers(0, 9)) < 9:
                case.path_parameters[name] = draw(st.sampled_from((NAMES.get(name, "x"), *OTHERS.get(name, ()))))
        if draw(st.integers(0, 2)) < 2:
            case.query, case.headers = {}, {}
        if right is not None and draw(st.integers(0, 2)) < 2:
            case.body = draw(_bent(right)) if isinstance(right, (dict, list)) else right
            case.media_type = kinds[0]
        return case

    return tamed()


def _bent(value: object) -> SearchStrategy[object]:
    """Generate a value with at most a few wrong parts."""
    if isinstance(value, dict):
        parts = st.fixed_dictionaries({key: _bent(each) for key, each in value.items()})
    elif isinstance(value, list):
        parts = st.tuples(*map(_bent, value)).map(list)
    else:
        parts = st.just(value)
    return st.integers(0, 11).flatmap(lambda roll: _VALUES if roll == 11 else parts)
