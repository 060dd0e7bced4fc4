# SPDX-License-Identifier: Apache-2.0
"""Subjects: unions of rules are computed once, and a subject can be limited to active roles."""

from __future__ import annotations

import pytest

from limnos.model.errors import PermissionDenied
from limnos.model.principals import Subject
from limnos.model.privileges import Privilege
from tests.access.world import GROUP, MAIN, OUTER, USER, member, role

USE = (Privilege.USE_CATALOG, MAIN)
SELECT = (Privilege.SELECT_TABLE, OUTER)


def test_unions_have_the_rules_of_all_roles() -> None:
    """Unions have the allowed and denied rules of every role, in total and by privilege."""
    subject = member(role([USE], id=1), role([SELECT], [USE], id=2, via="g"), groups=[GROUP])

    assert subject.allow == {USE, SELECT}
    assert subject.deny == {USE}
    assert subject.allow_ids == {Privilege.USE_CATALOG: {MAIN}, Privilege.SELECT_TABLE: {OUTER}}
    assert subject.principal_ids == {USER, GROUP}
    assert subject.role_ids == {1, 2}


def test_rules_of_a_single_role_are_not_copied() -> None:
    """A large role is shared by its holders without a copy."""
    member_role = role([USE, SELECT])

    assert member(member_role).allow == member_role.rules.allow == {USE, SELECT}
    assert member(member_role).allow_ids[Privilege.USE_CATALOG] is member_role.rules.allow_ids[Privilege.USE_CATALOG]


def test_a_user_without_an_id_is_no_member() -> None:
    """A user without an id in the metalake is not a member, whatever the user's groups are."""
    subject = Subject.of(None, "anonymous", member=True)

    assert not subject.member
    assert not subject.principal_ids


def test_inactive_roles_keep_denials_and_holdings() -> None:
    """Inactive roles no longer allow anything. Their denials still apply, and the user still holds them."""
    subject = member(role([USE], id=1, name="a"), role([SELECT], [USE], id=2, name="b"))

    narrow = subject.narrow_to_roles(frozenset({"a"}))

    assert narrow.allow == {USE}
    assert narrow.deny == {USE}
    assert narrow.role_ids == {1, 2}


def test_activating_an_unheld_role_is_refused() -> None:
    """A role that the user does not hold cannot be activated."""
    with pytest.raises(PermissionDenied, match="does not hold the role z"):
        member(role(name="a")).narrow_to_roles(frozenset({"a", "z"}))


def test_subjects_compare_and_hash_by_content() -> None:
    """Subjects compare and hash by their content."""
    one, two = (Subject.of(USER, "u", roles=[role([USE, SELECT])]) for _ in range(2))

    assert one == two
    assert hash(one) == hash(two)
