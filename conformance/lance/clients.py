# SPDX-License-Identifier: Apache-2.0
"""Lance's clients behind one interface: an operation by its name, identifier and fields.

Job: call it as the client spells it, and return plain values: fields, or an error's code. May import the clients, this
package and the standard library.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Final, Protocol

import lance_namespace_urllib3_client as generated
import lancedb
import pyarrow as pa

from conformance.lance import lancedb_calls
from conformance.lance.home import Json
from conformance.lance.lancedb_calls import Foreign
from lance.namespace import RestNamespace

_REQUESTS: Final = {"create_table_scalar_index": "create_table_index", "list_all_tables": "list_tables"}
_IN_DICTS: Final = frozenset({"create_table_version", "describe_table_version", "batch_delete_table_versions"})
_TAKE_ROWS: Final = frozenset({"create_table", "insert_into_table", "merge_insert_into_table"})
_APIS: Final = (
    generated.NamespaceApi,
    generated.TableApi,
    generated.DataApi,
    generated.IndexApi,
    generated.TagApi,
    generated.BranchApi,
    generated.TransactionApi,
    generated.MaterializedViewApi,
    generated.MetadataApi,
)


class RequestRefused(Exception):
    """The server's refusal, as the client reports it."""

    def __init__(self, codes: tuple[int, ...], text: str) -> None:
        super().__init__(text)
        self.codes = codes
        """The codes that the error may stand for: one, unless the client uses its own message."""


class NoCall(Exception):
    """The client has no call for this operation."""


class Client(Protocol):
    """A user's client: `ask` returns an answer's fields, or raises Refused or NoCall."""

    name: str

    def ask(self, operation: str, ident: list[str] | None, *, fields: Json, data: bytes | None) -> Json: ...


def _model(operation: str, fields: Json) -> Foreign:
    words = _REQUESTS.get(operation, operation).split("_")
    return getattr(generated, "".join(word.capitalize() for word in words) + "Request")(**fields)


def plain(answer: object) -> Json:
    """Return an answer as fields; a value that is not an object is under `value`, bytes are under `data`."""
    if answer is None:
        return {}
    if isinstance(answer, dict):
        return answer
    if isinstance(answer, bytes | bytearray):
        return {"data": bytes(answer)}
    if isinstance(answer, pa.Table):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, answer.schema) as writer:
            writer.write_table(answer)
        return {"data": bytes(sink.getvalue())}
    if isinstance(answer, int | str):
        return {"value": answer}
    if hasattr(answer, "count") and not callable(answer.count):
        return {"value": answer.count}
    fields: Json = answer.to_dict()  # type: ignore[attr-defined]
    return fields


class Namespace:
    """pylance's client, also inside of another client."""

    def __init__(self, name: str, client: Foreign) -> None:
        self.name, self._held = name, client

    @classmethod
    def of(cls, uri: str, token: str) -> Namespace:
        """Return the client as pylance's users create it."""
        return cls("pylance", RestNamespace(**{"uri": uri, "header.Authorization": f"Bearer {token}"}))

    def ask(self, operation: str, ident: list[str] | None, *, fields: Json, data: bytes | None) -> Json:
        """Call the method of the operation's name with a request of its type."""
        fields = fields if ident is None else {**fields, "id": ident}
        request = fields if operation in _IN_DICTS else _model(operation, fields)
        more = (data,) if operation in _TAKE_ROWS else ()
        try:
            answer = plain(getattr(self._held, operation)(request, *more))
        except Exception as error:
            if "Not supported" in str(error) or "not implemented" in str(error).lower():
                _is_no_call(error)
            raise RequestRefused(lancedb_calls.codes_of(error), str(error)) from error
        return {"metadata": answer.get("metadata", answer)} if operation == "update_table_schema_metadata" else answer


def _is_no_call(error: Exception) -> None:
    """Raise NoCall for an error of the client itself: the server's message would name the operation."""
    if "This server does not serve" not in str(error):
        raise NoCall(str(error)) from error


class GeneratedClient:
    """The client that is generated from the OpenAPI document: identifiers are only in the path."""

    name = "generated"

    def __init__(self, uri: str, token: str) -> None:
        api = generated.ApiClient(generated.Configuration(host=uri))
        api.set_default_header("Authorization", f"Bearer {token}")
        self._apis = [each(api) for each in _APIS]

    def ask(self, operation: str, ident: list[str] | None, *, fields: Json, data: bytes | None) -> Json:
        """Call the method of the operation's name with the parameters that it accepts."""
        method: Callable[..., object] = next(
            getattr(each, operation) for each in self._apis if hasattr(each, operation)
        )
        parameters = inspect.signature(method).parameters
        arguments: Json = {} if ident is None else {"id": "$".join(ident)}
        body = next((name for name in parameters if name.endswith("_request") and not name.startswith("_")), None)
        if "request_body" in parameters:
            arguments["request_body"] = fields["metadata"]
        elif body is not None:
            arguments[body] = _model(operation, fields)
            arguments |= {name: value for name, value in fields.items() if name == "index_name" and name in parameters}
        else:
            arguments |= {
                name: json.dumps(value) if isinstance(value, dict) else value for name, value in fields.items()
            }
        if data is not None:
            arguments["body"] = data
        try:
            answer = plain(method(**arguments))
        except generated.exceptions.ApiException as error:
            error_body = json.loads(error.body or "{}")
            raise RequestRefused((error_body.get("code"),), str(error_body)) from error
        return {"metadata": answer} if operation == "update_table_schema_metadata" else answer


class LanceDB:
    """LanceDB: its own calls where they exist, otherwise the namespace inside of it."""

    def __init__(self, name: str, connection: Foreign, *, own: dict[str, lancedb_calls.Own], hidden: int) -> None:
        self.name, self._held, self._own, self._hidden = name, connection, own, hidden
        space = connection[1] if isinstance(connection, tuple) else connection
        self._namespace = Namespace(name, space.namespace_client())

    @classmethod
    def in_namespace_mode(cls, uri: str, token: str) -> LanceDB:
        """LanceDB over a namespace."""
        properties = {"uri": uri, "header.Authorization": f"Bearer {token}"}
        db = lancedb.connect_namespace("rest", properties, namespace_client_pushdown_operations=["QueryTable"])
        return cls("lancedb namespace", db, own=lancedb_calls.OVER_NAMESPACE, hidden=0)

    @classmethod
    def in_remote_mode(cls, uri: str, token: str) -> LanceDB:
        """LanceDB with the catalog as its remote database."""
        db = lancedb.connect("db://lance", api_key=token, host_override=uri)
        return cls("lancedb remote", db, own=lancedb_calls.REMOTE, hidden=1)

    @classmethod
    def of_databases(cls, uri: str, token: str) -> LanceDB:
        """LanceDB with catalogs as its databases."""
        connections = (
            lancedb.connect_catalog(uri, api_key=token),
            lancedb.connect("db://lance", api_key=token, host_override=uri),
        )
        return cls("lancedb remote", connections, own=lancedb_calls.DATABASES, hidden=0)

    def ask(self, operation: str, ident: list[str] | None, *, fields: Json, data: bytes | None) -> Json:
        """Call LanceDB."""
        relative = (ident or [])[self._hidden :]
        own = self._own.get(operation)
        if own is None:
            return self._namespace.ask(operation, relative if ident is not None else None, fields=fields, data=data)
        rows = None if data is None else pa.ipc.open_stream(data).read_all()
        try:
            return plain(own(self._held, relative, fields, rows))
        except Exception as error:
            raise RequestRefused(lancedb_calls.codes_of(error), f"{type(error).__name__}: {error}") from error
