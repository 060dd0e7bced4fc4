# SPDX-License-Identifier: Apache-2.0
"""List filters: a filter accepts exactly the items that single decisions allow."""

from __future__ import annotations

import pytest

from limnos.access.actions import Action
from limnos.access.filters import list_filter
from limnos.model.principals import Subject
from limnos.model.privileges import Privilege
from tests.access.world import (
    CATALOG_CHAIN,
    INNER,
    INNER_CHAIN,
    LAKE,
    METALAKE_CHAIN,
    OTHER,
    OUTER,
    USER,
    allowed,
    member,
    nobody,
    role,
)

IDS = [10, 11, 12, 13]
UNOWNED = [None] * 4


def test_right_on_parent_shows_items_without_checks() -> None:
    """With a right on the parent and no denial, no item is checked."""
    assert list_filter(allowed((Privilege.SELECT_TABLE, OUTER)), Action.TABLE_LIST, INNER_CHAIN, nobody).everything


def test_only_granted_items_visible_without_parent_right() -> None:
    """Without a right on the parent only items with grants are visible."""
    item_filter = list_filter(
        allowed((Privilege.SELECT_TABLE, 11), (Privilege.MODIFY_TABLE, 13)), Action.TABLE_LIST, INNER_CHAIN, nobody
    )

    assert item_filter.positions(IDS, UNOWNED) == [1, 3]


def test_denied_item_is_hidden() -> None:
    """With a right on the parent all items are visible except denied ones."""
    subject = allowed((Privilege.SELECT_TABLE, LAKE), deny=[(Privilege.SELECT_TABLE, 12)])

    item_filter = list_filter(subject, Action.TABLE_LIST, INNER_CHAIN, nobody)

    assert item_filter.positions(IDS, UNOWNED) == [0, 1, 3]


def test_denied_item_is_visible_to_its_owner() -> None:
    """A denied item is visible to its owner."""
    subject = allowed((Privilege.SELECT_TABLE, LAKE), deny=[(Privilege.SELECT_TABLE, 12)])

    item_filter = list_filter(subject, Action.TABLE_LIST, INNER_CHAIN, nobody)

    assert item_filter.positions(IDS, [None, OTHER, USER, None]) == [0, 1, 2, 3]


def test_item_with_select_denied_is_visible_through_modify() -> None:
    """A table with SELECT denied and MODIFY allowed is visible."""
    subject = allowed((Privilege.SELECT_TABLE, LAKE), (Privilege.MODIFY_TABLE, 12), deny=[(Privilege.SELECT_TABLE, 12)])

    assert list_filter(subject, Action.TABLE_LIST, INNER_CHAIN, nobody).positions(IDS, UNOWNED) == [0, 1, 2, 3]


def test_item_is_hidden_only_if_both_rights_are_denied() -> None:
    """With SELECT and MODIFY on the parent, an item is hidden only if both are denied on it."""
    denials = [(Privilege.SELECT_TABLE, 11), (Privilege.SELECT_TABLE, 12), (Privilege.MODIFY_TABLE, 12)]
    subject = allowed((Privilege.SELECT_TABLE, LAKE), (Privilege.MODIFY_TABLE, OUTER), deny=denials)

    item_filter = list_filter(subject, Action.TABLE_LIST, INNER_CHAIN, nobody)

    assert item_filter.positions(IDS, UNOWNED) == [0, 1, 3]


def test_denial_on_parent_precedes_grants_on_items() -> None:
    """A denial on the parent precedes grants on the items."""
    subject = allowed((Privilege.SELECT_TABLE, 11), deny=[(Privilege.SELECT_TABLE, INNER)])

    assert list_filter(subject, Action.TABLE_LIST, INNER_CHAIN, nobody).positions(IDS, UNOWNED) == []


def test_stranger_sees_nothing() -> None:
    """A stranger sees no item."""
    stranger = Subject.of(None, "x", member=False)

    assert list_filter(stranger, Action.CATALOG_LIST, METALAKE_CHAIN, nobody).nothing


def test_role_list_has_the_callers_roles() -> None:
    """The list of roles has the caller's roles."""
    item_filter = list_filter(member(role(id=12)), Action.ROLE_LIST, METALAKE_CHAIN, nobody)

    assert item_filter.positions(IDS, UNOWNED) == [2]


@pytest.mark.parametrize("action, own_id", [(Action.USER_LIST, 10), (Action.GROUP_LIST, 11)])
def test_user_and_group_lists_have_caller_and_own_groups(action: Action, own_id: int) -> None:
    """The lists of users and groups have the caller and the caller's groups."""
    subject = Subject.of(10, "u", groups=[11])

    assert list_filter(subject, action, METALAKE_CHAIN, nobody).positions([own_id, 99], [None, None]) == [0]


def test_catalog_is_visible_to_its_users_and_owner() -> None:
    """A catalog is visible to its users and its owner."""
    item_filter = list_filter(allowed((Privilege.USE_CATALOG, 10)), Action.CATALOG_LIST, METALAKE_CHAIN, nobody)

    assert item_filter.positions(IDS, [None, USER, None, None]) == [0, 1]


def test_use_schema_on_one_namespace_shows_only_that_one() -> None:
    """USE_SCHEMA on one namespace makes only that one visible."""
    item_filter = list_filter(allowed((Privilege.USE_SCHEMA, 11)), Action.NAMESPACE_LIST, CATALOG_CHAIN, nobody)

    assert item_filter.positions(IDS, UNOWNED) == [1]
