# SPDX-License-Identifier: Apache-2.0
"""A response body in chunks: each chunk has a deadline, and the response is counted and logged after the last one.

Must not know protocols or connections. Once the head is sent, a failure cannot be reported any more. The connection
then ends before the last chunk, which every HTTP/1.1 client detects.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import cast

from limnos.services.request.concurrency.loop_turns import Deadlines, LoopUse
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.http")


class StreamTruncated(Exception):
    """Raised if the stream ended before its last chunk; the log has the reason."""


class StreamedBody:
    """The chunks of one response. `ended` is called exactly once, with the number of bytes, however the response
    ends.
    """

    def __init__(
        self,
        source: AsyncGenerator[bytes, None],
        *,
        deadlines: Deadlines,
        seconds: float,
        request_id: str,
        ended: Callable[[int], None],
        loop_use: LoopUse | None = None,
    ) -> None:
        self._source = source
        self._deadlines = deadlines
        self._seconds = seconds
        self._request_id = request_id
        self._ended: Callable[[int], None] | None = ended
        self._loop_use = loop_use
        self.size = 0

    def __aiter__(self) -> StreamedBody:
        return self

    async def __anext__(self) -> bytes:
        """Return the next chunk that is not empty.

        Raises StreamTruncated if the source fails or misses the deadline.
        """
        task = cast("asyncio.Task[object]", asyncio.current_task())
        self._deadlines.watch(task, self._seconds)
        try:
            piece = b""
            while not piece:
                work = anext(self._source)
                piece = await (work if self._loop_use is None else self._loop_use.run(work))
        except StopAsyncIteration:
            raise
        except asyncio.CancelledError:
            if not self._deadlines.was_late(task):
                raise
            log.warning(
                "response truncated", error=f"a part took over {self._seconds:g} s", request_id=self._request_id
            )
            raise StreamTruncated from None
        except Exception as error:
            log.exception("response truncated", request_id=self._request_id)
            raise StreamTruncated from error
        finally:
            self._deadlines.release(task)
        self.size += len(piece)
        return piece

    async def close(self) -> None:
        """Close the source at any point, and call `ended`."""
        callback, self._ended = self._ended, None
        if callback is not None:
            await self._source.aclose()
            callback(self.size)
