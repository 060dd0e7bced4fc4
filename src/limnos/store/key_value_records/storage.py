# SPDX-License-Identifier: Apache-2.0
"""The interface of an ordered key-value database (keys sort bytewise) in which records can be stored.

May import only the standard library. Must not know the meaning of keys and values. A backend must pass
`tests/store/key_value_records/test_storage.py`: there is one on LMDB, a key-value database, and one on a table of
SQLite or PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Final, Protocol

KEY_BYTES_MAX: Final = 511
"""The maximum length of keys that a backend must accept, in bytes: LMDB's limit, the shortest among key-value
databases.
"""


class KeyValueReader(Protocol):
    """A read snapshot of the key-value pairs."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""

    def scan(self, prefix: bytes, *, after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs whose keys begin with `prefix` and sort after `after`, in order.

        Nothing may be written during the iteration.
        """


class KeyValueTransaction(KeyValueReader, Protocol):
    """A write transaction. It reads its own writes; other transactions see them after the commit."""

    def put(self, key: bytes, value: bytes) -> None:
        """Write a pair, replacing the value of an existing key."""

    def delete(self, key: bytes) -> bool:
        """Delete a pair. Returns whether it existed."""

    def clear(self) -> None:
        """Delete all pairs."""


class KeyValueStore(Protocol):
    """A database of key-value pairs.

    Threads and processes may share it; one writes at a time, and readers never wait.
    """

    def reading(self) -> AbstractContextManager[KeyValueReader]:
        """Open a read snapshot for the `with` block. Raises ServiceUnavailable if the database cannot be read."""

    def writing(self) -> AbstractContextManager[KeyValueTransaction]:
        """Open a write transaction. Waits for other writers.

        It is committed durably when the `with` block ends, and rolled back if the block raises. Raises
        ServiceUnavailable if the database cannot be written.
        """

    def close(self) -> None:
        """Close the database."""


def prefix_end(prefix: bytes) -> bytes | None:
    """Return the first key after all keys with a prefix, or None if no key can sort after them (the prefix is empty or
    has only 0xFF bytes).
    """
    rstrip = prefix.rstrip(b"\xff")
    return rstrip[:-1] + bytes([rstrip[-1] + 1]) if rstrip else None
