# SPDX-License-Identifier: Apache-2.0
"""The policy as a whole: every action has a rule, and the rules agree with the cases of Gravitino's tests."""

from __future__ import annotations

import pytest

from limnos.access.actions import Action
from limnos.access.decide import decide
from limnos.access.filters import list_filter
from limnos.access.policy import ITEMS, POLICY
from limnos.access.rules import PrivilegeRule
from limnos.model.decisions import ChainLink, SecurableChain
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from tests.access.world import (
    CATALOG_CHAIN,
    INNER,
    INNER_CHAIN,
    LAKE,
    MAIN,
    OTHER,
    OUTER,
    OUTER_CHAIN,
    USER,
    allowed,
    member,
    nobody,
    owned_by,
)

LEAF_CHAIN: SecurableChain = (ChainLink(9, Kind.NAMESPACE, "c"), *INNER_CHAIN)
USE_CATALOG = (Privilege.USE_CATALOG, MAIN)


def test_every_action_has_a_rule() -> None:
    """Every action has a rule."""
    assert set(POLICY) == set(Action)


def test_every_privilege_is_used() -> None:
    """Each of the 32 privileges is used by some rule."""
    used = {leaf.privilege for rule in POLICY.values() for leaf in rule.leaves() if isinstance(leaf, PrivilegeRule)}

    assert used == set(Privilege)


def test_every_list_has_an_item_rule() -> None:
    """Every list action has a rule for its items."""
    lists = {action for action in Action if action.word.endswith("_list")}

    assert set(ITEMS) == lists


def test_vector_1_root_list_shows_only_owned_root_namespace() -> None:
    """The owner of A, A:B and A:B:C sees only A in the list of the root."""
    positions = list_filter(member(), Action.NAMESPACE_LIST, CATALOG_CHAIN, nobody).positions([OUTER], [USER])

    assert positions == [0]


def test_vector_2_creating_without_a_grant_is_refused() -> None:
    """A user without any grant cannot create A:B:D."""
    assert not decide(member(), Action.NAMESPACE_CREATE, INNER_CHAIN, nobody).allowed


@pytest.mark.parametrize("granted_on", [OUTER, INNER])
def test_vectors_3_and_4_create_schema_on_any_ancestor_suffices(granted_on: int) -> None:
    """CREATE_SCHEMA on A or on A:B, with USE_CATALOG, allows creating below A:B."""
    subject = allowed(USE_CATALOG, (Privilege.CREATE_SCHEMA, granted_on))

    assert decide(subject, Action.NAMESPACE_CREATE, INNER_CHAIN, nobody).allowed


def test_grant_on_descendant_gives_no_right_on_ancestor() -> None:
    """CREATE_SCHEMA on A:B gives no right on A."""
    subject = allowed(USE_CATALOG, (Privilege.CREATE_SCHEMA, INNER))

    assert not decide(subject, Action.NAMESPACE_CREATE, OUTER_CHAIN, nobody).allowed


def test_vector_5_use_schema_on_leaf_loads_only_the_leaf() -> None:
    """USE_SCHEMA on A:B:C only, with USE_CATALOG, allows loading A:B:C and not A:B."""
    subject = allowed(USE_CATALOG, (Privilege.USE_SCHEMA, 9))

    assert decide(subject, Action.NAMESPACE_LOAD, LEAF_CHAIN, nobody).allowed
    assert not decide(subject, Action.NAMESPACE_LOAD, INNER_CHAIN, nobody).allowed


def test_vector_6_only_owner_can_drop_a_namespace() -> None:
    """Only ownership allows dropping a namespace, not all privileges together."""
    everything = allowed(*((p, LAKE) for p in Privilege))

    assert not decide(everything, Action.NAMESPACE_DROP, LEAF_CHAIN, owned_by({9: OTHER})).allowed
    assert decide(everything, Action.NAMESPACE_DROP, LEAF_CHAIN, owned_by({9: USER})).allowed


def test_vector_7_parent_owner_lists_all_children() -> None:
    """The owner of P:Q sees all of its children, whoever owns them."""
    item_filter = list_filter(member(), Action.NAMESPACE_LIST, INNER_CHAIN, owned_by({INNER: USER}))

    assert item_filter.positions([20, 21], [OTHER, None]) == [0, 1]


def test_table_named_like_a_metadata_table_is_decided_as_table() -> None:
    """A table named `files` at depth two is decided like any other (Gravitino answers 404)."""
    subject = allowed(USE_CATALOG, (Privilege.USE_SCHEMA, OUTER), (Privilege.SELECT_TABLE, OUTER))
    chain = (ChainLink(5, Kind.TABLE, "files"), *INNER_CHAIN)

    assert decide(subject, Action.TABLE_LOAD, chain, nobody).allowed
