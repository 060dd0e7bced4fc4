# SPDX-License-Identifier: Apache-2.0
"""The servers to send cases to: one of the product's own, started on a scratch directory, or a running AsterixDB.

Each is emptied after each case.

May import the demo's server starter and the standard library. It must not know the suite.
"""

from __future__ import annotations

import http.client
import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode, urlsplit

from examples.demo.server import running_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

BUILT_IN: Final = ("Default", "Metadata")
GRACE_S: Final = 30
_LEFT_IN_DEFAULT: Final = (
    (
        "view",
        (
            "select value d.DatasetName from Metadata.`Dataset` d where d.DataverseName = 'Default' and d.DatasetType ="
            " 'VIEW'"
        ),
    ),
    (
        "dataset",
        (
            "select value d.DatasetName from Metadata.`Dataset` d where d.DataverseName = 'Default' and d.DatasetType"
            " != 'VIEW'"
        ),
    ),
    ("synonym", "select value s.SynonymName from Metadata.`Synonym` s where s.DataverseName = 'Default'"),
    ("type", "select value t.DatatypeName from Metadata.`Datatype` t where t.DataverseName = 'Default'"),
)
_FUNCTIONS: Final = "select f.DataverseName, f.Name, f.Arity from Metadata.`Function` f"


@dataclass(frozen=True, slots=True)
class Answer:
    """A server's answer: the status, the text, and the JSON object if it is one."""

    status: int
    text: str
    body: dict[str, object]

    @property
    def error(self) -> str:
        """The first error's text; empty for a success."""
        errors = self.body.get("errors")
        if isinstance(errors, list) and errors:
            return str(errors[0].get("msg", errors[0])) if isinstance(errors[0], dict) else str(errors[0])
        return "" if self.status < 400 else self.text[:300] or f"status {self.status}"


class QueryService:
    """A query service: sends statements and other requests."""

    file_scheme = "file"
    """The scheme of the paths of files on the server's machine."""
    settings: Mapping[str, str] = MappingProxyType({"compiler.ordered.fields": "false"})
    """Settings of the suite's servers (`cc.conf`) that affect results, sent with each statement."""

    def __init__(self, uri: str, token: str, *, limit_s: float) -> None:
        self._address = urlsplit(uri)
        self._headers = {"Authorization": f"Bearer {token}"}
        self.limit_s = limit_s

    def ask(
        self, method: str, path: str, *, body: bytes | None = None, kind: str | None = None, accept: str | None = None
    ) -> Answer:
        """Send a request. Raises OSError, TimeoutError and http.client.HTTPException."""
        headers = dict(self._headers)
        if kind is not None:
            headers["Content-Type"] = kind
        if accept is not None:
            headers["Accept"] = accept
        connection = http.client.HTTPConnection(self._address.netloc, timeout=self.limit_s + GRACE_S)
        try:
            connection.request(method, path, body=body, headers=headers)
            response = connection.getresponse()
            text = response.read().decode("utf-8", "replace")
        finally:
            connection.close()
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            document = None
        return Answer(response.status, text, document if isinstance(document, dict) else {})

    def state(
        self,
        statement: str,
        parameters: dict[str, object] | None = None,
        *,
        as_json: bool = False,
        accept: str | None = None,
    ) -> Answer:
        """Send a statement with its parameters, as a form or as JSON."""
        fields = {
            "statement": statement,
            "timeout": f"{self.limit_s:g}s",
            **self.settings,
            **(parameters or {}),
        }
        body = (
            json.dumps(fields).encode()
            if as_json
            else urlencode({name: str(value) for name, value in fields.items()}).encode()
        )
        kind = "application/json" if as_json else "application/x-www-form-urlencoded"
        return self.ask("POST", "/query/service", body=body, kind=kind, accept=accept)

    def values(self, statement: str) -> list[object]:
        """Return the results of a query; none if it fails."""
        results = self.state(statement).body.get("results")
        return results if isinstance(results, list) else []

    def parts(self, name: str) -> list[str]:
        """Return the parts of a dataverse's canonical name: `@` escapes `@` and `.`."""
        parts, at = [""], 0
        while at < len(name):
            if name[at] == "@" and at + 1 < len(name):
                at += 1
                parts[-1] += name[at]
            elif name[at] == ".":
                parts.append("")
            else:
                parts[-1] += name[at]
            at += 1
        return parts

    def _drop_functions(self) -> None:
        """Drop all functions first, because functions of two dataverses may need each other, so that neither could be
        dropped.
        """
        for _ in range(3):
            for each in self.values(_FUNCTIONS):
                if isinstance(each, dict) and each["DataverseName"] not in BUILT_IN:
                    name = ".".join(map(_quoted, (*self.parts(str(each["DataverseName"])), str(each["Name"]))))
                    self.state(f"drop function {name}@{each['Arity']}")

    def empty(self) -> None:
        """Drop all dataverses, and the content of `Default`."""
        for attempt in range(4):
            left = [str(each) for each in self.values("select value d.DataverseName from Metadata.`Dataverse` d")]
            left = [each for each in left if each not in BUILT_IN]
            if not left:
                break
            if attempt:
                self._drop_functions()
            for name in left:
                answer = self.state(f"drop dataverse {'.'.join(map(_quoted, self.parts(name)))} if exists")
                if attempt and answer.error:
                    print(f"dataverse {name} is left: {answer.error:.200}", flush=True)
        for kind, query in _LEFT_IN_DEFAULT:
            for name in self.values(query):
                self.state(f"drop {kind} {_quoted(str(name))} if exists")
        for each in self.values(f"{_FUNCTIONS} where f.DataverseName = 'Default'"):
            if isinstance(each, dict):
                self.state(f"drop function {_quoted(str(each['Name']))}@{each['Arity']}")


class AsterixDb(QueryService):
    """AsterixDB's own query service, for comparison. Its canonical names have `/` between their parts since 0.9.7."""

    file_scheme = "asterix_nc1"
    settings: Mapping[str, str] = MappingProxyType({})
    """None: the running server has its own."""

    def __init__(self, uri: str, *, limit_s: float) -> None:
        super().__init__(uri, "", limit_s=limit_s)

    def parts(self, name: str) -> list[str]:
        """Return the parts of a dataverse's canonical name."""
        return name.split("/")


def _quoted(name: str) -> str:
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


@contextmanager
def served(work: Path, *, roots: list[Path], limit_s: float, memory: str = "2g") -> Iterator[QueryService]:
    """Serve a new lake in `work` for the body of a `with`. Statements may read files below `roots`."""
    os.environ["LIMNOS__SQLPP__FILE_ROOTS"] = ",".join(map(str, roots))
    os.environ["LIMNOS__SQLPP__TIMEOUT_S"] = f"{limit_s:g}"
    os.environ["LIMNOS__ENGINE__MEMORY"] = memory
    os.environ["LIMNOS__ENGINE__IDLE_S"] = "3600"
    with running_server(work / "data", log=work / "server.log") as server:
        token = (work / "data" / "admin.token").read_text().strip()
        yield QueryService(server.uri, token, limit_s=limit_s)
