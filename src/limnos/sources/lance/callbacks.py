"""What a process that changes a Lance table asks back of who started it: to commit a version, and which versions there are by then.

May import the wire of `sources` and msgspec. Nothing is asked before all that a question is fed with has come: on one wire, answers and pieces of a
body would be taken for each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec

from limnos.sources.wire import CALL, DONE

if TYPE_CHECKING:
    from limnos.sources.wire import Wire


class CallRefusal(Exception):
    """Who was asked has refused; `kind` says what it is about."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class CallbackWire:
    """The wire to who started this process, while it answers a question."""

    wire: Wire | None = None


def call_parent(name: str, about: dict[str, Any]) -> dict[str, Any]:
    """Ask, and wait for the answer. Raises Refused."""
    wire = cast("Wire", CallbackWire.wire)
    wire.send([CALL, name.encode(), msgspec.json.encode(about)])
    outcome, *told = wire.receive()
    if outcome != DONE:
        raise CallRefusal(told[0].decode(), told[1].decode())
    return cast("dict[str, Any]", msgspec.json.decode(told[0]))
