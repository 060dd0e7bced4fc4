"""Fixtures of the fault tests: a PostgreSQL server for them alone, and a node per module and backend."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.rig import BACKENDS, Rig
from tests.nodes.stores import PostgresCluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresCluster]:
    """One PostgreSQL for all tests that do not kill it."""
    found = PostgresCluster()
    yield found
    found.stop()


@pytest.fixture(scope="module", params=BACKENDS)
def rig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """One node for a module's tests on each backend; each test uses names of its own."""
    database = request.getfixturevalue("cluster").database() if request.param == "postgresql" else None
    with Rig(tmp_path_factory.mktemp(request.param), database) as running:
        yield running
