# SPDX-License-Identifier: Apache-2.0
"""A server process tunes the garbage collector after its start."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from limnos.app.serving import settle_memory


@pytest.fixture
def thresholds() -> Iterator[None]:
    """Restore the garbage collector."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.usefixtures("thresholds")
def test_new_objects_are_collected_in_short_steps() -> None:
    """A collection looks at 10,000 new objects or 50,000 that outlived one, and rarely at all objects."""
    settle_memory()

    new, young, old = gc.get_threshold()
    assert new <= 10_000
    assert new * young <= 50_000
    assert new * young * old >= 50_000_000
