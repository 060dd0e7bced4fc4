"""One answer: status, headers, and the body as bytes that are joined once.

May import msgspec only.
"""

from __future__ import annotations

import msgspec

Answer = tuple[int, list[tuple[bytes, bytes]], bytes, bytes]
"""Status, all headers, what is sent as the body, and the reason phrase (empty for the customary one)."""

REASON_MAX = 500
_PRINTABLE = bytes(code if 32 <= code < 127 or code >= 160 else 32 for code in range(256))
JSON = (b"content-type", b"application/json")
_encode = msgspec.json.Encoder().encode


class Response:
    """An answer. `headers` come before the length and the request id, which the application adds.

    `reason` is a refusal's message, for the log and for answers that have no body.
    """

    __slots__ = ("body", "headers", "reason", "status")

    def __init__(self, status: int, body: bytes = b"", headers: tuple[tuple[bytes, bytes], ...] = (JSON,)) -> None:
        self.status = status
        self.body = body
        self.headers = headers
        self.reason = ""


def json_response(value: object, status: int = 200, headers: tuple[tuple[bytes, bytes], ...] = ()) -> Response:
    """Encode a value as JSON."""
    return Response(status, _encode(value), (JSON, *headers))


def no_content() -> Response:
    """Answer 204."""
    return Response(204, b"", ())


def reason_phrase(text: str) -> bytes:
    """Spell a message as the reason phrase of a status line: its first line, Latin-1 without controls, of bounded length."""
    line = text.strip().partition("\n")[0][:REASON_MAX].encode("latin-1", "replace")
    return line.translate(_PRINTABLE)
