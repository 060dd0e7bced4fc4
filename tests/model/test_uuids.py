"""UUIDs: well-formed, ascending with time, unique, also in a forked process."""

from __future__ import annotations

import os
from uuid import RFC_4122, UUID

from limnos.model.uuids import new_uuid

NOW_MS = 1_790_000_000_000


def test_they_are_version_7_in_canonical_spelling() -> None:
    """What the standard library reads and writes back unchanged."""
    for text in (new_uuid(NOW_MS + i) for i in range(1000)):
        parsed = UUID(text)
        assert (parsed.version, parsed.variant, str(parsed)) == (7, RFC_4122, text)


def test_they_grow_with_time() -> None:
    """A later millisecond sorts behind, and the time can be read off."""
    first, second = new_uuid(NOW_MS), new_uuid(NOW_MS + 1)

    assert first < second
    assert UUID(second).int >> 80 == NOW_MS + 1


def test_no_two_are_equal() -> None:
    """Also across the edge of what is drawn at once."""
    assert len({new_uuid(NOW_MS) for _ in range(10_000)}) == 10_000


def test_a_forked_child_draws_its_own() -> None:
    """A child does not continue with what its parent had drawn."""
    new_uuid(NOW_MS)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, new_uuid(NOW_MS).encode())
        os._exit(0)
    os.waitpid(child, 0)

    assert os.read(reading, 36).decode() != new_uuid(NOW_MS)
