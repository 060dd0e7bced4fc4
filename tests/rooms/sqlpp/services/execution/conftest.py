# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of execution: a node with a namespace `a`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.driver import DriverNode
from tests.http.iceberg.wire import make_space, node_over


@pytest.fixture
def node(tmp_path: Path) -> Iterator[DriverNode]:
    """A node on SQLite with a namespace `a`."""
    with node_over(tmp_path) as running:
        make_space(running, "a")
        yield running
