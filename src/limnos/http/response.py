"""One answer: status, headers, and the body as bytes that are joined once.

May import msgspec only.
"""

from __future__ import annotations

import msgspec

JSON = (b"content-type", b"application/json")
_encode = msgspec.json.Encoder().encode


class Response:
    """An answer. `headers` come before the length and the request id, which the application adds."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, body: bytes = b"", headers: tuple[tuple[bytes, bytes], ...] = (JSON,)) -> None:
        self.status = status
        self.body = body
        self.headers = headers


def json_response(value: object, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Response:
    """Encode a value as JSON."""
    return Response(status, _encode(value), (JSON, *headers))


def no_content() -> Response:
    """Answer 204."""
    return Response(204, b"", ())
