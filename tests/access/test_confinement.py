# SPDX-License-Identifier: Apache-2.0
"""Confinement: the token of an operation has no rights except those on the operation's table."""

from __future__ import annotations

import pytest

from limnos.access.actions import Action
from limnos.access.confinement import TABLE_ACTIONS, confine
from limnos.model.decisions import ChainLink, Decision, DecisionFactor
from limnos.model.kinds import Kind

CHAIN = (ChainLink(7, Kind.TABLE, "t"), ChainLink(3, Kind.NAMESPACE, "a"), ChainLink(2, Kind.CATALOG, "main"))


def decision(action: Action, *, allowed: bool = True) -> Decision:
    """Return a decision for the user, by ownership."""
    return Decision(
        allowed=allowed,
        action=action.word,
        target_id=7,
        target="main.a.t",
        user="ana",
        factors=(DecisionFactor(kind="owner"),),
        revision=(),
    )


@pytest.mark.parametrize("action", Action)
def test_only_listed_actions_on_the_table_are_allowed(action: Action) -> None:
    """A few actions on the table are allowed if the user may do them; every other one is refused with the reason."""
    confined = confine(decision(action), action, chain=CHAIN, table_id=7)

    assert confined.allowed is (action in TABLE_ACTIONS or action is Action.CATALOG_LOAD)
    assert confined.allowed or confined.factors == (DecisionFactor(kind="one-table"),)
    assert not confine(decision(action, allowed=False), action, chain=CHAIN, table_id=7).allowed


@pytest.mark.parametrize("chain", [CHAIN[1:], (ChainLink(8, Kind.TABLE, "u"), *CHAIN[1:]), ()])
def test_actions_on_other_objects_are_refused(chain: tuple[ChainLink, ...]) -> None:
    """Actions on other objects, or on none, are refused."""
    assert not [each for each in TABLE_ACTIONS if confine(decision(each), each, chain=chain, table_id=7).allowed]


def test_ordinary_commit_with_operation_token_is_refused() -> None:
    """TABLE_COMMIT is refused for an operation's token: only commits that the server validates as rewrites are
    allowed.
    """
    assert Action.TABLE_COMMIT not in TABLE_ACTIONS
    assert Action.TABLE_REWRITE in TABLE_ACTIONS
