"""Freshness at small scope: listings of a handful of names fill several blocks, too."""

from __future__ import annotations

import pytest

from limnos.services.request import name_pages
from limnos.view import listings


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block holds one name when it is read, and one is read at a time: the truth must be told without a turn for others."""
    monkeypatch.setattr(name_pages, "READ_MAX", 1)
    monkeypatch.setattr(listings, "BLOCK", 1)
