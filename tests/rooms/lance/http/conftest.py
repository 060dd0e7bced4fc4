# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the Lance tests: a node over each backend."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.backends import Database
from tests.http.conftest import empty_database, fresh, node, open_node, patience  # noqa: F401 - fixtures
from tests.http.driver import DriverNode
from tests.http.iceberg.wire import node_over


@pytest.fixture
def lake(database: Database, tmp_path: Path) -> Iterator[DriverNode]:
    """A node with access control on, over SQLite and over PostgreSQL."""
    url = None if database.kind == "sqlite" else database.address
    with node_over(tmp_path, database=url) as running:
        yield running
