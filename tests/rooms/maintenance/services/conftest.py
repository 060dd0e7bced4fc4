# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the maintenance tests: a node with files on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.backends import Database
from tests.http.driver import DriverNode
from tests.http.iceberg.wire import make_space, node_over
from tests.services.conftest import desk, file_lab  # noqa: F401 - fixtures


@pytest.fixture
def lake(database: Database, tmp_path: Path) -> Iterator[DriverNode]:
    """A node on either database, with a namespace `a`."""
    url = None if database.kind == "sqlite" else database.address
    with node_over(tmp_path, database=url) as running:
        make_space(running, "a")
        yield running


@pytest.fixture
def node(tmp_path: Path) -> Iterator[DriverNode]:
    """A node on SQLite with a namespace `a`, for tests whose result does not depend on the database."""
    with node_over(tmp_path) as running:
        make_space(running, "a")
        yield running
