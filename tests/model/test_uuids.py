# SPDX-License-Identifier: Apache-2.0
"""UUIDs: valid, ascending in time, unique, also in a forked process."""

from __future__ import annotations

import os
from uuid import RFC_4122, UUID

from limnos.model.uuids import new_uuid

NOW_MS = 1_790_000_000_000


def test_uuids_are_version_7_in_canonical_form() -> None:
    """Each UUID is of version 7, and the standard library parses and prints it unchanged."""
    for text in (new_uuid(NOW_MS + i) for i in range(1000)):
        parsed = UUID(text)
        assert (parsed.version, parsed.variant, str(parsed)) == (7, RFC_4122, text)


def test_uuids_sort_by_time() -> None:
    """A UUID of a later millisecond sorts after an earlier one, and contains the time."""
    first, second = new_uuid(NOW_MS), new_uuid(NOW_MS + 1)

    assert first < second
    assert UUID(second).int >> 80 == NOW_MS + 1


def test_uuids_are_unique() -> None:
    """UUIDs are unique, also across the blocks in which random bytes are drawn."""
    assert len({new_uuid(NOW_MS) for _ in range(10_000)}) == 10_000


def test_forked_child_does_not_reuse_parents_random_bytes() -> None:
    """A forked child does not continue with random bytes that its parent has drawn."""
    new_uuid(NOW_MS)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, new_uuid(NOW_MS).encode())
        os._exit(0)
    os.waitpid(child, 0)

    assert os.read(reading, 36).decode() != new_uuid(NOW_MS)
