# SPDX-License-Identifier: Apache-2.0
"""Prechecks: they refuse only actions that would be refused later, and they refuse callers without any privilege."""

from __future__ import annotations

import pytest
from hypothesis import given

from limnos.access.actions import Action
from limnos.access.policy import SERVER_ACTIONS
from limnos.access.prechecks import may_be_allowed
from limnos.model.decisions import SecurableChain
from limnos.model.kinds import Kind
from limnos.model.principals import Subject
from limnos.model.privileges import Privilege
from tests.access.test_properties import Question, law, questions
from tests.access.world import (
    CATALOG_CHAIN,
    INNER,
    INNER_CHAIN,
    LAKE,
    MAIN,
    METALAKE_CHAIN,
    TABLE_CHAIN,
    TARGET,
    USER,
    allowed,
    member,
    nobody,
    owned_by,
)

USE = ((Privilege.USE_CATALOG, LAKE), (Privilege.USE_SCHEMA, LAKE))
OF_METALAKES = (
    Action.METALAKE_ALTER,
    Action.CATALOG_CREATE,
    Action.ROLE_CREATE,
    Action.ROLE_ASSIGN,
    Action.GROUP_MEMBERS,
)
CASES = [
    *((action, METALAKE_CHAIN) for action in OF_METALAKES),
    (Action.CATALOG_ALTER, CATALOG_CHAIN),
    (Action.NAMESPACE_ALTER, CATALOG_CHAIN),
    (Action.NAMESPACE_ALTER, INNER_CHAIN),
    (Action.TABLE_CREATE, INNER_CHAIN),
    (Action.TABLE_CREATE, TABLE_CHAIN),
    (Action.TABLE_COMMIT, TABLE_CHAIN),
    (Action.TABLE_COMMIT, CATALOG_CHAIN),
]


@law
@given(questions())
def test_allowed_user_passes_precheck_at_every_level(question: Question) -> None:
    """A user who is allowed an action passes the precheck on the object, its catalog and its metalake."""
    if question.answer().allowed:
        scopes = [place for place, link in enumerate(question.chain) if link.kind in (Kind.CATALOG, Kind.METALAKE)]
        for start in (0, *scopes):
            assert may_be_allowed(question.subject, question.action, question.chain[start:], owned_by(question.owned))


@pytest.mark.parametrize("action, chain", CASES)
def test_caller_without_privileges_fails_precheck(action: Action, chain: SecurableChain) -> None:
    """A non-member, a service admin who is not a user, and a member without privileges fail the precheck."""
    stranger = Subject.of(None, "s", service_admin=True, member=False)

    assert not may_be_allowed(stranger, action, chain, owned_by({LAKE: USER}))
    assert not may_be_allowed(member(), action, chain, nobody)


def test_read_privileges_fail_precheck_of_a_commit() -> None:
    """A user with privileges to use or read fails the precheck of a commit. A privilege to write some table
    passes it.
    """
    reads = allowed(*USE, (Privilege.SELECT_TABLE, LAKE))
    writes = allowed(*USE, (Privilege.MODIFY_TABLE, 77))

    assert not may_be_allowed(reads, Action.TABLE_COMMIT, TABLE_CHAIN, nobody)
    assert not may_be_allowed(reads, Action.TABLE_CREATE, TABLE_CHAIN, nobody)
    assert may_be_allowed(writes, Action.TABLE_COMMIT, TABLE_CHAIN, nobody)


def test_owner_of_ancestor_passes_precheck() -> None:
    """The owner of an ancestor passes the precheck, and below a catalog also with the right to use it."""
    user = allowed(*USE)

    for owned in (TARGET, INNER, MAIN, LAKE):
        assert may_be_allowed(user, Action.TABLE_COMMIT, TABLE_CHAIN, owned_by({owned: USER}))
    assert may_be_allowed(user, Action.NAMESPACE_ALTER, CATALOG_CHAIN, nobody)
    assert not may_be_allowed(user, Action.NAMESPACE_ALTER, INNER_CHAIN, nobody)


def test_only_service_admin_passes_prechecks_of_server_actions() -> None:
    """Actions on the server need no membership, and only service admins pass their prechecks."""
    admin = Subject.of(None, "s", service_admin=True, member=False)

    for action in SERVER_ACTIONS:
        assert may_be_allowed(admin, action, (), nobody)
        assert not may_be_allowed(member(), action, (), nobody)
