# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests of connector catalogs: changes in Gravitino's format, lists, and a source that becomes unreachable
and reachable again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from tests.bridges import Bridge
from tests.http.driver import API, DriverNode

SourceRequest = tuple[str, str, object]
"""Method, path and body of a request."""
BACK_S = 60
"""The time limit until a source is reachable again, far longer than necessary."""


def updates(*changes: dict[str, object]) -> dict[str, object]:
    """Return the body of an alter request with changes."""
    return {"updates": list(changes)}


def change(kind: str, *path: str, **fields: object) -> dict[str, object]:
    """Return a change, which is about a column if a path is given."""
    return {"@type": kind, "fieldName": list(path), **fields} if path else {"@type": kind, **fields}


def set_to(name: str, value: str) -> dict[str, object]:
    """Return the change that sets a property."""
    return change("setProperty", property=name, value=value)


def removed(name: str) -> dict[str, object]:
    """Return the change that removes a property."""
    return change("removeProperty", property=name)


def listed(node: DriverNode, path: str, *, user: str = "admin") -> list[str]:
    """Return the names in the answer to a list request."""
    answer = node.get(path, user=user)
    assert answer.status == 200, answer.body
    return [each["name"] for each in answer.json()["identifiers"]]


def wait_for(node: DriverNode, path: str) -> None:
    """Repeat a request until the source answers, because the server reconnects after a pause."""
    ends = time.monotonic() + BACK_S
    while node.get(path).status != 200:
        assert time.monotonic() < ends, "the source is not back"


def sees_it_cut(
    node: DriverNode, bridge: Bridge, *, requests: Iterable[SourceRequest], known: str, unable: str
) -> None:
    """Check the answers while a source is disconnected, and reconnect it.

    Requests to the source are refused with 502 without the source's address, and with 403 for callers without rights.
    Lists of schemas and known objects are answered.
    """
    bridge.cut()
    try:
        for method, path, body in requests:
            away = node.ask(method, path, body)
            assert (away.status, away["code"], away["type"]) == (502, 1007, "ConnectionFailedException"), away.body
            assert str(bridge.port) not in away.body.decode()
            assert node.ask(method, path, body, user=unable).status == 403
        assert node.get(f"{API}/lake/catalogs/main/schemas").status == 200
        assert node.get(known).status == 200
    finally:
        bridge.mend()


def sees_it_silent(node: DriverNode, bridge: Bridge, *, looks: str, changes: SourceRequest) -> None:
    """Check that reads end in time with 502, and changes with 500 or 502, while a source does not answer. Reconnect it
    afterwards.
    """
    bridge.silent = True
    try:
        began = time.monotonic()
        assert node.get(looks).status == 502
        assert node.ask(*changes).status in (500, 502)
        assert time.monotonic() - began < BACK_S  # the time limits are seconds
    finally:
        bridge.silent = False
        bridge.cut()
        bridge.mend()
