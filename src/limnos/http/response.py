# SPDX-License-Identifier: Apache-2.0
"""One response: status, headers, and the body as bytes or as a stream.

Must not know protocols.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

import msgspec

from limnos.http.streamed_body import StreamedBody
from limnos.services.request.cache_validity import CacheValidity

Answer = tuple[int, list[tuple[bytes, bytes]], bytes | StreamedBody]
"""Status, all headers, and the body as it is sent."""


JSON = (b"content-type", b"application/json")
NO_STORE = (b"cache-control", b"no-store")
"""The header of a response with a secret, which must not be cached."""
_encode = msgspec.json.Encoder().encode


NO_ENCODINGS = ((b"accept-encoding", b"identity"),)
"""The headers of a 415: the server decodes no content encoding (RFC 9110, section 15.5.16)."""


class Response:
    """An HTTP response of a handler. The application adds the length and the request id to `headers`.

    `stream` yields the body in chunks, in place of `body`. `validity` contains the conditions under which the response
    cache may send the response again; if None, it is not cached. `reason` is the error message for the log.
    """

    __slots__ = ("body", "headers", "reason", "status", "stream", "validity")

    def __init__(self, status: int, body: bytes = b"", headers: tuple[tuple[bytes, bytes], ...] = (JSON,)) -> None:
        self.status = status
        self.body = body
        self.headers = headers
        self.reason = ""
        self.validity: CacheValidity | None = None
        self.stream: AsyncGenerator[bytes, None] | None = None


def json_response(value: object, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Response:
    """Return a response whose body is `value` encoded as JSON, with the Content-Type of JSON."""
    return Response(status, _encode(value), (JSON, *headers))


def stream_response(
    stream: AsyncGenerator[bytes, None], headers: tuple[tuple[bytes, bytes], ...] = (JSON,)
) -> Response:
    """Return a 200 response whose body is sent while it is produced. Each chunk has the route's deadline."""
    response = Response(200, b"", headers)
    response.stream = stream
    return response


async def begun_stream_response(
    stream: AsyncGenerator[bytes, None], headers: tuple[tuple[bytes, bytes], ...]
) -> Response:
    """Return a 200 response like `stream_response`, after the first chunk is there: refusals are raised here, before
    the response begins.
    """
    first = await anext(stream)
    return stream_response(_resume(first, stream), headers)


async def _resume(first: bytes, stream: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    try:
        yield first
        async for piece in stream:
            yield piece
    finally:
        await stream.aclose()


def no_content() -> Response:
    """Build a response with status 204 and no body."""
    return Response(204, b"", ())
