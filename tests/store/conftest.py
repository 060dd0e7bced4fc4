"""Fixtures of the store's conformance suite: every test runs on each backend."""

from __future__ import annotations

import pytest

from tests.backends import Lab
from tests.store.world import World, make_world


@pytest.fixture
def world(lab: Lab) -> World:
    """A metalake with two catalogs."""
    return make_world(lab)
