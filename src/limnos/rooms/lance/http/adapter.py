# SPDX-License-Identifier: Apache-2.0
"""An adapter: serves any implementation of Lance's interface over the protocol, without a store and without access
control.

Must not know implementations. It is an ASGI application. Calls run in threads, as implementations block; work on rows
of a directory runs in separate processes, as on a server. An incomplete body is neither passed on nor committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Final, cast

import msgspec

from limnos.http.head_admission import HeadAdmission
from limnos.http.parameters import check_parameters
from limnos.http.request import Receive, Request, next_request_id
from limnos.http.response import JSON, Response, json_response
from limnos.http.routing import Route
from limnos.model.errors import BadRequest, LimnosError, NotFound, UnsupportedOperation
from limnos.names import lance
from limnos.names.path import Levels
from limnos.names.percent import unquote_form, unquote_strict
from limnos.rooms.lance.http.adapter_rows import ROWS
from limnos.rooms.lance.http.errors import error_response
from limnos.rooms.lance.http.identifiers import body_path
from limnos.rooms.lance.http.operations import FLAGS, MAPS, NUMBERS, OPERATIONS, PARAMETERS, REPEATED, ProtocolOperation
from limnos.rooms.lance.http.protocol import ROOT, SERVER_VERSION, LanceRouter
from limnos.rooms.lance.services.directory_tables import FolderTables
from limnos.telemetry.logs import get_logger

Call = Callable[..., object]
Scope = MutableMapping[str, object]
Send = Callable[[MutableMapping[str, object]], Awaitable[None]]

log = get_logger("limnos.lance")
THREADS: Final = 16
ROWS_BYTES_MAX: Final = 256 << 20
FIELDS_BYTES_MAX: Final = 16 << 20
_ARROW: Final = (b"content-type", b"application/vnd.apache.arrow.file")
_STATUS: Final = {
    0: 406,
    1: 404,
    2: 409,
    3: 409,
    4: 404,
    5: 409,
    6: 404,
    7: 409,
    8: 404,
    9: 409,
    10: 404,
    11: 404,
    12: 404,
    13: 400,
    14: 409,
    15: 403,
    16: 401,
    17: 503,
    18: 500,
    19: 409,
    20: 400,
    21: 429,
    22: 404,
    23: 409,
}


def _routes() -> Iterator[Route[ProtocolOperation]]:
    for each in OPERATIONS:
        name = f"lance-{each.call.replace('_', '-')}"
        yield Route(method=each.method, path=each.path, handler=each, operation=name)
        if "/namespace/{id}" in each.path:  # clients' libraries remove the root's identifier `.` from a path
            yield Route(method=each.method, path=each.path.replace("/{id}", ""), handler=each, operation=name)


class LanceAdapter:
    """The ASGI application of the adapter. `call` executes a method of Lance's interface with its fields, and rows as
    `data`.

    With `folders`, requests on rows are served from these directories.
    """

    def __init__(self, call: Call, *, folders: FolderTables | None = None) -> None:
        self._call = call
        self._folders = folders
        self._router: LanceRouter[ProtocolOperation] = LanceRouter(ROOT, tuple(_routes()))
        self._admission = HeadAdmission()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="lance")

    async def __call__(self, scope: Scope, *ways: Receive | Send) -> None:
        """Answer one ASGI request. `ways` are ASGI's functions `receive` and `send`."""
        receive, send = cast("tuple[Receive, Send]", ways)
        if scope["type"] != "http":
            return
        response = await self._respond(scope, receive)
        response.headers = (*response.headers, SERVER_VERSION)
        if response.stream is not None:
            await self._stream(response.stream, response.headers, receive=receive, send=send)
            return
        headers = [*response.headers, (b"content-length", b"%d" % len(response.body))]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body})

    async def _stream(
        self,
        pieces: AsyncGenerator[bytes, None],
        headers: tuple[tuple[bytes, bytes], ...],
        *,
        receive: Receive,
        send: Send,
    ) -> None:
        """Send a response while it is produced, until it ends or the client disconnects.

        After a failure the connection is closed before the last chunk.
        """
        task = asyncio.ensure_future(receive())
        try:
            await send({"type": "http.response.start", "status": 200, "headers": [*headers]})
            async with aclosing(pieces):
                async for piece in pieces:
                    if task.done():
                        return
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            task.cancel()

    def close(self) -> None:
        """Stop the worker threads and processes."""
        if self._folders is not None:
            self._folders.workers.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _respond(self, scope: Scope, receive: Receive) -> Response:
        request_id, name = next_request_id(), "unknown-route"
        try:
            fields = cast("list[tuple[bytes, bytes]]", scope["headers"])
            raw, method = cast("bytes", scope["raw_path"]).partition(b"?")[0], cast("str", scope["method"])
            headers = dict(fields)
            self._admission.check(
                fields, headers, method=method, url=raw, version=str(scope["http_version"]), local=None
            )
            result = self._router.find(raw.strip(b"/").split(b"/"))
            if result is None:
                raise NotFound("This address does not exist", kind="route")
            routes, params = result
            name = "unknown-method"
            if method not in routes:
                raise UnsupportedOperation("This address does not support this method")
            operation, name = routes[method].handler, routes[method].operation
            limit = ROWS_BYTES_MAX if operation.takes == "rows" else FIELDS_BYTES_MAX
            query = cast("bytes", scope["query_string"])
            check_parameters(query, PARAMETERS, repeatable=REPEATED, changes=method != "GET")
            request = Request(
                method=method,
                path=raw,
                params=params,
                headers=headers,
                query_string=query,
                body=receive,
                request_id=request_id,
                body_bytes_max=limit,
                peer="",
                started=0.0,
            )
            request.require_plain_body()
            if self._folders is not None and operation.call in ROWS:
                return await ROWS[operation.call](request, self._folders)
            return await self._call_interface(request, operation)
        except LimnosError as error:
            return _adapter_error_response(error, request_id, operation=name)
        except Exception as error:
            log.exception("unexpected failure", operation=name, request_id=request_id)
            public_error = LimnosError(f"An unexpected error occurred, see the log: {type(error).__name__}")
            return _adapter_error_response(public_error, request_id, operation=name)

    async def _call_interface(self, request: Request, operation: ProtocolOperation) -> Response:
        body = await request.body() if request.method != "GET" else b""
        delimiter = lance.check_delimiter(request.query("delimiter") or lance.DELIMITER_DEFAULT)
        fields = {**_identity(request), **_query_fields(request), **_body_fields(body, operation)}
        fields |= _path_fields(request, operation, fields=fields, delimiter=delimiter)
        data = {"data": body} if operation.takes == "rows" else {}
        call = asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: self._call(operation.call, fields, **data)
        )
        return _response(await call, operation, delimiter=delimiter)


def _adapter_error_response(error: LimnosError, request_id: str, *, operation: str) -> Response:
    number = getattr(error, "number", None)
    if number is None:
        return error_response(error, request_id=request_id, operation=operation)
    body = {"error": str(error), "code": number, "detail": str(error), "instance": request_id}
    return json_response(body, _STATUS.get(number, 500))


def _identity(request: Request) -> dict[str, object]:
    """Return the caller's credentials, for implementations that check them."""
    key, bearer = request.headers.get(b"x-api-key"), request.headers.get(b"authorization", b"")
    identity = {"api_key": key.decode("latin-1")} if key else {}
    if bearer.lower().startswith(b"bearer "):
        identity["auth_token"] = bearer[7:].decode("latin-1")
    return {"identity": identity} if identity else {}


def _query_fields(request: Request) -> dict[str, object]:
    """Parse query parameters into the request's fields. Raises BadRequest for a value of the wrong type."""
    fields: dict[str, object] = {}
    for pair in filter(None, request.query_string.split(b"&")):
        name, _, value = pair.partition(b"=")
        key, text = unquote_form(name), unquote_form(value)
        if key == "delimiter":
            continue
        if key in REPEATED:
            fields[key] = [*cast("list[str]", fields.get(key, [])), text]
        elif text:
            fields[key] = _parse_value(key, text)
    return fields


def _parse_value(key: str, text: str) -> object:
    if key in NUMBERS:
        if not text.isascii() or not text.isdigit() or len(text) > 10:
            raise BadRequest(f"{key} must be a non-negative integer, not {text[:20]}")
        return int(text)
    if key in FLAGS:
        if text.lower() not in ("true", "false"):
            raise BadRequest(f"Query parameter {key} must be true or false, not {text[:40]}")
        return text.lower() == "true"
    return Request.decode(text.encode(), dict[str, str]) if key in MAPS else text


def _body_fields(body: bytes, operation: ProtocolOperation) -> dict[str, object]:
    if operation.takes == "rows" or not body.strip():
        return {}
    fields = Request.decode(body, dict[str, object])
    return (
        {"metadata": fields}
        if operation.takes == "map"
        else {key: each for key, each in fields.items() if each is not None}
    )


def _path_fields(
    request: Request, operation: ProtocolOperation, *, fields: dict[str, object], delimiter: str
) -> dict[str, object]:
    """Parse a path into the request's fields: the identifier of an object, and the name of its index.

    Raises BadRequest if the identifier differs from that in the body, InvalidName for an invalid name.
    """
    if "{id}" not in operation.path:
        return {}
    stated_path = fields.get("id")
    if stated_path is not None and not (
        isinstance(stated_path, list) and all(isinstance(each, str) for each in stated_path)
    ):
        raise BadRequest("Field 'id' must be a list of names")
    path: Levels = body_path(request.params[0] if request.params else b"", stated_path, delimiter=delimiter)
    index = {"index_name": unquote_strict(request.params[1])} if len(request.params) > 1 else {}
    return {"id": list(path), **index}


def _response(result: object, operation: ProtocolOperation, *, delimiter: str) -> Response:
    body = result if isinstance(result, dict) else {}
    match operation.answers:
        case "nothing":
            return Response(operation.status, b"", ())
        case "count":
            return json_response(body.get("count", result))
        case "text":
            return json_response(result)
        case "data":
            return Response(200, cast("bytes", body.get("data", result)), (_ARROW,))
        case "metadata":
            return json_response(body.get("metadata") or {})
        case "ids":
            body = {**body, "tables": [_join_identifier(each, delimiter) for each in body.get("tables") or []]}
    return Response(operation.status, msgspec.json.encode(body), (JSON,))


def _join_identifier(text: str, delimiter: str) -> str:
    """Join a JSON array of names with the delimiter of the request. Any other string is returned unchanged."""
    if not text.startswith("["):
        return text
    return lance.join(Request.decode(text.encode(), tuple[str, ...]), delimiter=delimiter)
