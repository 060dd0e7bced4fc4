# SPDX-License-Identifier: Apache-2.0
"""Storage of key-value pairs, on each database: order of keys, consistent reads, and atomic transactions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limnos.model.errors import ServiceUnavailable
from limnos.store.key_value_records.lmdb_storage import LmdbKeyValueStore
from limnos.store.key_value_records.sql_storage import ROWS_AT_ONCE, SqlKeyValueStore
from limnos.store.key_value_records.storage import KEY_BYTES_MAX, KeyValueStore, KeyValueTransaction, prefix_end
from tests.store.pair_stores import KINDS, Open, opener


@pytest.fixture(params=KINDS)
def opens(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """A function that opens the database, and opens it again after a close."""
    return opener(request.param, tmp_path, request)


@pytest.fixture
def pairs(opens: Open) -> Iterator[KeyValueStore]:
    """An empty database."""
    key_value_store = opens()
    yield key_value_store
    key_value_store.close()


def put(pairs: KeyValueStore, *keys: bytes) -> None:
    """Write pairs whose values are their reversed keys."""
    with pairs.writing() as writing:
        for key in keys:
            writing.put(key, key[::-1])


def keys(pairs: KeyValueStore, prefix: bytes = b"", after: bytes = b"") -> list[bytes]:
    """Return the keys of a scan."""
    with pairs.reading() as reading:
        return [key for key, _ in reading.scan(prefix, after=after)]


def test_values_of_any_bytes_survive_a_reopen(pairs: KeyValueStore, opens: Open) -> None:
    """Any bytes can be stored as a value, including the empty one, and the longest key is accepted. Values survive a
    reopen, and a missing key is None.
    """
    longest, sample = b"k" * KEY_BYTES_MAX, bytes(range(256)) * 100
    with pairs.writing() as writing:
        for key, value in ((b"a", b""), (b"\x00", sample), (longest, b"v")):
            writing.put(key, value)
        writing.put(b"a", b"again")
    pairs.close()
    again = opens()

    with again.reading() as reading:
        values = [reading.get(key) for key in (b"a", b"\x00", longest, b"none")]
    again.close()
    assert values == [b"again", sample, b"v", None]


def test_scan_is_ordered_by_unsigned_bytes(pairs: KeyValueStore) -> None:
    """A scan is in the order of unsigned bytes, a prefix before longer keys. It can start after a key and can be
    limited to a prefix, also to one that ends with the byte 255.
    """
    sent = [b"a", b"ab", b"a\xff", b"a\xff\xff", b"a\xff\x00", b"b", b"\xff", b"\xff\xff", b"\x00", b"\x7f", b"\x80"]

    put(pairs, *sent)

    assert keys(pairs) == sorted(sent)
    assert keys(pairs, b"a") == [b"a", b"ab", b"a\xff", b"a\xff\x00", b"a\xff\xff"]
    assert keys(pairs, b"a\xff", b"a\xff") == [b"a\xff\x00", b"a\xff\xff"]
    assert keys(pairs, b"\xff") == [b"\xff", b"\xff\xff"]
    assert keys(pairs, b"c") == []


def test_long_scan_returns_all_pairs(pairs: KeyValueStore) -> None:
    """A long scan returns all pairs, whatever the database's page size is."""
    many = [number.to_bytes(4, "big") for number in range(ROWS_AT_ONCE * 2 + 7)]

    put(pairs, *many, b"x")

    assert keys(pairs, b"\x00") == many


def test_transaction_reads_its_writes_and_rolls_back_on_failure(pairs: KeyValueStore) -> None:
    """A transaction reads its own writes. After a failure its writes are undone, and earlier values are unchanged."""
    put(pairs, b"kept", b"gone")

    with pytest.raises(KeyError), pairs.writing() as writing:
        _change_and_fail(writing)

    assert keys(pairs) == [b"gone", b"kept"]


def _change_and_fail(writing: KeyValueTransaction) -> None:
    writing.put(b"new", b"1")
    assert writing.delete(b"gone")
    assert not writing.delete(b"gone")
    assert [key for key, _ in writing.scan(b"")] == [b"kept", b"new"]
    writing.clear()
    assert writing.get(b"kept") is None
    raise KeyError


def test_reader_has_a_stable_snapshot(pairs: KeyValueStore) -> None:
    """A reader does not see what is committed while it reads; the next reader does. Readers and writers do not wait for
    each other.
    """
    put(pairs, b"a", b"b")

    with pairs.reading() as reading:
        assert reading.get(b"a") == b"a"
        other = threading.Thread(target=put, args=(pairs, b"a2", b"c"))
        other.start()
        other.join(timeout=30)
        assert not other.is_alive()
        seen = [key for key, _ in reading.scan(b"")]

    assert seen == [b"a", b"b"]
    assert keys(pairs) == [b"a", b"a2", b"b", b"c"]


def test_concurrent_increments_are_serialized(pairs: KeyValueStore) -> None:
    """Eight threads increment a counter concurrently, and no increment is lost."""

    def count() -> None:
        for _ in range(20):
            with pairs.writing() as writing:
                number = int(writing.get(b"n") or b"0")
                writing.put(b"n", str(number + 1).encode())

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with pairs.reading() as reading:
        assert reading.get(b"n") == b"160"


_DIES = """
import os, signal, sys
from pathlib import Path
from limnos.store.key_value_records.lmdb_storage import LmdbKeyValueStore
from limnos.store.key_value_records.sql_storage import SqlKeyValueStore
kind, place = sys.argv[1:]
pairs = LmdbKeyValueStore(Path(place)) if kind == "lmdb" else SqlKeyValueStore(place)
with pairs.writing() as writing:
    writing.put(b"whole", b"1")
with pairs.writing() as writing:
    for number in range(20_000):
        writing.put(b"part%d" % number, b"x" * 100)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("kind", ["lmdb", "sqlite"])
def test_killed_writer_loses_only_uncommitted_writes(kind: str, tmp_path: Path) -> None:
    """A killed writer leaves only its commits, and later writers do not wait for it."""
    place = tmp_path / "records"
    done = subprocess.run([sys.executable, "-c", _DIES, kind, str(place)], check=False, env=dict(os.environ))
    assert done.returncode == -signal.SIGKILL

    pairs: KeyValueStore = LmdbKeyValueStore(place) if kind == "lmdb" else SqlKeyValueStore(str(place))
    assert keys(pairs) == [b"whole"]
    put(pairs, b"after")
    assert keys(pairs) == [b"after", b"whole"]
    pairs.close()


def test_foreign_file_is_refused_with_our_own_message(tmp_path: Path) -> None:
    """A file that is not an LMDB or SQLite database is refused with our own error message."""
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "data.mdb").write_bytes(b"nothing of LMDB" * 1000)
    file = tmp_path / "broken.db"
    file.write_bytes(b"nothing of SQLite" * 1000)

    with pytest.raises(ServiceUnavailable, match="LMDB failed"):
        LmdbKeyValueStore(folder)
    with pytest.raises(ServiceUnavailable, match="not a database"):
        SqlKeyValueStore(str(file))


@given(prefix=st.binary(max_size=4), key=st.binary(max_size=6))
def test_prefix_range_contains_exactly_the_keys_with_the_prefix(prefix: bytes, key: bytes) -> None:
    """For every prefix, the keys that begin with it are exactly those from the prefix up to the computed end."""
    end = prefix_end(prefix)

    assert key.startswith(prefix) == (key >= prefix and (end is None or key < end))
