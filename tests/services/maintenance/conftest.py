"""Fixtures of the tests of maintenance: a node with files, over SQLite and over PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.backends import Database
from tests.http.driver import DriverNode
from tests.http.iceberg.wire import make_space, node_over


@pytest.fixture
def lake(database: Database, tmp_path: Path) -> Iterator[DriverNode]:
    """A node over either backend, with a namespace `a`."""
    url = None if database.kind == "sqlite" else database.address
    with node_over(tmp_path, database=url) as running:
        make_space(running, "a")
        yield running


@pytest.fixture
def node(tmp_path: Path) -> Iterator[DriverNode]:
    """A node over SQLite, with a namespace `a`: which database it has makes no difference."""
    with node_over(tmp_path) as running:
        make_space(running, "a")
        yield running
