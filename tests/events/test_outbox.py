"""Outbox events: CloudEvents as the specification wants them."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.events.outbox import OutboxEvent

EVENT = OutboxEvent(
    id="1-42-0",
    type="limnos.table.renamed",
    source="/stores/9f",
    subject="lake/main/raw/nyc",
    time_ms=1_790_000_000_123,
    actor="ada",
    request_id="abc1",
    data={"old_name": "nyc", "new_name": "nyc2"},
)


def test_an_event_has_the_attributes_of_a_cloud_event() -> None:
    """Required attributes, the time in RFC 3339, extensions in lower case, data as it is."""
    assert EVENT.cloud_event() == {
        "specversion": "1.0",
        "id": "1-42-0",
        "type": "limnos.table.renamed",
        "source": "/stores/9f",
        "subject": "lake/main/raw/nyc",
        "time": "2026-09-21T14:13:20.123Z",
        "datacontenttype": "application/json",
        "actor": "ada",
        "requestid": "abc1",
        "data": {"old_name": "nyc", "new_name": "nyc2"},
    }


def test_attribute_names_are_legal_and_the_form_is_json() -> None:
    """CloudEvents allows lower case letters and digits in attribute names; the form survives JSON."""
    form = EVENT.cloud_event()

    assert all(name.isascii() and name.isalnum() and name == name.lower() for name in form)
    assert json.loads(json.dumps(form)) == form


@given(st.integers(min_value=0, max_value=253402300799999))
def test_every_millisecond_is_exact(time_ms: int) -> None:
    """The time reads back to the same millisecond, up to the year 9999."""
    text = str(dataclasses.replace(EVENT, time_ms=time_ms).cloud_event()["time"])
    read = datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)

    assert (read.days * 86_400 + read.seconds) * 1000 + read.microseconds // 1000 == time_ms
    assert text.endswith("Z")


@pytest.mark.parametrize("name", ["id", "type", "source", "subject", "actor"])
def test_an_event_without_a_required_text_is_refused(name: str) -> None:
    """The refusal names the empty attribute."""
    with pytest.raises(ValueError, match=f"non-empty {name}"):
        dataclasses.replace(EVENT, **{name: ""})


def test_an_event_cannot_be_changed() -> None:
    """What has happened stays as it was."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        EVENT.actor = "eve"  # type: ignore[misc]
