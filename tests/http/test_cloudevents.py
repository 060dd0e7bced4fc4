# SPDX-License-Identifier: Apache-2.0
"""Events as the server sends them: their format, their division into bodies, and the documented check of their
signature.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable
from pathlib import Path

from limnos.http.cloudevents import BATCH_BYTES_MAX, SECRET_PREFIX, batches_of, event_of, message_id, signed_headers
from limnos.model.kinds import Kind
from limnos.services.lookup.change_publishing import PublishedChange

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "change-feed.md"
TOLD = PublishedChange(
    zone=3,
    revision=7,
    ordinal=1,
    operation="move",
    kind=Kind.TABLE,
    id=9,
    path=None,
    old=("main", "a.b", "t"),
    new=None,
    actor="ana",
    request_id="r",
    at=1_795_217_411_120,
)
SECRET = base64.b64encode(b"k" * 32).decode()
Check = Callable[[str, dict[str, str], bytes], bool]


def documented() -> Check:
    """Return the receiver's function from the documentation page."""
    (code,) = [
        block
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
        if "hmac" in block
    ]
    namespace: dict[str, object] = {}
    exec(code, namespace)
    return namespace["is_genuine"]  # type: ignore[return-value]


def test_event_has_only_visible_parts_and_a_stable_id() -> None:
    """An event has only visible parts, its subject is a visible path, and its id is the same for each delivery."""
    event = event_of(TOLD, epoch=5, metalake="my lake")

    assert event == {
        "specversion": "1.0",
        "id": "5-3-7-1",
        "source": "/metalakes/my%20lake",
        "type": "limnos.table.move",
        "time": event["time"],
        "datacontenttype": "application/json",
        "sequence": f"{7:020d}",
        "partitionkey": "3",
        "subject": "main.`a.b`.t",
        "data": {
            "zone": 3,
            "revision": 7,
            "ordinal": 1,
            "operation": "move",
            "kind": "table",
            "id": 9,
            "old": ["main", "a.b", "t"],
            "actor": "ana",
            "request_id": "r",
            "at": event["time"],
        },
    }


def test_bodies_are_bounded() -> None:
    """Events are divided into bodies in order. A body has a limited number of events and about a megabyte; a longer
    event has a body of its own.
    """
    events: list[dict[str, object]] = [{"n": number} for number in range(5)]
    big: list[dict[str, object]] = [{"n": number, "x": "y" * (BATCH_BYTES_MAX // 2)} for number in range(3)]

    few = [json.loads(body) for body in batches_of(events, size=2)]
    large = [json.loads(body) for body in batches_of(big, size=100)]

    assert few == [events[:2], events[2:4], events[4:]]
    assert [len(body) for body in large] == [1, 1, 1]
    assert list(batches_of([], size=2)) == []


def test_equal_bodies_for_one_webhook_have_equal_ids() -> None:
    """Equal bodies for one webhook have equal ids; another body or webhook has another id."""
    names = [message_id(1, b"a"), message_id(1, b"a"), message_id(1, b"b"), message_id(2, b"a")]

    assert len(set(names)) == 3
    assert names[0] == names[1]


def test_documented_function_verifies_signatures() -> None:
    """The documented function accepts sent bodies, and refuses another body, secret, id or time."""
    is_genuine, now, secret = documented(), int(time.time()), f"{SECRET_PREFIX}{SECRET}"
    headers = signed_headers(b"[]", message="msg_1", at_s=now, secret=SECRET)
    old = signed_headers(b"[]", message="msg_1", at_s=now - 3600, secret=SECRET)

    assert is_genuine(secret, headers, b"[]")
    assert not is_genuine(secret, headers, b"[1]")
    assert not is_genuine(SECRET_PREFIX + base64.b64encode(b"l" * 32).decode(), headers, b"[]")
    assert not is_genuine(secret, {**headers, "webhook-id": "msg_2"}, b"[]")
    assert not is_genuine(secret, {**headers, "webhook-timestamp": str(now - 1)}, b"[]")
    assert not is_genuine(secret, old, b"[]")
