# SPDX-License-Identifier: Apache-2.0
"""Sends one HTTP POST request to an external URL and returns the status. Does not follow redirects.

Must not know the content. One deadline covers everything from name resolution to the status. Only the head of the
response is read, at most 64 KiB.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

HEAD_BYTES_MAX: Final = 1 << 16
_TLS = ssl.create_default_context()


class PostFailed(Exception):
    """Raised if no status was received, for example after a timeout. The message is the reason."""


async def post(url: str, headers: Mapping[str, str], body: bytes, *, timeout_s: float) -> int:
    """Send a body and return the response's status.

    Raises PostFailed if the request fails or no status arrives within `timeout_s`, counted from name resolution on.
    """
    try:
        async with asyncio.timeout(timeout_s):
            return await _post(url, headers, body)
    except TimeoutError:
        raise PostFailed(f"no response within {timeout_s:g} s") from None
    except (OSError, ssl.SSLError, EOFError, ValueError) as error:
        raise PostFailed(str(error) or type(error).__name__) from error


async def _post(url: str, headers: Mapping[str, str], body: bytes) -> int:
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    reader, writer = await asyncio.open_connection(
        parts.hostname, port, ssl=_TLS if secure else None, limit=HEAD_BYTES_MAX
    )
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        lines = [
            f"POST {target} HTTP/1.1",
            f"host: {parts.netloc}",
            "connection: close",
            f"content-length: {len(body)}",
        ]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode("ascii") + body)
        await writer.drain()
        return await _status(reader)
    finally:
        writer.transport.abort()


async def _status(reader: asyncio.StreamReader) -> int:
    """Return the status of the final response, after interim 1xx responses. Raises ValueError for another response."""
    for _ in range(10):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            raise ValueError("the head of the response is too long") from None
        except asyncio.IncompleteReadError as error:
            raise ValueError("the connection ended before a response was complete") from error
        version, _, rest = head.partition(b" ")
        if not version.startswith(b"HTTP/1.") or not rest[:3].isdigit():
            raise ValueError("the response is not HTTP")
        status = int(rest[:3])
        if status >= 200:
            return status
    raise ValueError("no final response arrived")
