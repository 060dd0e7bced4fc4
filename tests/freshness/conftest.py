"""Fixtures of the freshness tests: small blocks, so that lists of a few names fill several of them."""

from __future__ import annotations

import pytest

from limnos.services.request import name_pages
from limnos.view import listings


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block holds one name when it is read, and one block is read at a time, without yielding to others."""
    monkeypatch.setattr(name_pages, "READ_MAX", 1)
    monkeypatch.setattr(listings, "BLOCK", 1)
