# SPDX-License-Identifier: Apache-2.0
"""The same requests to Lance's own server and to this one: `differences.md` lists every difference with its reason.

Job: send, remove values that must differ (ids, times, locations, texts), compare, and compare the differences with the
page. May import Lance's server, this package and the standard library.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pyarrow as pa

import lance.namespace
from conformance.lance.reasons import ADDED, REASONS
from conformance.lance.requests import REQUESTS, ReferenceRequest

PAGE = Path(__file__).with_name("differences.md")
_VARY = frozenset(
    {
        "location",
        "table_uri",
        "transaction_id",
        "e_tag",
        "manifest_path",
        "manifest_size",
        "timestamp_millis",
        "manifestSize",
        "createAt",
        "index_uuid",
        "created_at",
        "size_bytes",
        "total_bytes",
        "uuid",
        "_rowid",
    }
)
"""Fields with unpredictable values: only their presence counts."""


SHOWN = 300


class Difference(NamedTuple):
    """The different answers of two servers to one request."""

    name: str
    ours: str
    theirs: str
    why: str

    def __str__(self) -> str:
        cells = (self.name, self.ours, self.theirs, self.why)
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


class Answer(NamedTuple):
    """A status, with a code if there is one, and the content of the body, if it is significant."""

    head: str
    body: object = None

    def __str__(self) -> str:
        if self.body is None:
            return self.head
        text = json.dumps(self.body, sort_keys=True, ensure_ascii=False)
        if len(text) > SHOWN:  # the beginning, and a hash of the whole
            text = f"{text[:SHOWN]}… ({hashlib.sha256(text.encode()).hexdigest()[:8]})"
        return f"{self.head} {text}"

    def without(self, fields: set[str]) -> Answer:
        """Return the same answer without some fields."""
        if not isinstance(self.body, dict):
            return self
        return self._replace(body={key: value for key, value in self.body.items() if key not in fields})

    def more_than(self, other: Answer) -> set[str]:
        """Return the fields that the other answer lacks and that are known additions of this server."""
        if not isinstance(self.body, dict) or not isinstance(other.body, dict):
            return set()
        return (set(self.body) - set(other.body)) & set(ADDED)


class Server:
    """A server that receives one request after the other."""

    def __init__(self, uri: str, *, base: str = "", token: str | None = None) -> None:
        parts = urlsplit(uri)
        self._base = base
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}

    def answer(self, request: ReferenceRequest) -> Answer:
        """Send a request, and return the answer without values that must differ."""
        body, kind = request.sent
        headers = self._headers | ({"content-type": kind} if kind else {})
        self._connection.close()  # otherwise a connection that the server closed after the last answer would count as no answer
        try:
            self._connection.request(request.method, self._base + request.address, body, headers)
            response = self._connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException) as error:
            return Answer(f"no answer, {'broken off' if isinstance(error, OSError) else 'no HTTP'}")
        return answer_of(response.status, response.headers.get("content-type", ""), data)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def answer_of(status: int, kind: str, data: bytes) -> Answer:
    """Return an answer in short form: an error is its status and code."""
    if "arrow" in kind and status == 200:
        return Answer(str(status), _settled(pa.ipc.open_file(io.BytesIO(data)).read_all().to_pylist()))
    if not data:
        return Answer(f"{status} nothing")
    try:
        body = json.loads(data)
    except ValueError:
        return Answer(f"{status} no JSON")
    if status >= 300:
        return Answer(f"{status}/{body.get('code')}" if isinstance(body, dict) else f"{status} no object")
    return Answer(f"{status} a text") if isinstance(body, str) else Answer(str(status), _settled(body))


def _settled(value: object, name: str = "") -> object:
    """Return a value without varying parts; empty and null values count as absent."""
    if name in _VARY:
        return "…"
    if name == "index_details":
        return _settled(json.loads(str(value)))
    if name == "schema" and isinstance(value, dict):
        return ", ".join(f"{each['name']} {each['type']['type']}" for each in value["fields"])
    if isinstance(value, dict):
        fields = {key: _settled(each, str(key)) for key, each in value.items()}
        return {key: each for key, each in fields.items() if each not in (None, {}, "") or key == "value"}
    if isinstance(value, list):
        return [_settled(each) for each in value]
    if isinstance(value, float):
        return round(value, 3)
    return value


@contextmanager
def reference(root: Path) -> Iterator[Server]:
    """Run Lance's own server over a directory, with the namespace that is a catalog here."""
    adapter = lance.namespace.RestAdapter("dir", {"root": str(root)}, host="127.0.0.1", port=0)
    adapter.start()
    try:
        with closing(Server(f"http://127.0.0.1:{adapter.port}")) as server:
            server.answer(ReferenceRequest(name="the catalog", method="POST", path="namespace/lance/create", body={}))
            yield server
    finally:
        adapter.stop()


class ComparisonResult(NamedTuple):
    """The results of all requests: differences, and the fields that this server adds, each with its actions."""

    differences: list[Difference]
    added: dict[str, set[str]]


def compare_servers(uri: str, token: str, requests: Iterable[ReferenceRequest] = REQUESTS) -> ComparisonResult:
    """Send all requests to both servers; returns the differences."""
    seen = ComparisonResult([], {})
    with (
        tempfile.TemporaryDirectory(prefix="limnos-reference-") as root,
        reference(Path(root)) as theirs,
        closing(Server(uri, base="/lance", token=token)) as ours,
    ):
        for request in requests:
            mine, other = ours.answer(request), theirs.answer(request)
            more = mine.more_than(other)
            for field in more:
                seen.added.setdefault(field, set()).add(request.name.partition(":")[0])
            if mine.without(more) != other:
                seen.differences.append(Difference(request.name, str(mine.without(more)), str(other), request.why))
    return seen


def page(seen: ComparisonResult) -> str:
    """Return the page for these differences."""
    reasons = [f"- **{key}**: {REASONS[key]}" for key in sorted({each.why for each in seen.differences})]
    added = [
        f"| `{field}` | {', '.join(sorted(actions))} | {ADDED[field]} |"
        for field, actions in sorted(seen.added.items())
    ]
    lines = [
        "# Differences from Lance's own server",
        "",
        (
            f"The {len(REQUESTS)} requests of `requests.py` are sent to `lance.namespace.RestAdapter` over a directory"
            " and to this server; values"
        ),
        (
            "that must differ (ids, times, locations, texts) are removed. `python -m conformance.lance write` writes"
            " this page;"
        ),
        "`conformance/run lance differences` fails for differences that are not on it.",
        "",
        "## Reasons",
        "",
        *reasons,
        "",
        f"## {len(seen.differences)} different answers",
        "",
        "| request | ours | the reference's | why |",
        "|---|---|---|---|",
        *map(str, seen.differences),
        "",
        "## Additional fields",
        "",
        "| field | by | why |",
        "|---|---|---|",
        *added,
        "",
    ]
    return "\n".join(lines)


def unreasoned(seen: ComparisonResult) -> list[Difference]:
    """Return the differences without a reason."""
    return [each for each in seen.differences if each.why not in REASONS]


def changes(now: str) -> list[str]:
    """Return lines that the page lacks, and outdated lines of the page."""
    old, new = PAGE.read_text(encoding="utf-8").splitlines(), now.splitlines()
    lacking = [f"not listed: {line}" for line in new if line.startswith("| ") and line not in old]
    return lacking + [f"true no more: {line}" for line in old if line.startswith("| ") and line not in new]
