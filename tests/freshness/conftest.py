# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the freshness tests: small blocks, so that a list of a few names has several blocks."""

from __future__ import annotations

import pytest

from limnos.services.request import name_pages
from limnos.view import listings


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a block contain one name when it is read, and read one block at a time without yielding to other tasks."""
    monkeypatch.setattr(name_pages, "READ_MAX", 1)
    monkeypatch.setattr(listings, "BLOCK", 1)
