# SPDX-License-Identifier: Apache-2.0
"""Bulk jobs (own API): many independent changes, sent in parts, each with its outcome.

An item is a JSON object on one line, described in docs/guides/bulk.md. Its position is its number in the job, from 0.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, Protocol

import msgspec

from limnos.client.errors import ArgumentError, UnavailableError, UnexpectedAnswerError
from limnos.client.flow import Flow, Request, Resource, S, verb
from limnos.client.values import BulkOutcome

TRIES: Final = 4
"""How often a part with items that failed for now is sent."""
PAUSE_S: Final = 1.0
"""The time before the second attempt, in seconds; it doubles with each one."""
ITEMS_AT_ONCE: Final = 500
BYTES_AT_ONCE: Final = 60_000
"""The size of a part in bytes. The server reads so much before it decides on access."""
ITEM_BYTES_MAX: Final = 1 << 20
"""The maximum size of a part that the server accepts, in bytes."""
ATOMIC_MAX: Final = 1000
"""The maximum number of items of an all-or-nothing job."""


class BulkPart(NamedTuple):
    """Consecutive items of a job: the position of the first, their number, and their lines."""

    after: int
    items: int
    data: bytes


class _Count(msgspec.Struct, frozen=True):
    """The last line of a response: the number of the items."""

    items: int


def cut_into_items(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Split a file into its lines that are not blank, without the line breaks.

    Raises ArgumentError for a line that is larger than the server accepts.
    """
    rest = bytearray()
    for piece in pieces:
        *lines, last = piece.split(b"\n")
        for line in lines:
            whole = bytes(rest) + line if rest else line
            rest.clear()
            if whole.strip():
                yield whole
        rest += last
        if len(rest) > ITEM_BYTES_MAX:
            raise ArgumentError("a line of the file is larger than 1 MiB: it is not a file of items")
    if rest.strip():
        yield bytes(rest)


def cut_into_parts(items: Iterable[bytes], *, after: int = 0) -> Iterator[BulkPart]:
    """Group items into parts. The items before position `after` are left out."""
    lines: list[bytes] = []
    size, start = 0, after
    for position, line in enumerate(items):
        if position < after:
            continue
        if lines and (len(lines) >= ITEMS_AT_ONCE or size + len(line) > BYTES_AT_ONCE):
            yield BulkPart(start, len(lines), b"\n".join(lines) + b"\n")
            lines, size, start = [], 0, position
        lines.append(line)
        size += len(line) + 1
    if lines:
        yield BulkPart(start, len(lines), b"\n".join(lines) + b"\n")


def send_part(client: BulkClient, job: str, *, part: BulkPart) -> tuple[BulkOutcome, ...]:
    """Send a part, again while items fail for now, at most `TRIES` times."""
    for attempt in range(TRIES):
        outcomes = client.bulk.send(job, part)
        if attempt == TRIES - 1 or all(each.outcome != "failed" for each in outcomes):
            return outcomes
        time.sleep(PAUSE_S * 2**attempt)
    raise AssertionError("the last attempt returns")


class BulkClient(Protocol):
    """A client with calls on bulk jobs."""

    @property
    def bulk(self) -> BulkSender:
        """The calls."""
        ...


class BulkSender(Protocol):
    """The call that sends a part."""

    def send(self, job: str, part: BulkPart) -> tuple[BulkOutcome, ...]:
        """Send a part of a job, and return the outcome of each item."""
        ...


class Bulk(Resource[S]):
    """Calls that execute the items of bulk jobs in the client's metalake."""

    @verb
    def send(self, job: str, part: BulkPart, *, atomic: bool = False) -> Flow[tuple[BulkOutcome, ...]]:
        """Send a part of a job, and return the outcome of each item.

        With `atomic` the part is the whole job, and all of it is executed or nothing. A part can be sent again: an item
        that was executed under the same `job` is not executed again.
        """
        query = (("job", job), ("after", str(part.after)), *((("atomic", "true"),) if atomic else ()))
        reply = yield Request(
            method="POST",
            path=self.own_url("bulk"),
            query=query,
            body=part.data,
            media_type="application/x-ndjson",
            repeatable=True,
        )
        *lines, last = reply.body.splitlines() or [b""]
        try:
            outcomes = tuple([msgspec.json.decode(line, type=BulkOutcome) for line in lines])
            count = msgspec.json.decode(last, type=_Count).items
        except msgspec.DecodeError as error:
            raise UnexpectedAnswerError(
                f"the server's answer could not be read ({error}): check that client and server are of the same"
                " version",
                status=reply.status,
                code="unexpected-answer",
            ) from error
        if count != part.items or len(outcomes) != part.items:
            raise UnavailableError("the server's answer ended early: send the part again")
        return outcomes
