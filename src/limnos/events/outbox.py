"""The event that a mutation writes beside its rows, shaped as a CloudEvent (specification 1.0). Pure.

May import `model`. Must not know where events are kept or sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SPEC_VERSION: Final = "1.0"
CONTENT_TYPE: Final = "application/json"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxEvent:
    """One thing that happened. `id` is unique within `source`; a delivery that is repeated repeats the id.

    type: what happened, reversed-DNS style: `limnos.table.renamed`. source: the store that says so, a URI reference.
    subject: what it happened to. time_ms: when it was committed, milliseconds since the epoch, UTC. actor: who did it.
    request_id: in answer to which request. data: the facts, as JSON has them.

    Raises ValueError when a text that CloudEvents requires is empty.
    """

    id: str
    type: str
    source: str
    subject: str
    time_ms: int
    actor: str
    request_id: str
    data: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        empty = [name for name in ("id", "type", "source", "subject", "actor") if not getattr(self, name)]
        if empty:
            raise ValueError(f"An event needs a non-empty {', '.join(empty)}.")

    def cloud_event(self) -> dict[str, object]:
        """Give the event in CloudEvents' JSON form; `actor` and `requestid` are extension attributes (lower case only)."""
        return {
            "specversion": SPEC_VERSION,
            "id": self.id,
            "type": self.type,
            "source": self.source,
            "subject": self.subject,
            "time": _rfc3339(self.time_ms),
            "datacontenttype": CONTENT_TYPE,
            "actor": self.actor,
            "requestid": self.request_id,
            "data": dict(self.data),
        }


def _rfc3339(time_ms: int) -> str:
    moment = _EPOCH + timedelta(milliseconds=time_ms)  # integers all the way: floats would round some milliseconds
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
