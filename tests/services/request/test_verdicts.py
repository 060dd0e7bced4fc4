# SPDX-License-Identifier: Apache-2.0
"""Verdicts: they equal the decisions of the request view, before and after changes of rights."""

from __future__ import annotations

import pytest

from limnos.access.actions import Action
from limnos.access.decide import is_allowed
from limnos.model.decisions import ChainLink
from limnos.model.kinds import Kind
from limnos.model.principals import HeldRole, MergedRules, Subject
from limnos.model.privileges import GrantCondition, Privilege
from limnos.services.request.browsing import is_permitted
from limnos.services.request.request_view import RequestView
from tests.inprocess import MAIN
from tests.services.conftest import ServiceDesk

ACTIONS = (Action.METADATA_LOAD, Action.TABLE_LOAD, Action.TABLE_DROP)


def verdicts(desk: ServiceDesk, user: str) -> list[tuple[bool, bool]]:
    """Return the verdict and the decision for each action on the table."""

    def read(request_view: RequestView) -> list[tuple[bool, bool]]:
        _, chain = request_view.find(("a", "t"), Kind.TABLE)
        return [
            (is_permitted(request_view, action, chain=chain), request_view.decide(action, chain).allowed)
            for action in ACTIONS
        ]

    return desk.run(desk.ctx(user).read(MAIN, read))


@pytest.mark.parametrize("user", ["admin", "ana"])
def test_verdicts_equal_decisions_after_each_change(desk: ServiceDesk, user: str) -> None:
    """The verdicts follow grants and denials at once, also where an earlier one was cached."""
    desk.namespace("a")
    desk.table("a", "t")
    seen = []
    for privilege in (Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.SELECT_TABLE):
        seen.append(verdicts(desk, user))
        desk.allow("ana", Kind.CATALOG, "main", privilege)
    seen.append(verdicts(desk, user))
    desk.allow("ana", Kind.NAMESPACE, "main.a", Privilege.SELECT_TABLE, condition=GrantCondition.DENY)
    seen.append(verdicts(desk, user))

    assert all(verdict == decision for each in seen for verdict, decision in each)
    loads = [each[0][0] for each in seen]
    assert loads == ([True] * 5 if user == "admin" else [False, False, False, True, False])


class NobodysRoles(tuple[HeldRole, ...]):
    """Roles that fail when somebody looks at them."""

    __slots__ = ()

    def __iter__(self) -> None:  # type: ignore[override]
        raise AssertionError("a verdict does not depend on the number of roles")


def test_verdict_looks_at_no_role() -> None:
    """A verdict uses the merged grants of a user, and does not search for the role that gives the right."""
    privileges = (Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)
    merged = MergedRules({each: frozenset({2}) for each in privileges}, {}, frozenset({7}))
    subject = Subject(
        user_id=1,
        user_name="u",
        groups=frozenset(),
        group_names=(),
        roles=NobodysRoles(),
        service_admin=False,
        member=True,
        merged=merged,
    )
    chain = tuple(
        ChainLink(number, kind, "n")
        for number, kind in ((4, Kind.TABLE), (3, Kind.NAMESPACE), (2, Kind.CATALOG), (1_000, Kind.METALAKE))
    )

    assert is_allowed(subject, Action.METADATA_LOAD, chain=chain, owner_of=lambda _: None)
    assert not is_allowed(subject, Action.TABLE_DROP, chain=chain, owner_of=lambda _: None)
