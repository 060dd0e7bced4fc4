"""Helpers for tests of connector catalogs: changes in Gravitino's form, lists, and a source that becomes unreachable
and returns.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from tests.bridges import Bridge
from tests.http.driver import API, DriverNode

Asked = tuple[str, str, object]
"""Method, path and body of a request."""
BACK_S = 60
"""How long a source may take to be reached again: far more than it needs."""


def updates(*changes: dict[str, object]) -> dict[str, object]:
    """Return the body of an alter."""
    return {"updates": list(changes)}


def change(kind: str, *path: str, **fields: object) -> dict[str, object]:
    """Return a change, of a column if there is a path."""
    return {"@type": kind, "fieldName": list(path), **fields} if path else {"@type": kind, **fields}


def set_to(name: str, value: str) -> dict[str, object]:
    """Return the change that sets a property."""
    return change("setProperty", property=name, value=value)


def removed(name: str) -> dict[str, object]:
    """Return the change that removes a property."""
    return change("removeProperty", property=name)


def listed(node: DriverNode, path: str, *, user: str = "admin") -> list[str]:
    """Return the names of a list."""
    answer = node.get(path, user=user)
    assert answer.status == 200, answer.body
    return [each["name"] for each in answer.json()["identifiers"]]


def wait_for(node: DriverNode, path: str) -> None:
    """Repeat a request until the source answers, because connections return after a pause."""
    ends = time.monotonic() + BACK_S
    while node.get(path).status != 200:
        assert time.monotonic() < ends, "the source is not back"


def sees_it_cut(node: DriverNode, bridge: Bridge, *, asked: Iterable[Asked], known: str, unable: str) -> None:
    """Disconnect a source and reconnect it. Meanwhile requests are 502 without its address; callers without rights are
    refused, and known objects are answered.
    """
    bridge.cut()
    try:
        for method, path, body in asked:
            away = node.ask(method, path, body)
            assert (away.status, away["code"], away["type"]) == (502, 1007, "ConnectionFailedException"), away.body
            assert str(bridge.port) not in away.body.decode()
            assert node.ask(method, path, body, user=unable).status == 403
        assert node.get(f"{API}/lake/catalogs/main/schemas").status == 200
        assert node.get(known).status == 200
    finally:
        bridge.mend()


def sees_it_silent(node: DriverNode, bridge: Bridge, *, looks: str, changes: Asked) -> None:
    """Let a source stop answering and answer again. Reads fail in time, and the outcome of a change may be unknown."""
    bridge.silent = True
    try:
        began = time.monotonic()
        assert node.get(looks).status == 502
        assert node.ask(*changes).status in (500, 502)
        assert time.monotonic() - began < BACK_S  # limits are seconds
    finally:
        bridge.silent = False
        bridge.cut()
        bridge.mend()
