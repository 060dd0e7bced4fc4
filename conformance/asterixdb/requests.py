# SPDX-License-Identifier: Apache-2.0
"""The request of a step's file: its text, and the parameters in its comments.

May import `suite`. It must not know how a request is sent.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

if TYPE_CHECKING:
    from conformance.asterixdb.suite import Step

_PARAMETER: Final = re.compile(
    r"^\s*(?:--|//|#)\s*param\s+(?P<name>[\w$-]+)(?::(?P<type>\w+))?=(?P<value>.*)$", re.MULTILINE
)
_REMARK: Final = re.compile(
    r"^\s*(?:--|//|#)\s*(?P<name>requesttype|handlevariable|statuscode|body|compareunordered|ignoreextrafields|extractresult|extractstatus|maxresultreads)["
    r" =:]*(?P<value>.*)$",
    re.MULTILINE,
)
_BODY: Final = re.compile(r"^--body=(?P<value>.*)$", re.MULTILINE | re.DOTALL)
_LICENCE: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_NODE: Final = re.compile(r"asterix_nc\d://(?=(data|target)/)")
MACRO: Final = "macro start"
TEXT_KINDS: Final = (
    "async",
    "cachedplan",
    "ddl",
    "deferred",
    "delete-syntax-change",
    "insert-syntax",
    "metrics",
    "parse",
    "plans",
    "pollquery",
    "profile",
    "query",
    "signature",
    "update",
    "validate",
)
RESULT_KINDS: Final = (
    "async",
    "deferred",
    "metrics",
    "plans",
    "pollquery",
    "profile",
    "query",
    "signature",
    "validate",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRequest:
    """A request to send: to a path, or with a statement to the query service."""

    kind: str
    statement: str = ""
    parameters: dict[str, object] = field(default_factory=dict)
    as_json: bool = False
    method: str = "POST"
    path: str = ""
    body: str | None = None
    handle: str = ""
    status: int | None = None
    part: str = ""
    """The field of the response to which the expected result belongs; empty for the results or the whole response."""

    @property
    def has_results(self) -> bool:
        """Return whether the step has a file of expected results."""
        return self.kind in RESULT_KINDS or self.kind.endswith((".http", ".uri"))


def with_local_paths(text: str, files: str) -> str:
    """Return a text in which paths of AsterixDB's data begin with `files`, such as `file:///checkout/asterix-app/`."""
    return _NODE.sub(files, text)


def request_of(step: Step, *, files: str) -> StepRequest:
    """Read a step's request. The paths of its files begin with `files`."""
    text = step.read()
    remarks = {match["name"]: match["value"].strip() for match in _REMARK.finditer(text)}
    status = int(remarks["statuscode"]) if remarks.get("statuscode", "").isdigit() else None
    handle = remarks.get("handlevariable", "")
    if step.kind.endswith((".http", ".uri")):
        part = "status" if "extractstatus" in remarks else ""
        return _web_request(step.kind, text, handle=handle, status=status, part=part)
    as_json = "json" in remarks.get("requesttype", "")
    parameters: dict[str, object] = {}
    for match in _PARAMETER.finditer(text):
        value: object = match["value"].strip()
        if as_json and match["type"] == "json":
            try:
                value = json.loads(match["value"])
            except ValueError:
                as_json = False
        parameters[match["name"]] = value
    if "maxresultreads" in remarks:
        parameters["max-result-reads"] = remarks["maxresultreads"]
    kind = step.kind.removesuffix(".sqlpp")
    statement = with_local_paths(text, files)
    part = "signature" if kind == "signature" else ""
    return StepRequest(
        kind=kind, statement=statement, parameters=parameters, as_json=as_json, handle=handle, status=status, part=part
    )


def _web_request(kind: str, text: str, *, handle: str, status: int | None, part: str) -> StepRequest:
    body = _BODY.search(text)
    bare = _LICENCE.sub("", text[: body.start()] if body else text)
    paths = [
        line.strip() for line in bare.splitlines() if line.strip() and not line.strip().startswith(("--", "//", "#"))
    ]
    method = {"get": "GET", "pollget": "GET", "post": "POST", "delete": "DELETE"}.get(kind.partition(".")[0], "GET")
    path = paths[0] if paths else ""
    query_string = urlencode([(match["name"], match["value"].strip()) for match in _PARAMETER.finditer(bare)])
    if query_string and method == "GET":
        path = f"{path}?{query_string}"
    return StepRequest(
        kind=kind,
        method=method,
        path=path,
        handle=handle,
        status=status,
        part=part,
        body=None if body is None else body["value"].strip(),
    )
