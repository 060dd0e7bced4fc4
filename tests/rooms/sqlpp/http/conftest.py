# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the query service's tests: a node for the tests of a module that leave no state behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.http.conftest import empty_database, fresh, node, open_node, patience  # noqa: F401 - fixtures
from tests.http.driver import DriverNode
from tests.http.iceberg.wire import node_over


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """A node with access control on."""
    with node_over(tmp_path_factory.mktemp("shared")) as running:
        yield running
