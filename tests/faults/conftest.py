# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the fault tests: a PostgreSQL server for these tests only, and a node per module and database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.rig import BACKENDS, Rig
from tests.nodes.stores import PostgresCluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresCluster]:
    """A PostgreSQL for all tests that do not kill it."""
    postgres = PostgresCluster()
    yield postgres
    postgres.stop()


@pytest.fixture(scope="module", params=BACKENDS)
def rig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A node for a module's tests, for each database. Each test uses its own names."""
    database = request.getfixturevalue("cluster").database() if request.param == "postgresql" else None
    with Rig(tmp_path_factory.mktemp(request.param), database) as running:
        yield running
