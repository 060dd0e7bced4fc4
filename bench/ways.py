# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.ways`: the number of calls of the server's own functions per request, their files and names.

Serves on a thread of this process, over its own SQLite file, and sends each request over a socket. Every thread is
traced. A call is an entry into a function of `limnos`; a generator or a coroutine counts again when it continues. `up`
counts calls from a layer to one above it, `changes` calls in another package than the call before. It prints and
judges nothing. Figures are counts, so a busy machine does not change them.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import itertools
import json
import logging
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import uvicorn
import uvloop

import limnos
from bench.load import LoadError
from limnos.app.bootstrap import bootstrap
from limnos.app.node_builder import build
from limnos.config import load
from limnos.http.connection import FastPathProtocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    from limnos.app.node_builder import ServerNode

ROOT: Final = f"{Path(limnos.__file__).parent}/"
LAYERS: Final = (
    "names",
    "model",
    "telemetry",
    "config",
    "formats",
    "language",
    "files",
    "sources",
    "store",
    "view",
    "access",
    "services",
    "http",
    "app",
)
"""The layers of a request, from the bottom."""
WARM: Final = 12
"""Requests of a kind before the first traced one."""
QUIET_S: Final = 0.01
"""Seconds for the server to finish work after its answer."""
WAIT_S: Final = 60.0
DATA: Final = "$DATA"
"""A placeholder for the server's data directory in requests."""
ICEBERG: Final = "/iceberg/v1/lake.main"
GRAVITINO: Final = "/api/metalakes/lake"
SCHEMA: Final = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
PRIVILEGES: Final = (
    "use_catalog",
    "use_schema",
    "create_schema",
    "create_table",
    "select_table",
    "modify_table",
)
_HEIGHTS: Final = {layer: height for height, layer in enumerate(LAYERS)}


@dataclass(frozen=True, slots=True)
class Request:
    """One request."""

    method: str
    path: str
    body: object = None


@dataclass(frozen=True, slots=True)
class Way:
    """A kind of request: key, title, builder of its n-th request, and requests to send before each, untraced."""

    key: str
    title: str
    make: Callable[[int], Request]
    before: Callable[[int], Request] | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """The calls of one request by function (file and qualified name), the number of calls up, and how often a call is
    in another package than the one before it.
    """

    calls: Counter[tuple[str, str]]
    up: int
    changes: int

    @property
    def count(self) -> int:
        """The number of all calls."""
        return self.calls.total()

    @property
    def files(self) -> int:
        """The number of files with called functions."""
        return len({file for file, _ in self.calls})


class Tracer:
    """Counts calls of the package's functions on all threads that start after `install`, while it is on."""

    def __init__(self) -> None:
        self._is_on = False
        self._entered: list[tuple[str, str, str]] = []

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Trace the threads that start within the body of a `with`."""
        threading.setprofile(self._see)
        try:
            yield
        finally:
            threading.setprofile(None)

    def begin(self) -> None:
        """Start to count."""
        self._entered = []
        self._is_on = True

    def end(self) -> Trace:
        """Stop to count. Returns the trace."""
        self._is_on = False
        calls = Counter((file, name) for file, name, _ in self._entered)
        packages = [_layer(file[len(ROOT) :]) for file, _, _ in self._entered]
        changes = sum(before != after for before, after in itertools.pairwise(packages))
        return Trace(calls, sum(_is_up(caller, file) for file, _, caller in self._entered), changes)

    def _see(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not self._is_on:
            return
        code = frame.f_code
        if code.co_filename.startswith(ROOT):
            caller = "" if frame.f_back is None else frame.f_back.f_code.co_filename
            self._entered.append((code.co_filename, code.co_qualname, caller))


def _layer(file: str) -> str:
    """Return the layer of a file below the package: its first folder, or the folder within its room."""
    parts = file.split("/")
    return parts[2] if parts[0] == "rooms" and len(parts) > 2 else parts[0]


def _is_up(caller: str, file: str) -> bool:
    if not caller.startswith(ROOT):
        return False
    below, above = (_HEIGHTS.get(_layer(each[len(ROOT) :]), -1) for each in (caller, file))
    return 0 <= below < above


class ServerThread:
    """A server on a separate thread, and one connection to it."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._is_up = threading.Event()
        self._failure: BaseException | None = None
        self._port = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._is_up.wait(WAIT_S)
        if not self._port:
            raise LoadError(f"The server did not start: {self._failure}")
        self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=WAIT_S)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            try:
                runner.run(self._serve())
            except BaseException as error:
                self._failure = error
            finally:
                self._is_up.set()

    async def _serve(self) -> None:
        settings = load(
            flags={"server.data": str(self._data), "access.authentication": "simple"}, file=None, environ={}
        ).settings
        built = build(settings)
        built.application.turns.loop_turns.now = lambda: 0.0  # traced steps are long, and would take turns
        try:
            await bootstrap(built.services, settings)
            await self._listen(built)
        finally:
            await built.close()

    async def _listen(self, built: ServerNode) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        config = uvicorn.Config(
            built.application, http=FastPathProtocol, loop="none", lifespan="off", log_config=None, access_log=False
        )
        config.load()
        state = uvicorn.server.ServerState()

        def protocol() -> FastPathProtocol:
            return FastPathProtocol(config=config, server_state=state, app_state={})

        server = await self._loop.create_server(protocol, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        self._is_up.set()
        await self._stopped.wait()
        server.close()

    def stop(self) -> None:
        """Stop serving."""
        self._socket.close()
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(WAIT_S)

    def ask(self, request: Request, *, user: str) -> bytes:
        """Send a request. Returns the answer's body. Raises LoadError unless it succeeds."""
        self._socket.sendall(_spelled(request, user=user, data=self._data))
        status, body = self._answer()
        if status >= 300:
            raise LoadError(f"{status} for {request.method} {request.path}: {body[:600]!r}")
        return body

    def settle(self) -> None:
        """Wait until the server has finished its work after an answer."""
        asyncio.run_coroutine_threadsafe(asyncio.sleep(QUIET_S), self._loop).result(WAIT_S)

    def _answer(self) -> tuple[int, bytes]:
        received_bytes = b""
        while b"\r\n\r\n" not in received_bytes:
            received_bytes += self._received()
        head, _, body = received_bytes.partition(b"\r\n\r\n")
        status, *fields = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (field.partition(": ") for field in fields)}
        if headers.get("transfer-encoding") == "chunked":
            while not body.endswith(b"0\r\n\r\n"):
                body += self._received()
        while len(body) < int(headers.get("content-length", 0)):
            body += self._received()
        return int(status.split()[1]), body

    def _received(self) -> bytes:
        data = self._socket.recv(1 << 16)
        if not data:
            raise LoadError("The server closed the connection")
        return data


def _spelled(request: Request, *, user: str, data: Path) -> bytes:
    body = b"" if request.body is None else json.dumps(request.body).replace(DATA, str(data)).encode()
    proof = base64.b64encode(f"{user}:x".encode()).decode()
    head = [
        f"{request.method} {request.path} HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Basic {proof}",
        "Accept: application/json",
    ]
    if body:
        head += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join((*head, "", "")).encode() + body


# --------------------------------------------------------------------------------------------- requests


def _table(name: str, namespace: str = "made", **fields: str) -> Request:
    body = {"name": name, "schema": SCHEMA, **fields}
    return Request("POST", f"{ICEBERG}/namespaces/{namespace}/tables", body)


def _commit(number: int) -> Request:
    updates = [{"action": "set-properties", "updates": {"bench": str(number)}}]
    return Request("POST", f"{ICEBERG}/namespaces/made/tables/t", {"requirements": [], "updates": updates})


def _append(number: int) -> Request:
    snapshot = {
        "snapshot-id": number + 1,
        "sequence-number": number + 1,
        "timestamp-ms": int(time.time() * 1000),
        "manifest-list": f"{DATA}/warehouse/main/appended/metadata/snap-{number}.avro",
        "summary": {"operation": "append", "added-records": "1"},
        "schema-id": 0,
    }
    if number:
        snapshot["parent-snapshot-id"] = number
    reference = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number + 1}
    requirement = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": number or None}
    body = {"requirements": [requirement], "updates": [{"action": "add-snapshot", "snapshot": snapshot}, reference]}
    return Request("POST", f"{ICEBERG}/namespaces/made/tables/appended", body)


def _load(_: int) -> Request:
    return Request("GET", f"{ICEBERG}/namespaces/made/tables/t")


def _rename(number: int) -> Request:
    source, target = ({"namespace": ["made"], "name": f"renamed{each}"} for each in (number, number + 1))
    return Request("POST", f"{ICEBERG}/tables/rename", {"source": source, "destination": target})


def _gravitino_create(number: int) -> Request:
    columns = [{"name": f"c{each}", "type": "long", "nullable": True, "comment": "a number"} for each in range(1)]
    body = {"name": f"gravitino{number}", "comment": None, "columns": columns, "properties": {"owner": "bench"}}
    return Request("POST", f"{GRAVITINO}/catalogs/main/schemas/made/tables", body)


def _lance_declare(number: int) -> Request:
    return Request("POST", f"/lance/v1/table/lance%24made%24declared{number}/declare", {})


def _sqlpp(statement: str) -> Callable[[int], Request]:
    return lambda _: Request("POST", "/query/service", {"statement": statement})


def _new(statement: str) -> Callable[[int], Request]:
    return lambda number: Request("POST", "/query/service", {"statement": f"{statement} LIMIT {1000 + number}"})


_DATASETS: Final = (
    "SELECT VALUE d.DatasetName FROM Metadata.`Dataset` d WHERE d.DataverseName = 'few' ORDER BY d.DatasetName"
)
_COUNTS: Final = (
    "SELECT d.DataverseName, COUNT(*) AS n FROM Metadata.`Dataverse` d, Metadata.`Dataset` t "
    "WHERE d.DataverseName = t.DataverseName GROUP BY d.DataverseName"
)


WAYS: Final = (
    Way("load-kept", "Iceberg: load a table whose answer is kept", _load),
    Way("load-changed", "Iceberg: load a table after a commit", _load, _commit),
    Way("commit", "Iceberg: commit, set one property", _commit),
    Way("append", "Iceberg: commit, add one snapshot", _append),
    Way("rename", "Iceberg: rename a table", _rename),
    Way("create", "Iceberg: create a table", lambda number: _table(f"iceberg{number}")),
    Way("gravitino-create", "Gravitino: create a table of one column", _gravitino_create),
    Way("lance-declare", "Lance: declare a table", _lance_declare),
    Way("constant", "SQL++: a constant, the same statement again", _sqlpp("SELECT VALUE 1 + 1")),
    Way("metadata", "SQL++: the names of a dataverse's two datasets, the same statement again", _sqlpp(_DATASETS)),
    Way("metadata-new", "SQL++: the same in a statement that is new each time", _new(_DATASETS)),
    Way("metadata-all", "SQL++: dataverses with the number of their datasets, about 90", _sqlpp(_COUNTS)),
)
"""The traced requests, in order: later ones see the objects of earlier ones."""


def _fixtures() -> Iterator[Request]:
    """Create the objects of the requests: a user with a role, namespaces, tables."""
    yield Request("POST", f"{GRAVITINO}/users", {"name": "user"})
    rules = [{"name": each, "condition": "allow"} for each in PRIVILEGES]
    objects = [{"fullName": each, "type": "catalog", "privileges": rules} for each in ("main", "lance")]
    yield Request("POST", f"{GRAVITINO}/roles", {"name": "role", "properties": {}, "securableObjects": objects})
    yield Request("PUT", f"{GRAVITINO}/permissions/users/user/grant", {"roleNames": ["role"]})
    for namespace in ("made", "few"):
        yield Request("POST", f"{ICEBERG}/namespaces", {"namespace": [namespace]})
    yield Request("POST", "/lance/v1/namespace/lance%24made/create", {})
    yield _table("t")
    yield _table("appended", location=f"{DATA}/warehouse/main/appended")
    yield _table("renamed0")
    yield _table("one", "few")
    yield _table("two", "few")


def trace_all(data: Path, *, chosen: Sequence[str] = (), rounds: int = 5) -> Iterator[tuple[Way, Trace]]:
    """Trace each kind whose key has one of these prefixes, or all; of some rounds the one with the fewest calls counts.

    Raises LoadError.
    """
    tracer = Tracer()
    with tracer.installed():
        served = ServerThread(data)
    try:
        for request in _fixtures():
            served.ask(request, user="admin")
        for way in WAYS:
            if not chosen or way.key.startswith(tuple(chosen)):
                yield way, _least(served, tracer, way, rounds)
    finally:
        served.stop()


def _least(served: ServerThread, tracer: Tracer, way: Way, rounds: int) -> Trace:
    traces = []
    for number in range(WARM + rounds):
        if way.before is not None:
            served.ask(way.before(number), user="user")
        served.settle()
        tracer.begin()
        served.ask(way.make(number), user="user")
        served.settle()
        trace = tracer.end()
        if number >= WARM:
            traces.append(trace)
    return min(traces, key=lambda each: each.count)  # periodic work of the server only adds calls


def main() -> int:
    """Trace and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.ways", description=__doc__)
    parser.add_argument("ways", nargs="*", help=f"beginnings of keys: {', '.join(way.key for way in WAYS)}")
    parser.add_argument("--rounds", type=int, default=5, help="of which the one with the fewest calls stands")
    parser.add_argument("--top", type=int, default=10, help="the most called functions of each request")
    parser.add_argument("--json", type=Path, default=None, help="a file for all counts")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    counts: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="limnos-bench-", ignore_cleanup_errors=True) as folder:
        try:
            for way, trace in trace_all(Path(folder), chosen=options.ways, rounds=options.rounds):
                print(
                    f"{way.key}: {way.title}: {trace.count} calls, {trace.files} files, {trace.changes} changes, {trace.up} up"
                )
                for (file, name), count in trace.calls.most_common(options.top):
                    print(f"{count:8}  {name}  {file.removeprefix(ROOT)}")
                named = {f"{file.removeprefix(ROOT)}:{name}": count for (file, name), count in trace.calls.items()}
                counts[way.key] = {
                    "calls": trace.count,
                    "files": trace.files,
                    "changes": trace.changes,
                    "up": trace.up,
                    "functions": named,
                }
        except LoadError as error:
            print(f"failed: {error}", file=sys.stderr)
            return 1
    if options.json is not None:
        options.json.write_text(json.dumps(counts, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
