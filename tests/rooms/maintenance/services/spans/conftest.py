# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of restricted files that executors write."""

from __future__ import annotations

import pytest

from limnos.services.iceberg.spans import executors
from tests.http.driver import DriverNode
from tests.http.iceberg.test_restricted_plans import RestrictedTable
from tests.rooms.maintenance.services.spans.fake_executor import make_table


@pytest.fixture
def table(lake: DriverNode, monkeypatch: pytest.MonkeyPatch) -> RestrictedTable:
    """A table of four files that bob reads under a restriction; more than two spans are for executors."""
    monkeypatch.setattr(executors, "POLL_S", 0.02)
    return make_table(lake)
