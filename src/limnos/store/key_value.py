"""Pairs of keys and values in the order of the keys' bytes: all that a database has to offer so that records can be kept on it.

May import `model`. Knows nothing of what keys and values mean. A backend is whatever passes `tests/store/test_key_value.py`; there is one on LMDB, a key-value
database, and one on a table of SQLite or PostgreSQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

KEY_BYTES_MAX: Final = 511
"""No backend needs to take longer keys: the shortest limit among key-value databases, which is LMDB's."""


class KeyValueReader(Protocol):
    """What was committed at one moment."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key."""
        ...

    def scan(self, prefix: bytes, *, after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Give the pairs whose keys begin with a prefix and come behind `after`, in order. Nothing is written meanwhile."""
        ...


class KeyValueTransaction(KeyValueReader, Protocol):
    """A transaction: it reads what it wrote, and nobody else does before its end."""

    def put(self, key: bytes, value: bytes) -> None:
        """Write a pair, over the one that has the key."""
        ...

    def delete(self, key: bytes) -> bool:
        """Take a pair out; says whether there was one."""
        ...

    def clear(self) -> None:
        """Take everything out."""
        ...


class KeyValueStore(Protocol):
    """A database of pairs. Threads and processes may share it; one of them writes at a time, and nobody waits to read."""

    def reading(self) -> AbstractContextManager[KeyValueReader]:
        """Read one moment for the time of the body. Raises Unavailable."""
        ...

    def writing(self) -> AbstractContextManager[KeyValueTransaction]:
        """Write in one transaction, committed durably when the body ends, and undone when it raises. Waits for whoever writes. Raises Unavailable."""
        ...

    def close(self) -> None:
        """Let go of the database."""
        ...


def prefix_end(prefix: bytes) -> bytes | None:
    """Return the first key behind all that begin with a prefix; None when there is no key behind them."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
