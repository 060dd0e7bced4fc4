"""UUIDs: well formed, growing with time, never twice, not even in a forked child."""

from __future__ import annotations

import os
import time
from uuid import RFC_4122, UUID

from limnos.model.uuids import new_uuid


def test_they_are_version_7_in_canonical_spelling() -> None:
    """What the standard library reads and writes back unchanged."""
    for text in (new_uuid() for _ in range(1000)):
        parsed = UUID(text)
        assert (parsed.version, parsed.variant, str(parsed)) == (7, RFC_4122, text)


def test_they_grow_with_time() -> None:
    """A later millisecond sorts behind, and the time can be read off."""
    first = new_uuid()
    time.sleep(0.003)
    second = new_uuid()

    assert first < second
    assert abs(UUID(second).int / 2**80 / 1000 - time.time()) < 5


def test_no_two_are_equal() -> None:
    """Also across the edge of what is drawn at once."""
    assert len({new_uuid() for _ in range(10_000)}) == 10_000


def test_a_forked_child_draws_its_own() -> None:
    """A child does not continue with what its parent had drawn."""
    new_uuid()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, new_uuid().encode())
        os._exit(0)
    os.waitpid(child, 0)

    assert os.read(reading, 36).decode() != new_uuid()
