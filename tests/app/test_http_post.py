# SPDX-License-Identifier: Apache-2.0
"""One POST to an external address, against servers that follow the protocol and servers that violate it."""

from __future__ import annotations

import asyncio

import pytest

from limnos.app.http_post import PostFailed, post


def answered(answer: bytes | None, *, timeout_s: float = 5) -> tuple[int, bytes]:
    """Post to a server with a fixed answer (None: no answer). Returns the status and the request that the server
    received.
    """

    async def story() -> tuple[int, bytes]:
        request_future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        serving: list[asyncio.Task[None]] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            serving.append(asyncio.current_task())  # type: ignore[arg-type]
            head = await reader.readuntil(b"\r\n\r\n")
            request_future.set_result(head + await reader.readexactly(2))
            if answer is None:
                await reader.read()
            else:
                writer.write(answer)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            status = await post(f"http://127.0.0.1:{port}/a?b=c", {"x-y": "z"}, b"{}", timeout_s=timeout_s)
            return status, request_future.result()
        finally:
            await _closed(server, serving)

    return asyncio.run(story())


def test_request_has_path_headers_and_length() -> None:
    """The request has path, query, host, headers and length, and the connection is closed afterwards."""
    status, request = answered(b"HTTP/1.1 204 No Content\r\n\r\n")

    head, _, body = request.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert (status, body, lines[0]) == (204, b"{}", b"POST /a?b=c HTTP/1.1")
    assert {b"content-length: 2", b"connection: close", b"x-y: z"} <= set(lines)
    assert any(line.startswith(b"host: 127.0.0.1:") for line in lines)


@pytest.mark.parametrize(
    "answer, status",
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nunread", 200),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 202 Accepted\r\n\r\n", 202),
        (b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\n\r\n", 302),
        (b"HTTP/1.0 500 Oh\r\n\r\n", 500),
    ],
)
def test_status_is_returned_and_redirects_are_not_followed(answer: bytes, status: int) -> None:
    """The status is that of the final answer, and redirects are not followed."""
    assert answered(answer)[0] == status


@pytest.mark.parametrize(
    "answer, message",
    [
        (b"", "ended before a response"),
        (b"HTTP/1.1 200 OK\r\n", "ended before a response"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 abc\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 200_000 + b"\r\n\r\n", "too long"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 20, "no final response"),
    ],
    ids=["nothing", "half", "ssh", "no-status", "endless", "for-ever-100"],
)
def test_invalid_answer_raises_an_error(answer: bytes, message: str) -> None:
    """An invalid answer raises an error with a message."""
    with pytest.raises(PostFailed, match=message):
        answered(answer)


def test_deadline_applies_to_the_whole_request() -> None:
    """The deadline applies to the request as a whole."""
    with pytest.raises(PostFailed, match="no response within"):
        answered(None, timeout_s=0.1)


def test_refused_connection_raises_an_error() -> None:
    """A refused connection raises an error that says so."""
    with pytest.raises(PostFailed):
        asyncio.run(post("http://127.0.0.1:1/", {}, b"", timeout_s=5))


def test_https_sends_no_plaintext() -> None:
    """With https, nothing is sent in plaintext to a server without TLS."""
    with pytest.raises(PostFailed):
        asyncio.run(_tls_to_plain())


async def _tls_to_plain() -> None:
    serving: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.current_task())  # type: ignore[arg-type]
        await reader.read(100)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        await post(f"https://127.0.0.1:{port}/", {}, b"", timeout_s=5)
    finally:
        await _closed(server, serving)


async def _closed(server: asyncio.Server, serving: list[asyncio.Task[None]]) -> None:
    """Close a server, and wait for its tasks."""
    server.close()
    await asyncio.gather(*serving, return_exceptions=True)
    for _ in range(5):
        await asyncio.sleep(0)
