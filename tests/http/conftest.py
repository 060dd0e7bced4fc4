"""Fixtures of the tests that ask a node in process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.driver import Node, node_at


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """A node with access control on, and nothing in it but metalake `lake` and catalog `main` of `admin`."""
    with node_at(tmp_path / "data") as running:
        yield running


@pytest.fixture
def open_node(tmp_path: Path) -> Iterator[Node]:
    """The same with access control off."""
    with node_at(tmp_path / "data", access=False) as running:
        yield running
