"""One answer: status, headers, and the body as bytes that are joined once.

May import msgspec, and `services` for the type of `lasting`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from limnos.http.streamed_body import StreamedBody
    from limnos.services.request.cache_validity import CacheValidity

    Answer = tuple[int, list[tuple[bytes, bytes]], bytes | StreamedBody]
    """Status, all headers, and what is sent as the body."""


JSON = (b"content-type", b"application/json")
NO_STORE = (b"cache-control", b"no-store")
"""Of an answer that holds a secret."""
_encode = msgspec.json.Encoder().encode


class Response:
    """An answer. `headers` come before the length and the request id, which the application adds.

    `stream` gives the body in pieces, in place of `body`. `lasting` says that the answer may be kept and sent again, and how long. `reason` is a refusal's message, for the log.
    """

    __slots__ = ("body", "headers", "lasting", "reason", "status", "stream")

    def __init__(self, status: int, body: bytes = b"", headers: tuple[tuple[bytes, bytes], ...] = (JSON,)) -> None:
        self.status = status
        self.body = body
        self.headers = headers
        self.reason = ""
        self.lasting: CacheValidity | None = None
        self.stream: AsyncGenerator[bytes, None] | None = None


def json_response(value: object, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Response:
    """Encode a value as JSON."""
    return Response(status, _encode(value), (JSON, *headers))


def stream_response(
    stream: AsyncGenerator[bytes, None], headers: tuple[tuple[bytes, bytes], ...] = (JSON,)
) -> Response:
    """Answer 200 with a body that is sent as it is made; each piece has the time that the route has for an answer."""
    response = Response(200, b"", headers)
    response.stream = stream
    return response


def no_content() -> Response:
    """Answer 204."""
    return Response(204, b"", ())
