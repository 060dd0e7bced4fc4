"""Whose turn it is to have files of a scan read: a few of each caller's at a time, as what is read is held in memory.

May import the standard library only. Knows nothing of scans; who gives the turns is for `app` to choose.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Protocol

from limnos.services.request.chores import Chores, OwnChores
from limnos.services.request.shared import Part

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager


class ScanTurns(Protocol):
    """Whose turn it is to hold files of a scan in memory."""

    def turn(self, keys: tuple[tuple[str, str], ...]) -> AbstractAsyncContextManager[None]:
        """Hold a place; waits for one. Raises Unavailable when too many wait."""
        ...


class NoTurns:
    """It is everybody's turn, as tests and tools like it."""

    def turn(self, keys: tuple[tuple[str, str], ...]) -> AbstractAsyncContextManager[None]:
        """Hold a place at once."""
        del keys
        return nullcontext()


SCAN_TURNS: Part[ScanTurns] = Part("scan_turns", lambda _: NoTurns())


SCAN_CHORES: Part[Chores] = Part("scan_chores", lambda _: OwnChores())
