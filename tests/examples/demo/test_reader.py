# SPDX-License-Identifier: Apache-2.0
"""The reader that queries tables while a pipeline runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count
from types import SimpleNamespace

import pytest
from pyiceberg.exceptions import NoSuchTableError

from examples.demo.reader import TABLES, ConsistencyReader, InconsistentRead


class _Catalog:
    """Returns scripted row counts for each read of a table; sets `played` when the script has ended."""

    def __init__(self, rows: Callable[[tuple[str, ...], int], int | None]) -> None:
        self.rows = rows
        self.looks = {table: count() for table in TABLES}
        self.played = threading.Event()

    def load_table(self, table: tuple[str, ...]) -> SimpleNamespace:
        look = next(self.looks[table])
        if look > 20:
            self.played.set()
        rows = self.rows(table, look)
        if rows is None:
            raise NoSuchTableError
        snapshot = SimpleNamespace(summary={"total-records": str(rows)}) if rows else None
        return SimpleNamespace(current_snapshot=lambda: snapshot)


def _watched(rows: Callable[[tuple[str, ...], int], int | None]) -> ConsistencyReader:
    """Return a reader that has read the tables often enough and ended."""
    catalog = _Catalog(rows)
    with ConsistencyReader(catalog) as reader:  # type: ignore[arg-type]
        assert catalog.played.wait(timeout=300)
    return reader


def test_missing_tables_count_as_empty() -> None:
    """A missing table counts as one without rows, so every look at the pair sees equal counts."""
    reader = _watched(lambda table, look: None if table == TABLES[0] else 0)

    assert set(reader.seen.alike) == {0}
    assert reader.seen.looks == reader.seen.alike[0] > 5


def test_partial_result_is_reported() -> None:
    """One table with rows and the other without is reported as a partial result."""
    with pytest.raises(InconsistentRead, match="a part of a run"):
        _watched(lambda table, look: 5 if table == TABLES[0] else 0)


def test_pair_is_ignored_if_first_table_changed_meanwhile() -> None:
    """If the first table has changed meanwhile, the pair is ignored."""
    reader = _watched(lambda table, look: look if table == TABLES[0] else 3)

    assert reader.seen.looks == 0


def test_a_reader_that_fails_fails_the_run() -> None:
    """An exception in the reader's thread fails the run."""

    def broken(table: tuple[str, ...], look: int) -> int:
        catalog_played.set()
        raise ZeroDivisionError

    catalog = _Catalog(broken)
    catalog_played = threading.Event()

    with pytest.raises(ZeroDivisionError), ConsistencyReader(catalog):  # type: ignore[arg-type]
        assert catalog_played.wait(timeout=300)
