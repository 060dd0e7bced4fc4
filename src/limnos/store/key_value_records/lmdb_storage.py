# SPDX-License-Identifier: Apache-2.0
"""Key-value pairs on LMDB: a folder with one memory-mapped file, several readers concurrently with one writer, no
server.

May import `model`, LMDB's library and this package's `storage`. Must not know the meaning of keys and values. A process
may open an LMDB environment only once; its threads share it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, cast

import lmdb

from limnos.model.errors import ServiceUnavailable
from limnos.store.key_value_records.storage import KeyValueReader, KeyValueTransaction

SIZE_MAX: Final = 1 << 36
"""The maximum size of the file, in bytes. It reserves address space, not disk space."""


class LmdbKeyValueStore:
    """An LMDB folder. It is created if it does not exist."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _translate_errors():
            self._environment = lmdb.open(str(folder), map_size=SIZE_MAX, mode=0o600, max_dbs=1)
            self._database = self._environment.open_db(b"pairs")

    @contextmanager
    def reading(self) -> Iterator[KeyValueReader]:
        """Open a read snapshot."""
        with _translate_errors(), self._environment.begin(self._database) as transaction:
            yield _LmdbTransaction(transaction, self._database)

    @contextmanager
    def writing(self) -> Iterator[KeyValueTransaction]:
        """Open a write transaction; other writers wait."""
        with _translate_errors(), self._environment.begin(self._database, write=True) as transaction:
            yield _LmdbTransaction(transaction, self._database)

    def close(self) -> None:
        """Close the environment."""
        self._environment.close()


class _LmdbTransaction:
    def __init__(self, transaction: lmdb.Transaction, database: lmdb._Database) -> None:
        self._transaction = transaction
        self._database = database

    def get(self, key: bytes) -> bytes | None:
        return cast("bytes | None", self._transaction.get(key))  # bytes, because `buffers` is off

    def scan(self, prefix: bytes, *, after: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        with self._transaction.cursor() as cursor:
            if not cursor.set_range(max(prefix, after)):
                return
            for key, value in cast("Iterator[tuple[bytes, bytes]]", cursor.iternext()):
                if not key.startswith(prefix):
                    return
                if key > after:
                    yield key, value

    def put(self, key: bytes, value: bytes) -> None:
        self._transaction.put(key, value)

    def delete(self, key: bytes) -> bool:
        return bool(self._transaction.delete(key))

    def clear(self) -> None:
        self._transaction.drop(self._database, delete=False)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Convert errors of LMDB in the `with` block to ServiceUnavailable."""
    try:
        yield
    except lmdb.MapFullError as error:
        raise ServiceUnavailable(
            f"The records would take more than {SIZE_MAX >> 30} GiB: nothing was written"
        ) from error
    except lmdb.Error as error:
        raise ServiceUnavailable(f"LMDB failed: {error}") from error
