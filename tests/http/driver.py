# SPDX-License-Identifier: Apache-2.0
"""A whole node in process, called without a network: the ASGI application over a real store."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from limnos.app.bootstrap import bootstrap
from limnos.app.node_builder import ServerNode, build
from limnos.config.access import AccessSection
from limnos.config.jobs import JobsSection
from limnos.config.room_settings import RoomsSection
from limnos.config.server import ServerSection
from limnos.config.settings import DatabaseSection, EventsSection, NamesSection, Settings
from limnos.config.storage import SourcesSection, StorageSection
from limnos.http.request import IS_GONE
from limnos.http.throttle import CredentialThrottle
from limnos.services.runs.job_rules import JOB_RULES, JobRules
from tests.backends import PATIENCE_S
from tests.installed import expect_no_other_node, require_address

API = "/api/metalakes"
OWN = "/api/limnos/v1"
EVENTS = EventsSection(allowed_urls=("https://hooks.example.com",))
NO_MORE = StorageSection()
"""Catalogs may use the server's own warehouse and the public clouds."""
NO_JOBS = JobsSection()
"""The server runs no jobs."""
AS_USUAL = NamesSection()
NOBODY = SourcesSection()
"""No external system is allowed."""


@dataclass(frozen=True)
class DriverAnswer:
    """The answer to one request."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict:
        """The body as a JSON object."""
        return json.loads(self.body)

    def __getitem__(self, key: str) -> object:
        return self.json()[key]


@dataclass(kw_only=True)
class DriverNode:
    """A node. `user` is sent as an unauthenticated Basic user; None sends no credentials."""

    built: ServerNode
    data: Path
    runner: asyncio.Runner
    sent: list[str] = field(default_factory=list)
    database: str | None = None
    """The URL of the store's database; None for the file in `data`."""

    def ask(
        self, method: str, target: str, body: object = None, *, user: str | None = "admin", **headers: str
    ) -> DriverAnswer:
        """Send a request. Underscores in header names become dashes; `peer` is no header but the client's address. A
        body of bytes is sent unchanged.
        """
        self.sent.append(f"{method} {target}")
        return self.runner.run(self._ask(method, target, body, user, headers))

    def get(self, target: str, *, user: str | None = "admin", **headers: str) -> DriverAnswer:
        """GET."""
        return self.ask("GET", target, user=user, **headers)

    def post(self, target: str, body: object = None, *, user: str | None = "admin") -> DriverAnswer:
        """POST."""
        return self.ask("POST", target, body, user=user)

    def put(self, target: str, body: object = None, *, user: str | None = "admin") -> DriverAnswer:
        """PUT."""
        return self.ask("PUT", target, body, user=user)

    def patch(self, target: str, body: object = None, *, user: str | None = "admin") -> DriverAnswer:
        """PATCH."""
        return self.ask("PATCH", target, body, user=user)

    def delete(self, target: str, *, user: str | None = "admin") -> DriverAnswer:
        """DELETE."""
        return self.ask("DELETE", target, user=user)

    def done(self, method: str, target: str, body: object = None, *, user: str = "admin") -> dict:
        """Send a request that must succeed."""
        answer = self.ask(method, target, body, user=user)
        assert answer.status == 200, f"{method} {target}: {answer.status} {answer.body.decode()}"
        return answer.json()

    def settle(self) -> None:
        """Wait until the offloaded file work that requests left in the background has ended."""
        while left := self.built.services.files._background:
            self.runner.run(_all_of(left))

    async def answer(
        self,
        method: str,
        target: str,
        body: object = None,
        *,
        user: str | None = "admin",
        is_gone: Callable[[], bool] | None = None,
        reads: asyncio.Event | None = None,
        **headers: str,
    ) -> DriverAnswer:
        """Send a request in a coroutine on the node's runner, concurrently with others.

        `is_gone` returns whether the client has disconnected. The client reads the body once `reads` is set.
        """
        return await self._ask(method, target, body, user, headers, is_gone=is_gone, reads=reads)

    async def _ask(
        self,
        method: str,
        target: str,
        body: object,
        user: str | None,
        headers: dict[str, str],
        *,
        is_gone: Callable[[], bool] | None = None,
        reads: asyncio.Event | None = None,
    ) -> DriverAnswer:
        path, _, query = target.partition("?")
        peer = headers.pop("peer", None)
        raw = [(name.replace("_", "-").lower().encode(), value.encode()) for name, value in headers.items()]
        if user is not None:
            raw.append((b"authorization", b"Basic " + base64.b64encode(f"{user}:x".encode())))
        payload = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sent: list[dict] = []

        async def receive() -> dict:
            return {"type": "http.request", "body": payload, "more_body": False}

        async def send(message: dict) -> None:
            sent.append(message)
            if reads is not None and message["type"] == "http.response.body":
                await reads.wait()

        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": raw,
            "client": None if peer is None else (peer, 50_000),
            IS_GONE: is_gone,
        }
        await self.built.application(scope, receive, send)
        start, *chunks = sent
        response_headers: dict[str, str] = {}
        for name, value in start["headers"]:  # a browser takes each of several cookies
            before = (
                f"{response_headers['set-cookie']}\n"
                if name == b"set-cookie" and "set-cookie" in response_headers
                else ""
            )
            response_headers[name.decode()] = before + value.decode()
        if start["status"] in {404, 405}:
            require_address(method, path)
        return DriverAnswer(start["status"], response_headers, b"".join(chunk["body"] for chunk in chunks))


def schema_view(name: str) -> dict[str, object]:
    """Return the body of Gravitino REST that creates a view."""
    texts = [{"type": "sql", "dialect": "spark", "sql": "select 1 as id"}]
    return {"name": name, "columns": [{"name": "id", "type": "integer"}], "representations": texts}


PROGRAM = {"jobType": "shell", "executable": "/bin/true", "comment": None}
"""A job template's body without its name."""


def let_jobs(node: DriverNode) -> None:
    """Allow job requests; no executor runs the jobs."""
    JOB_RULES.put(node.built.services, JobRules(enabled=True, allowed=("/bin",), pipelines=True))


SCHEDULE: dict[str, object] = {"file": "p.yaml", "files": {"p.yaml": "cGlwZWxpbmU6IHAK"}, "cron": "0 6 * * *"}
"""A schedule of a pipeline, due each morning."""


async def _all_of(tasks: Collection[asyncio.Task[None]]) -> None:
    await asyncio.gather(*tasks)


@contextmanager
def node_at(
    data: Path,
    *,
    access: bool = True,
    storage: StorageSection = NO_MORE,
    sources: SourcesSection = NOBODY,
    kept_bytes_max: int | None = None,
    database: str | None = None,
    jobs: JobsSection = NO_JOBS,
    names: NamesSection = AS_USUAL,
    off: tuple[str, ...] = (),
) -> Iterator[DriverNode]:
    """Serve `data` in process, with metalake `lake` and catalog `main`, both owned by `admin`.

    The store is the database at the URL `database`, or the SQLite file in `data`. `off` are the rooms that are off.
    """
    limits = {} if kept_bytes_max is None else {"kept_bytes_max": kept_bytes_max}
    server = ServerSection(data=str(data), request_timeout_s=PATIENCE_S, **limits)
    store = DatabaseSection.model_validate({"url": database, "silence_s": PATIENCE_S})
    settings = Settings(
        server=server,
        database=store,
        access=AccessSection(enabled=access, authentication="simple"),
        storage=storage,
        sources=sources,
        events=EVENTS,
        jobs=jobs,
        names=names,
        rooms=RoomsSection(off=off),
    )
    with asyncio.Runner() as runner:
        built = build(settings)
        expect_no_other_node(built.services)
        built.application.outcomes.throttle = CredentialThrottle(burst=1_000_000)  # its own tests have another
        try:
            runner.run(bootstrap(built.services, settings))
            yield DriverNode(built=built, data=data, runner=runner, database=database)
        finally:
            runner.run(built.close())


def metalake_copy(node: DriverNode, name: str) -> None:
    """Export metalake `lake`, and import it under another name. Its catalogs get directories of their own, since roots
    of two metalakes must not overlap.
    """
    records = [json.loads(line) for line in node.get(f"{OWN}/metalakes/lake/export?format=json").body.splitlines()]
    for record in records:
        record.get("catalog", {}).get("properties", {}).pop("warehouse", None)
    lines = "".join(f"{json.dumps(record)}\n" for record in records).encode()
    metalake_import = node.post(f"{OWN}/imports", {"name": name, "format": "json"}).json()
    node.done("POST", f"{OWN}/imports/{metalake_import['id']}/records?after=0", lines)
    node.done("POST", f"{OWN}/imports/{metalake_import['id']}/finish")


def grant(node: DriverNode, user: str, privileges: str, *, kind: str, on: str, condition: str = "allow") -> str:
    """Grant a user privileges (separated by spaces) on an object through a new role. Returns the role's name."""
    role = f"r{len(node.sent)}"
    node.ask("POST", f"{API}/lake/users", {"name": user})
    rules = [{"name": name, "condition": condition} for name in privileges.split()]
    objects = [{"fullName": on, "type": kind, "privileges": rules}]
    node.done("POST", f"{API}/lake/roles", {"name": role, "properties": {}, "securableObjects": objects})
    node.done("PUT", f"{API}/lake/permissions/users/{user}/grant", {"roleNames": [role]})
    return role
