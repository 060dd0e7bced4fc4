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
    """A collection looks at 5,000 new objects, or at 15,000 with those that outlived one, and rarely at all objects."""
    settle_memory()

    new, young, old = gc.get_threshold()
    assert new <= 5_000
    assert new * (young + 2) <= 15_000
    assert new * (young + 1) * old >= 100_000_000
