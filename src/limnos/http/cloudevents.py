# SPDX-License-Identifier: Apache-2.0
"""Changes as CloudEvents 1.0 in JSON batches, with the signature that receivers verify (Standard Webhooks).

Pure: uses neither sockets nor clocks.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import quote

import msgspec

from limnos.http.admin.activity.changes import encode
from limnos.http.times import instant
from limnos.names.display import render
from limnos.services.lookup.change_publishing import PublishedChange

CONTENT_TYPE: Final = "application/cloudevents-batch+json"
BATCH_BYTES_MAX: Final = 1 << 20
SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - the prefix of every secret


def event_of(change: PublishedChange, *, epoch: int, metalake: str) -> dict[str, object]:
    """Encode a change as an event. A repeated event has the same id."""
    event: dict[str, object] = {
        "specversion": "1.0",
        "id": f"{epoch}-{change.zone}-{change.revision}-{change.ordinal}",
        "source": f"/metalakes/{quote(metalake, safe='')}",
        "type": f"limnos.{change.kind.word}.{change.operation}",
        "time": instant(change.at),
        "datacontenttype": "application/json",
        "sequence": f"{change.revision:020d}",
        "partitionkey": str(change.zone),
        "data": encode(change),
    }
    where = change.path or change.old
    return event | ({"subject": render(where)} if where else {})


def batches_of(events: Sequence[dict[str, object]], *, size: int) -> Iterator[bytes]:
    """Encode events into bodies, in order: at most `size` events and about `BATCH_BYTES_MAX` bytes in each."""
    part: list[bytes] = []
    length = 0
    for event in events:
        event_bytes = msgspec.json.encode(event)
        if part and (len(part) >= size or length + len(event_bytes) > BATCH_BYTES_MAX):
            yield b"[%b]" % b",".join(part)
            part, length = [], 0
        part.append(event_bytes)
        length += len(event_bytes)
    if part:
        yield b"[%b]" % b",".join(part)


def message_id(webhook_id: int, body: bytes) -> str:
    """Return the value of the header `webhook-id`: a digest, so that each retry of a delivery has the same id."""
    return f"msg_{hashlib.sha256(b'%d.%b' % (webhook_id, body)).hexdigest()[:32]}"


def signed_headers(body: bytes, *, message: str, at_s: int, secret: str) -> dict[str, str]:
    """Return the headers of a webhook delivery, with its HMAC-SHA256 signature.

    `message` is the id from `message_id`. `secret` is the webhook's secret in base64, without the prefix `whsec_`.
    """
    signed = b"%b.%d.%b" % (message.encode(), at_s, body)
    signature = base64.b64encode(hmac.new(base64.b64decode(secret), signed, hashlib.sha256).digest()).decode()
    return {
        "content-type": CONTENT_TYPE,
        "webhook-id": message,
        "webhook-timestamp": str(at_s),
        "webhook-signature": f"v1,{signature}",
    }
