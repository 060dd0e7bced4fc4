"""Callbacks from a worker process that changes a Lance table to its server: list versions and commit one.

May import the wire of `sources` and msgspec. Must not know tables. A callback is only sent after the whole body of the
question has come: on one wire, answers and pieces of a body would be confused.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from limnos.sources.wire import CALL, DONE, Wire


class CallRefusal(Exception):
    """The server refused a callback; `kind` names the object that it is about."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class CallbackWire:
    """Holds the wire to the server while a question is answered."""

    wire: Wire | None = None


def call_parent(name: str, about: dict[str, Any]) -> dict[str, Any]:
    """Send a callback and wait for the answer. Raises CallRefusal."""
    wire = cast("Wire", CallbackWire.wire)
    wire.send([CALL, name.encode(), msgspec.json.encode(about)])
    outcome, *entries = wire.receive()
    if outcome != DONE:
        raise CallRefusal(entries[0].decode(), entries[1].decode())
    return cast("dict[str, Any]", msgspec.json.decode(entries[0]))
