# SPDX-License-Identifier: Apache-2.0
"""One HTTP request for handlers: raw path segments, query, headers, body.

Must not know protocols. Names stay raw bytes until a protocol's codec reads them: a decoded path cannot distinguish
`%2F` from `/`.
"""

from __future__ import annotations

import itertools
import os
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Mapping, MutableMapping
from functools import lru_cache
from typing import Any, Final, TypeVar, cast

import msgspec

from limnos.access.authentication import ANONYMOUS, Credential
from limnos.http.body_budget import BodyShare
from limnos.http.routing import SHORT_BODY_BYTES, RouteBodyKind
from limnos.model.audit import TEXT_MAX, RequestOrigin, shorten_text
from limnos.model.decisions import Decision
from limnos.model.errors import BadRequest, TooLarge, WrongMediaType
from limnos.names.percent import unquote_form
from limnos.services.request.concurrency.loop_turns import LoopUse

PREFIX_LENGTH: Final = 12
_prefix = ""
_count = itertools.count(1)


def next_request_id() -> str:
    """Return a new request id, unique across nodes and restarts, for logs, responses and change rows.

    It has 12 random hex digits of this process, then a counter in hex. Takes less than a microsecond.
    """
    return f"{_prefix}{next(_count):06x}"


def _begin() -> None:
    """Choose the random prefix of this process's request ids. Called again in a forked child."""
    global _prefix, _count  # noqa: PLW0603 - one prefix per process is the point
    _prefix = secrets.token_hex(PREFIX_LENGTH // 2)
    _count = itertools.count(1)


_begin()
os.register_at_fork(after_in_child=_begin)


Receive = Callable[[], Awaitable[MutableMapping[str, object]]]
Body = bytes | Receive

T = TypeVar("T")
IS_GONE = "limnos.is_gone"
"""The key in an ASGI scope of the function that returns whether the client has disconnected."""
_PLAIN = (b"", b"identity")
_FORM = b"application/x-www-form-urlencoded"
CONTAINERS_MAX: Final = 100_000
"""The maximum number of arrays and objects in a JSON body over SHORT_BODY_BYTES: decoding them takes 20 ms on the event
loop.

A body of 1 MiB could have five times as many.
"""
VALUES_MAX: Final = 200_000
"""The maximum number of values, counted by commas, in such a body."""


@lru_cache(256)
def _kind_of(content_type: bytes) -> str:
    """Return the kind of a Content-Type: `json` (also `application/vnd.….v1+json`), `form` or `other`."""
    media_type = content_type.partition(b";")[0].strip().lower()
    if media_type == b"application/json" or (media_type.startswith(b"application/") and media_type.endswith(b"+json")):
        return "json"
    return "form" if media_type == _FORM else "other"


def _too_long(bytes_max: int) -> TooLarge:
    return TooLarge(
        f"The body is over the limit of {bytes_max} bytes (setting lance.body_bytes_max): send less at once"
    )


class Request:
    """An HTTP request for handlers. `params` are the raw segments that matched the route's `{…}`, in order.

    The body is complete bytes, or ASGI's function to receive it.
    """

    __slots__ = (
        "_body",
        "_query",
        "admit",
        "audit_text",
        "body_bytes_max",
        "body_share",
        "credential",
        "decided",
        "failure",
        "has_changed",
        "headers",
        "id",
        "is_cacheable",
        "is_gone",
        "loop_use",
        "method",
        "params",
        "path",
        "peer",
        "query_string",
        "started",
        "target",
        "user_id",
    )

    def __init__(  # noqa: PLR0917 - a class is cheaper to call by position than by name; the application alone does
        self,
        method: str,
        path: bytes,
        params: tuple[bytes, ...],
        headers: dict[bytes, bytes],
        query_string: bytes,
        body: Body,
        request_id: str,
        body_bytes_max: int,
        peer: str,
        started: float,
    ) -> None:
        self.method = method
        self.path = path
        """The path as it was sent."""
        self.started = started
        """The time of arrival, by `time.perf_counter()`."""
        self.params = params
        self.headers = headers
        self.query_string = query_string
        self.id = request_id
        self.peer = peer
        self.admit: Callable[[], Awaitable[None]] | None = None
        """Called before more than `SHORT_BODY_BYTES` of a body are read.

        Raises if the caller may do nothing with the body.
        """
        self.body_share: BodyShare | None = None
        """Counts the bytes of a body that arrives in chunks."""
        self.is_gone: Callable[[], bool] | None = None
        """Returns whether the client has disconnected, if that is known."""
        self.loop_use: LoopUse | None = None
        """The use of the event loop by this request; None before its handler runs, and where it takes no turns."""
        self.is_cacheable = False
        """Whether the response may be cached; the handler then sets its validity (`Response.validity`)."""
        self.credential: Credential | None = None
        """The caller's credential, after the header was parsed."""
        self.target: tuple[str, str] = ("", "")
        """The names of the protocol and of the operation."""
        self.decided: list[Decision] | None = None
        """The decisions made for the request, if the audit records them."""
        self.user_id: int | None = None
        """The caller's user id, if a decision needed it."""
        self.has_changed = False
        """Whether the request made a change, which its transaction recorded for the audit."""
        self.audit_text = ""
        """What the request is for, in the audit record of its refusal; empty for its method and path."""
        self.failure: Exception | None = None
        """The error that the response reports."""
        self.body_bytes_max = body_bytes_max
        self._body = body
        self._query: dict[str, bytes] | None = None

    def origin(self) -> RequestOrigin:
        """Return the protocol, operation, user agent, client address and credential of the request, for the audit."""
        return origin_of(self.target, self.headers, peer=self.peer, credential=self.credential)

    def hops(self) -> str:
        """Return the ids of the server nodes that passed this request on as clients of a source; "" for none."""
        return self.headers.get(b"x-limnos-hops", b"").decode("latin-1")

    def query_raw(self, name: str) -> bytes | None:
        """Return a query parameter in its encoded form, or None. `http.parameters` has refused repeated ones."""
        if not self.query_string:
            return None
        if self._query is None:
            pairs = (pair.partition(b"=") for pair in self.query_string.split(b"&") if pair)
            self._query = {unquote_form(name): value for name, _, value in pairs}
        return self._query.get(name)

    def query(self, name: str) -> str | None:
        """Return a query parameter, percent-decoded, or None. Raises InvalidName for a malformed value."""
        raw = self.query_raw(name)
        return None if raw is None else unquote_form(raw)

    def query_each(self, name: str) -> list[str]:
        """Return all values of a repeatable query parameter, in order."""
        pairs = (pair.partition(b"=") for pair in self.query_string.split(b"&") if pair)
        return [unquote_form(value) for key, _, value in pairs if unquote_form(key) == name]

    def query_flag(self, name: str, *, default: bool = False) -> bool:
        """Return a boolean query parameter. Raises BadRequest unless it is `true` or `false`, in upper or lower
        case.
        """
        text = self.query(name)
        if text is None or text == "":
            return default
        if text.lower() not in ("true", "false"):
            raise BadRequest(f"Query parameter {name} must be true or false, not {text}")
        return text.lower() == "true"

    def require_type(self, takes: RouteBodyKind) -> None:
        """Refuse a body whose Content-Type is of another kind than the route accepts, and an encoded one. Raises
        WrongMediaType.
        """
        self.require_plain_body()
        content_type = self.headers.get(b"content-type")
        if content_type is None or takes == "any" or _kind_of(content_type) == takes or not self._has_body():
            return
        text = content_type[:100].decode("latin-1")
        expected = "application/json" if takes == "json" else _FORM.decode()
        raise WrongMediaType(f"The body has type {text}: send {expected}, with that Content-Type header")

    def require_plain_body(self) -> None:
        """Refuse a compressed body, whose length says nothing about its content. Raises WrongMediaType."""
        content_encoding = self.headers.get(b"content-encoding")
        if content_encoding is not None and content_encoding.strip().lower() not in _PLAIN and self._has_body():
            text = content_encoding[:100].decode("latin-1")
            raise WrongMediaType(f"The body has Content-Encoding {text}: send it without compression")

    def _has_body(self) -> bool:
        headers = self.headers
        return b"transfer-encoding" in headers or headers.get(b"content-length", b"0").strip(b"0") != b""

    async def body(self) -> bytes:
        """Read the body. A long body is read only from a caller with a right that the route could need.

        Raises TooLarge above the limit, PermissionDenied for a long body of another caller, ServiceUnavailable if the
        requests in progress have too many bytes, and BadRequest if the client disconnects.
        """
        if isinstance(self._body, bytes):
            if len(self._body) > self.body_bytes_max:
                raise self._too_large()
            return self._body
        receive = self._body
        length = self.headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self.body_bytes_max:
            raise self._too_large()
        if length.isdigit() and int(length) > SHORT_BODY_BYTES:
            await self._admit()
        received = bytearray()  # one buffer that grows, so that its memory is returned as a whole
        try:
            await self._receive(receive, received)
        except BaseException:
            received.clear()  # the error refers to this frame, and the request to the error
            raise
        self._body = bytes(received)  # later calls return it
        return self._body

    async def _receive(self, receive: Receive, received: bytearray) -> None:
        """Add the chunks of the body to a buffer. Raises as `body`."""
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise BadRequest("The client disconnected before its body was complete")
            chunk = cast("bytes", message.get("body", b""))
            size = len(received) + len(chunk)
            if size > self.body_bytes_max:
                raise self._too_large()
            if size > SHORT_BODY_BYTES:
                await self._admit()
            if self.body_share is not None:
                self.body_share.take(len(chunk))
            received += chunk
            more = bool(message.get("more_body", False))

    async def stream(self, *, bytes_max: int) -> AsyncGenerator[bytes, None]:
        """Yield the body in chunks as they arrive, for a caller who was already admitted.

        `bytes_max` is 0 for no limit. Raises TooLarge, and BadRequest for an incomplete body.
        """
        if isinstance(self._body, bytes):
            if self._body:
                yield self._body
            return
        length = self.headers.get(b"content-length", b"0")
        size, more = int(length) if length.isdigit() else 0, True
        if bytes_max and size > bytes_max:
            raise _too_long(bytes_max)
        size = 0
        while more:
            message = await self._body()
            if message["type"] == "http.disconnect":
                raise BadRequest("The client disconnected before its body was complete; nothing was changed")
            chunk = cast("bytes", message.get("body", b""))
            size += len(chunk)
            if bytes_max and size > bytes_max:
                raise _too_long(bytes_max)
            more = bool(message.get("more_body", False))
            if chunk:
                yield chunk

    async def _admit(self) -> None:
        admit, self.admit = self.admit, None
        if admit is not None:
            await admit()

    def release_body(self) -> None:
        """Return the body's bytes to the budget, and drop its share, which refers to the request."""
        if self.body_share is not None:
            self.body_share.release()
            self.body_share = None

    def _too_large(self) -> TooLarge:
        return TooLarge(
            f"The request body exceeds the limit of {self.body_bytes_max} bytes for this route (the setting "
            "server.body_bytes_max limits all routes): send less at once"
        )

    async def json(self) -> dict[str, object]:
        """Read the body as a JSON object. Raises the errors of `body`, and BadRequest for any other content."""
        return self.decode(await self.body(), dict[str, object])

    @staticmethod
    def decode(data: bytes, shape: type[T]) -> T:
        """Decode JSON into a type.

        Raises BadRequest with the reason and the position, also for a long body of more than CONTAINERS_MAX arrays and
        objects or VALUES_MAX values.
        """
        if len(data) > SHORT_BODY_BYTES and _is_costly(data):
            _check_parts(data)
        return _decode(data, shape)

    @staticmethod
    def decode_fields(data: bytes, part: type[T]) -> T:
        """Decode only some fields of a JSON body, those of the type `part`; the others are skipped. Raises BadRequest
        if malformed.
        """
        return _decode(data, part)


@lru_cache(maxsize=1024)
def _decoder(shape: Hashable) -> msgspec.json.Decoder[Any]:
    """Return the decoder of a type, which msgspec would build anew at each call for a union of types."""
    return msgspec.json.Decoder(cast("type", shape))


def _decode(data: bytes, shape: type[T]) -> T:
    try:
        result: T = _decoder(cast("Hashable", shape)).decode(data)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"Malformed json request: {error}") from None
    return result


def _is_costly(data: bytes) -> bool:
    return data.count(b"[") + data.count(b"{") > CONTAINERS_MAX or data.count(b",") > VALUES_MAX


def _check_parts(data: bytes) -> None:
    """Count the arrays, objects and values of a body exactly, ignoring brackets and commas inside its top-level
    strings.

    Raises BadRequest if there are too many.
    """
    raw = _decode(data, msgspec.Raw)
    fields = _decode(data, dict[str, msgspec.Raw]).values() if bytes(raw).startswith(b"{") else [raw]
    if _is_costly(b"".join([each for each in map(bytes, fields) if not each.startswith(b'"')])):
        raise BadRequest(
            f"The body has more than {CONTAINERS_MAX} arrays and objects, or {VALUES_MAX} values: send less at once"
        )


def origin_of(
    target: tuple[str, str], headers: Mapping[bytes, bytes], *, peer: str, credential: Credential | None
) -> RequestOrigin:
    """Return the origin of a request. `target` has the names of the protocol and of the operation."""
    return RequestOrigin(
        protocol=target[0],
        operation=target[1],
        client=_short_text(headers.get(b"user-agent", b"")[:TEXT_MAX]),
        peer=peer,
        credential=proof_of(credential),
    )


@lru_cache(1024)
def _short_text(text: bytes) -> str:
    return shorten_text(text.decode("utf-8", "replace"))


def proof_of(credential: Credential | None) -> str:
    """Return how the caller was authenticated: `token <id>`, `issuer`, `basic`, or "" for an anonymous caller."""
    if credential is None:
        return ""
    if credential.user is None:
        return f"token {credential.token_id}"
    if credential.expires_ms is not None:
        return "issuer"
    return "" if credential.user == ANONYMOUS else "basic"
