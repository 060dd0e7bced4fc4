# SPDX-License-Identifier: Apache-2.0
"""A fast low-level client: one persistent connection, one request at a time, every status returned unchanged."""

from __future__ import annotations

import base64
import http.client
import json
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from tests.installed import require_address

PREFIX = "/iceberg/v1/lake.main"
GRAVITINO = "/api/metalakes/lake"
OWN = "/api/limnos/v1"
UNIT = "%1F"
BUSY_TRIES = 200


class ConnectionLost(Exception):
    """The connection broke before the answer arrived. The request may have been executed."""


class WireAnswer(NamedTuple):
    """A status, the decoded body, and the headers in lower case."""

    status: int
    body: dict[str, object]
    headers: dict[str, str]

    @property
    def kind(self) -> str:
        """The exception's name in an Iceberg error body."""
        return str(self._error.get("type", ""))

    @property
    def message(self) -> str:
        """The message of an Iceberg error body."""
        return str(self._error.get("message", ""))

    @property
    def _error(self) -> dict[str, object]:
        error = self.body.get("error")
        return error if isinstance(error, dict) else {}


class Wire:
    """A caller of one node: a Basic user, or the holder of a token."""

    def __init__(self, uri: str, *, user: str | None = None, token: str | None = None, timeout_s: float = 60) -> None:
        parts = urlsplit(uri)
        self.uri = uri
        self.who = user or "token"
        basic = base64.b64encode(f"{user}:".encode()).decode()
        self._headers = {"authorization": f"Bearer {token}" if token is not None else f"Basic {basic}"}
        self.connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout_s)

    def ask(self, method: str, path: str, body: object | None = None, *, key: str | None = None) -> WireAnswer:
        """Send a request once, optionally with an idempotency key, and wait for its answer. Raises ConnectionLost."""
        self.send(method, path, body, key=key)
        answer = self.receive()
        if answer.status in {404, 405}:
            require_address(method, path.partition("?")[0])
        return answer

    def send(self, method: str, path: str, body: object | None = None, *, key: str | None = None) -> None:
        """Send a request. Raises ConnectionLost."""
        data = None if body is None else json.dumps(body).encode()
        headers = self._headers if data is None else self._headers | {"content-type": "application/json"}
        if key is not None:
            headers = headers | {"idempotency-key": key}
        try:
            self.connection.request(method, path, data, headers)
        except (OSError, http.client.HTTPException) as error:
            raise self._lost(error) from error

    def receive(self) -> WireAnswer:
        """Wait for the answer to the sent request. Raises ConnectionLost."""
        try:
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise self._lost(error) from error
        body = json.loads(text) if text[:1] == b"{" else {}
        return WireAnswer(answer.status, body, {name.lower(): value for name, value in answer.getheaders()})

    def _lost(self, error: Exception) -> ConnectionLost:
        self.connection.close()
        return ConnectionLost(f"{type(error).__name__} {error}")

    def do(self, method: str, path: str, body: object | None = None, *, fine: tuple[int, ...] = ()) -> WireAnswer:
        """Execute a mutation, and retry it if nothing happened. Raises AssertionError for any other refusal."""
        for _ in range(BUSY_TRIES):
            answer = self.ask(method, path, body)
            if answer.status != 503:
                break
        assert answer.status < 300 or answer.status in fine, (
            f"{method} {path} by {self.who} at {self.uri}: {answer.status} {answer.body}"
        )
        return answer

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


def namespace_path(*levels: str) -> str:
    """Return the path of a namespace."""
    return f"{PREFIX}/namespaces/{UNIT.join(quote(level, safe='') for level in levels)}"


def table_path(*parts: str) -> str:
    """Return the path of a table."""
    return f"{namespace_path(*parts[:-1])}/tables/{quote(parts[-1], safe='')}"


def namespace_body(*levels: str) -> dict[str, object]:
    """Return the body that creates a namespace and its missing parents."""
    return {"namespace": levels}


def table_body(name: str) -> dict[str, object]:
    """Return the body that creates a small table."""
    fields = [{"id": 1, "name": "id", "type": "long", "required": True}]
    return {"name": name, "schema": {"type": "struct", "schema-id": 0, "fields": fields}}


def properties_body(**properties: str) -> dict[str, object]:
    """Return a commit that sets properties without requirements."""
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": properties}]}


def rename_body(source: tuple[str, ...], target: tuple[str, ...]) -> dict[str, object]:
    """Return the body that renames a table."""
    return {
        "source": {"namespace": source[:-1], "name": source[-1]},
        "destination": {"namespace": target[:-1], "name": target[-1]},
    }


def rights_path(role: str, kind: str, full_name: str, verb: str) -> str:
    """Return the path that grants or revokes a role's privileges on an object."""
    return f"{GRAVITINO}/permissions/roles/{role}/{kind}/{quote(full_name, safe='')}/{verb}"


def rights_body(*privileges: str) -> dict[str, object]:
    """Return the body that names privileges to allow."""
    return {"privileges": [{"name": name, "condition": "allow"} for name in privileges]}
