# SPDX-License-Identifier: Apache-2.0
"""An Iceberg REST catalog of any vendor, as a source or target of a migration: names, tables, views, and what is
registered, marked and renamed there.

Nothing of an answer is trusted: a missing or wrong field is an error of that one object.
"""

from __future__ import annotations

import base64
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

import httpx2
import msgspec

from limnos.cli.failures import StoppedError, UsageError
from limnos.cli.migration.states import Name, ObjectError, ViewState, state_of
from limnos.model.table_states import TableState
from limnos.model.token_text import token_fault

PAGE: Final = 1000
PAGES_MAX: Final = 100_000
TRIES: Final = 4
PAUSE_S: Final = 0.5
ANSWER_BYTES_MAX: Final = 256 << 20
DEPTH_MAX: Final = 50


class RestCatalog:
    """A catalog behind an Iceberg REST server."""

    def __init__(
        self,
        uri: str,
        *,
        token: str | None = None,
        user: str | None = None,
        warehouse: str | None = None,
        timeout_s: float = 60.0,
        ca_file: str | None = None,
        credential_flag: str = "--source-token",
    ) -> None:
        self.uri = uri.rstrip("/").removesuffix("/v1")
        self._credential_flag = credential_flag
        self._http = httpx2.Client(
            headers=_headers(token, user, flag=credential_flag),
            timeout=timeout_s,
            trust_env="127.0.0.1" not in uri,
            verify=True if ca_file is None else ssl.create_default_context(cafile=ca_file),
        )
        try:
            self._configure(warehouse)
        except BaseException:
            self._http.close()
            raise

    def _configure(self, warehouse: str | None) -> None:
        """Read the server's configuration: the prefix of paths, and the separator of namespaces."""
        query = {} if warehouse is None else {"warehouse": warehouse}
        try:
            config = self._ask("GET", f"{self.uri}/v1/config", query=query)
        except ObjectError as error:
            if "warehouse" in str(error).lower():
                raise StoppedError(
                    f"{self.uri} has no such catalog for you: {error}",
                    hint="check the catalog's name, and that this credential may use it",
                ) from error
            raise StoppedError(
                f"{self.uri} is no Iceberg REST catalog: {error}", hint="give the address before /v1, and --warehouse"
            ) from error
        settings = {**_mapping(config.get("defaults")), **_mapping(config.get("overrides"))}
        prefix = settings.get("prefix")
        self._separator = str(settings.get("namespace-separator", "%1F"))
        self._root = f"{self.uri}/v1" + (f"/{prefix}" if prefix else "")
        self._has_views = True

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def namespaces(self) -> Iterator[Name]:
        """Yield all namespaces, parents before children. Raises StoppedError if the server does not answer."""
        waiting: list[Name] = [()]
        seen_namespaces: set[Name] = set()
        while waiting:
            parent = waiting.pop(0)
            query = {"parent": "\x1f".join(parent)} if parent else {}
            try:
                children = list(self._names(f"{self._root}/namespaces", "namespaces", query=query))
            except ObjectError:
                if not parent:
                    raise
                continue  # it was dropped while it was read, or has no children here
            for levels in children:
                name = tuple(map(str, levels)) if isinstance(levels, list) else (str(levels),)
                if len(name) == len(parent) + 1 <= DEPTH_MAX and name[:-1] == parent and name not in seen_namespaces:
                    seen_namespaces.add(name)
                    waiting.append(name)
                    yield name

    def namespace_properties(self, namespace: Name) -> dict[str, str]:
        """Return a namespace's properties."""
        answer = self._ask("GET", self._namespace(namespace))
        return {str(key): str(value) for key, value in _mapping(answer.get("properties")).items()}

    def tables(self, namespace: Name) -> Iterator[str]:
        """Yield the names of the tables of a namespace."""
        for each in self._names(f"{self._namespace(namespace)}/tables", "identifiers"):
            if isinstance(each, dict) and isinstance(each.get("name"), str):
                yield each["name"]

    def views(self, namespace: Name) -> list[str]:
        """Return the names of the views of a namespace; none if the server has no views."""
        if not self._has_views:
            return []
        try:
            names = list(self._names(f"{self._namespace(namespace)}/views", "identifiers"))
        except ObjectError:
            self._has_views = False
            return []
        return [str(each["name"]) for each in names if isinstance(each, dict) and "name" in each]

    def table(self, path: Name) -> TableState:
        """Load a table. Raises ObjectError if that fails or the answer is not that of a table."""
        answer = self._ask("GET", self._table(path), query={"snapshots": "refs"})
        return state_of(answer)

    def view(self, path: Name) -> ViewState:
        """Load a view. Raises ObjectError."""
        return ViewState.of(self._ask("GET", f"{self._namespace(path[:-1])}/views/{quote(path[-1], safe='')}"))

    def find_table(self, path: Name) -> TableState | None:
        """Load a table; None if there is none."""
        try:
            return self.table(path)
        except ObjectError as error:
            if error.status == 404:
                return None
            raise

    def create_namespace(self, namespace: Name, properties: Mapping[str, str]) -> bool:
        """Create a namespace. Returns False if it exists."""
        try:
            self._ask(
                "POST", f"{self._root}/namespaces", body={"namespace": list(namespace), "properties": dict(properties)}
            )
        except ObjectError as error:
            if error.status == 409:
                return False
            raise
        return True

    def create_view(self, path: Name, view: ViewState) -> None:
        """Create a view with the text of another."""
        body = {
            "name": path[-1],
            "schema": view.schema,
            "view-version": view.version,
            "properties": dict(view.properties),
        }
        self._ask("POST", f"{self._namespace(path[:-1])}/views", body=body)

    def register(self, path: Name, location: str, *, overwrite: bool = False) -> TableState:
        """Register a table by its metadata file."""
        body: dict[str, object] = {"name": path[-1], "metadata-location": location}
        if overwrite:
            body["overwrite"] = True
        return state_of(self._ask("POST", f"{self._namespace(path[:-1])}/register", body=body))

    def mark(self, path: Name, properties: Mapping[str, str], *, expected: TableState) -> TableState:
        """Set properties of a table if its main branch is still at the snapshot of `expected`. Raises ObjectError."""
        requirements: list[dict[str, object]] = [
            {"type": "assert-table-uuid", "uuid": expected.uuid},
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": expected.snapshot_id},
        ]
        updates = [{"action": "set-properties", "updates": dict(properties)}]
        body = {
            "identifier": {"namespace": list(path[:-1]), "name": path[-1]},
            "requirements": requirements,
            "updates": updates,
        }
        return state_of(self._ask("POST", self._table(path), body=body))

    def retire(self, path: Name, name: str) -> str:
        """Rename a table within its namespace, which ends commits by its former name. Raises ObjectError."""
        source = {"namespace": list(path[:-1]), "name": path[-1]}
        body = {"source": source, "destination": {"namespace": list(path[:-1]), "name": name}}
        self._ask("POST", f"{self._root}/tables/rename", body=body)
        return name

    def _namespace(self, namespace: Name) -> str:
        levels = [quote(level, safe="") for level in namespace]
        return f"{self._root}/namespaces/{self._separator.join(levels)}"

    def _table(self, path: Name) -> str:
        return f"{self._namespace(path[:-1])}/tables/{quote(path[-1], safe='')}"

    def _names(self, url: str, field: str, *, query: Mapping[str, str] | None = None) -> Iterator[Any]:
        """Yield the entries of all pages of a list. A server that repeats a page token is not followed for ever."""
        token, seen_tokens = "", set[str]()
        for _ in range(PAGES_MAX):
            more = {"pageToken": token, "pageSize": str(PAGE)}
            answer = self._ask("GET", url, query={**(query or {}), **more})
            entries = answer.get(field)
            yield from entries if isinstance(entries, Sequence) and not isinstance(entries, str) else ()
            token = str(answer.get("next-page-token") or "")
            if not token or token in seen_tokens:
                return
            seen_tokens.add(token)

    def _ask(
        self, method: str, url: str, *, query: Mapping[str, str] | None = None, body: object = None
    ) -> dict[str, Any]:
        """Send a request; a read is repeated if the server does not answer.

        Raises ObjectError for an error or for an answer that is no JSON object, StoppedError if the server is gone.
        """
        content = None if body is None else msgspec.json.encode(body)
        for attempt in range(TRIES):
            try:
                answer = self._http.request(
                    method, url, params=query, content=content, headers={"Content-Type": "application/json"}
                )
            except httpx2.TransportError as error:
                if method == "GET" and attempt < TRIES - 1:
                    time.sleep(PAUSE_S * 2**attempt)
                    continue
                raise StoppedError(
                    f"{self.uri} does not answer: {str(error) or type(error).__name__}",
                    code="unavailable",
                    hint="run the command again: it continues",
                ) from error
            if answer.status_code in (429, 502, 503, 504) and attempt < TRIES - 1:
                time.sleep(PAUSE_S * 2**attempt)
                continue
            if answer.status_code in (401, 403):
                raise StoppedError(
                    f"{self.uri} refuses the credential: {_message(answer)}",
                    code="denied",
                    hint=f"give {self._credential_flag}",
                )
            return _object_of(answer)
        raise AssertionError("the last attempt returns or raises")


def _headers(token: str | None, user: str | None, *, flag: str) -> dict[str, str]:
    """Return the headers of requests. Raises UsageError for a token that is none, without any part of it."""
    headers = {"Accept": "application/json"}
    if token is not None:
        token = token.strip()
        if (fault := token_fault(token)) is not None:
            raise UsageError(f"the token for the other catalog is no token: {fault}", hint=f"give {flag}")
        headers["Authorization"] = f"Bearer {token}"
    elif user is not None:
        headers["Authorization"] = f"Basic {base64.b64encode(f'{user}:'.encode()).decode()}"
    return headers


def _object_of(answer: httpx2.Response) -> dict[str, Any]:
    if answer.status_code >= 300:
        raise ObjectError(_message(answer), status=answer.status_code)
    if not answer.content:
        return {}
    try:
        value = msgspec.json.decode(answer.content)
    except msgspec.DecodeError as error:
        raise ObjectError(f"the answer is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ObjectError("the answer is not a JSON object")
    return value


def _message(answer: httpx2.Response) -> str:
    try:
        error = msgspec.json.decode(answer.content)["error"]
        return f"{answer.status_code} {str(error['message'])[:500]}"
    except (msgspec.DecodeError, KeyError, TypeError):
        return f"status {answer.status_code}"


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
