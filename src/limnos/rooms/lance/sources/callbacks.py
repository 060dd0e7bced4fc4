# SPDX-License-Identifier: Apache-2.0
"""Callbacks from a worker process that changes a Lance table to its server: list versions, and commit a version.

Must not know tables. A callback is sent only after the complete request body was received: on one wire, responses and
chunks of a body could not be distinguished.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from limnos.sources.wire import CALL, DONE, Wire


class CallRefusal(Exception):
    """Raised if the server refused a callback; `kind` is the kind of the object concerned."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class CallbackWire:
    """The wire of the request in progress, by which `call_parent` reaches the server."""

    wire: Wire | None = None


def call_parent(name: str, about: dict[str, Any]) -> dict[str, Any]:
    """Send the callback `name` with its arguments `about` to the server, and return the response's fields.

    Raises CallRefusal.
    """
    wire = cast("Wire", CallbackWire.wire)
    wire.send([CALL, name.encode(), msgspec.json.encode(about)])
    outcome, *entries = wire.receive()
    if outcome != DONE:
        raise CallRefusal(entries[0].decode(), entries[1].decode())
    return cast("dict[str, Any]", msgspec.json.decode(entries[0]))
