# SPDX-License-Identifier: Apache-2.0
"""Fixtures of tests that call a node in process."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from limnos.app.node_builder import DATABASE_FILE
from limnos.services.request.concurrency import previews as preview_limits
from limnos.store.backends.migrate import migrate
from tests.http.driver import DriverNode, node_at


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the time limits of previews, because a loaded machine starts and reads slowly."""
    monkeypatch.setattr(preview_limits, "DEADLINE_S", 600.0)
    monkeypatch.setattr(preview_limits, "START_DEADLINE_S", 600.0)


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create an empty store of the newest schema, which tests copy: migrations take longer than any test."""
    path = tmp_path_factory.mktemp("empty") / DATABASE_FILE
    migrate(str(path))
    return path


@pytest.fixture
def fresh(tmp_path: Path, empty_database: Path) -> Callable[[str], Path]:
    """Return a function that creates a data directory with an empty store."""

    def make(name: str) -> Path:
        data = tmp_path / name
        data.mkdir()
        shutil.copy(empty_database, data)
        return data

    return make


@pytest.fixture
def node(fresh: Callable[[str], Path]) -> Iterator[DriverNode]:
    """A node with access control on, with metalake `lake` and catalog `main`, both of `admin`."""
    with node_at(fresh("data")) as running:
        yield running


@pytest.fixture
def open_node(fresh: Callable[[str], Path]) -> Iterator[DriverNode]:
    """The node of `node`, with access control off."""
    with node_at(fresh("open"), access=False) as running:
        yield running
