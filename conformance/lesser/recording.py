# SPDX-License-Identifier: Apache-2.0
"""The uses of actions that a test reaches, and those whose decision differs from that of the lesser action.

May import `limnos.access`. `record_decisions` must run before a module of the services is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import limnos.access.decide as deciding
from conformance.lesser.sites import LESSER, SITE
from limnos.access import prechecks
from limnos.access.actions import Action
from limnos.model.decisions import Decision

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from conformance.lesser.sites import Planter


class Recorder:
    """Records the uses in decisions, and whether the lesser action would have another decision."""

    def __init__(self, planter: Planter) -> None:
        self._planter = planter
        self._decisive: set[int] = set()

    def record_decisions(self) -> None:
        """From here on, make each access decision a second time with the lesser action."""
        deciding.decide = self._asked_twice(deciding.decide)
        prechecks.may_be_allowed = self._asked_twice(prechecks.may_be_allowed)

    def take(self) -> tuple[frozenset[int], frozenset[int]]:
        """Return the uses that were reached since the last call, and those of them with another decision."""
        site_numbers = frozenset(self._planter.reached), frozenset(self._decisive)
        self._planter.reached.clear()
        self._decisive.clear()
        return site_numbers

    def _asked_twice(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def decide_twice(subject: object, action: Action, *rest: object, **others: object) -> object:
            decision = plain(subject, action, *rest, **others)
            number = vars(action).get(SITE)
            if number is not None:
                self._planter.reached.add(number)
                try:
                    lesser = plain(subject, vars(action)[LESSER], *rest, **others)
                except Exception:  # a fact is not loaded yet, so the decision is unknown
                    self._decisive.add(number)
                    return decision
                if _allowed(decision) != _allowed(lesser):
                    self._decisive.add(number)
            return decision

        return decide_twice


def _allowed(decision: object) -> bool:
    return decision.allowed if isinstance(decision, Decision) else bool(decision)
