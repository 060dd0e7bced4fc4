"""Fixtures of the tests that talk to a real server process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.live import LiveServer, serving


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """One server for the whole run: SQLite, access control on; tests keep to namespaces of their own.

    Catalogs may have warehouses below any test's directory.
    """
    data = tmp_path_factory.mktemp("server") / "data"
    with serving(data, "--allow-root", str(tmp_path_factory.getbasetemp())) as running:
        yield running
