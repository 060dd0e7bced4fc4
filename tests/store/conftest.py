# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the store's conformance suite: every test runs on each database."""

from __future__ import annotations

import pytest

from tests.backends import StoreLab
from tests.store.world import StoreWorld, make_world


@pytest.fixture
def world(lab: StoreLab) -> StoreWorld:
    """A metalake with two catalogs."""
    return make_world(lab)
