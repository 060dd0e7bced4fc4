"""A whole node in process, asked without a network: the ASGI application over a real SQLite store."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from limnos.app.bootstrap import bootstrap
from limnos.app.building import Built, build
from limnos.config.access import Access
from limnos.config.settings import Events, Jobs, Names, Server, Settings
from limnos.config.storage import Sources, Storage
from limnos.http.request import IS_GONE
from limnos.http.throttle import Throttle
from limnos.services.runs.job_rules import JOB_RULES, JobRules
from limnos.services.sqlpp.requests import REQUESTS

API = "/api/metalakes"
OWN = "/api/limnos/v1"
EVENTS = Events(allowed_urls=("https://hooks.example.com",))
NO_MORE = Storage()
"""Catalogs may use the server's own warehouse and the public clouds."""
NO_JOBS = Jobs()
"""The server runs none by itself."""
AS_USUAL = Names()
NOBODY = Sources()
"""No outside system may be shown."""


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict:
        """The body as a JSON object."""
        return json.loads(self.body)

    def __getitem__(self, key: str) -> object:
        return self.json()[key]


@dataclass
class Node:
    """A node to ask. `user` is believed by Basic; None sends no credential."""

    built: Built
    data: Path
    runner: asyncio.Runner
    sent: list[str] = field(default_factory=list)

    def ask(
        self, method: str, target: str, body: object = None, *, user: str | None = "admin", **headers: str
    ) -> Answer:
        """Send one request; underscores in names of headers are dashes. A body that is bytes goes as it is."""
        self.sent.append(f"{method} {target}")
        return self.runner.run(self._ask(method, target, body, user, headers))

    def get(self, target: str, *, user: str | None = "admin", **headers: str) -> Answer:
        """GET."""
        return self.ask("GET", target, user=user, **headers)

    def post(self, target: str, body: object = None, *, user: str | None = "admin") -> Answer:
        """POST."""
        return self.ask("POST", target, body, user=user)

    def put(self, target: str, body: object = None, *, user: str | None = "admin") -> Answer:
        """PUT."""
        return self.ask("PUT", target, body, user=user)

    def patch(self, target: str, body: object = None, *, user: str | None = "admin") -> Answer:
        """PATCH."""
        return self.ask("PATCH", target, body, user=user)

    def delete(self, target: str, *, user: str | None = "admin") -> Answer:
        """DELETE."""
        return self.ask("DELETE", target, user=user)

    def done(self, method: str, target: str, body: object = None, *, user: str = "admin") -> dict:
        """Send a request that a test takes for granted."""
        answer = self.ask(method, target, body, user=user)
        assert answer.status == 200, f"{method} {target}: {answer.status} {answer.body.decode()}"
        return answer.json()

    async def answer(
        self, method: str, target: str, body: object = None, *, user: str | None = "admin",
        is_gone: Callable[[], bool] | None = None,
    ) -> Answer:  # fmt: skip
        """Send one request among others at once, within a coroutine that the node's runner runs; `is_gone` says when its client has left."""
        return await self._ask(method, target, body, user, {}, is_gone=is_gone)

    async def _ask(
        self, method: str, target: str, body: object, user: str | None, headers: dict[str, str],
        *, is_gone: Callable[[], bool] | None = None,
    ) -> Answer:  # fmt: skip
        path, _, query = target.partition("?")
        raw = [(name.replace("_", "-").lower().encode(), value.encode()) for name, value in headers.items()]
        if user is not None:
            raw.append((b"authorization", b"Basic " + base64.b64encode(f"{user}:x".encode())))
        payload = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sent: list[dict] = []

        async def receive() -> dict:
            return {"type": "http.request", "body": payload, "more_body": False}

        async def send(message: dict) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": raw,
            IS_GONE: is_gone,
        }
        await self.built.application(scope, receive, send)
        start, *chunks = sent
        told = {name.decode(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], told, b"".join(chunk["body"] for chunk in chunks))


PROGRAM = {"jobType": "shell", "executable": "/bin/true", "comment": None}
"""A job template but for its name, as a body has it."""


def let_jobs(node: Node) -> None:
    """Let jobs be asked for; nobody runs them."""
    JOB_RULES.put(node.built.services, JobRules(enabled=True, allowed=("/bin",)))


@contextmanager
def node_at(
    data: Path,
    *,
    access: bool = True,
    storage: Storage = NO_MORE,
    sources: Sources = NOBODY,
    kept_bytes_max: int | None = None,
    database: str | None = None,
    jobs: Jobs = NO_JOBS,
    names: Names = AS_USUAL,
) -> Iterator[Node]:
    """Serve `data` in process: metalake `lake`, catalog `main`, both owned by `admin`."""
    server = Server(data=str(data)) if kept_bytes_max is None else Server(data=str(data), kept_bytes_max=kept_bytes_max)
    settings = Settings(
        server=server, access=Access(enabled=access), storage=storage, sources=sources, events=EVENTS, jobs=jobs, names=names,
    )  # fmt: skip
    with asyncio.Runner() as runner:
        built = build(settings)
        REQUESTS.of(built.services).reach_s = 0.0  # nobody began anything elsewhere a moment ago
        built.application.throttle = Throttle(burst=1_000_000)  # its own tests have another
        try:
            runner.run(bootstrap(built.services, settings))
            yield Node(built, data, runner)
        finally:
            runner.run(built.close())


def grant(node: Node, user: str, privileges: str, *, kind: str, on: str, condition: str = "allow") -> str:
    """Give a user privileges (separated by spaces) on an object, through a new role; returns its name."""
    role = f"r{len(node.sent)}"
    node.ask("POST", f"{API}/lake/users", {"name": user})
    rules = [{"name": name, "condition": condition} for name in privileges.split()]
    objects = [{"fullName": on, "type": kind, "privileges": rules}]
    node.done("POST", f"{API}/lake/roles", {"name": role, "properties": {}, "securableObjects": objects})
    node.done("PUT", f"{API}/lake/permissions/users/{user}/grant", {"roleNames": [role]})
    return role
