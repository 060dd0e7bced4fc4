# SPDX-License-Identifier: Apache-2.0
"""Explanations of decisions: each line says what the user can do."""

from __future__ import annotations

import pytest

from limnos.access.actions import Action, require_kind
from limnos.access.decide import decide
from limnos.access.explain import describe, suggest
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.model.principals import Subject
from limnos.model.privileges import Privilege
from tests.access.world import (
    CATALOG_CHAIN,
    LAKE,
    METALAKE_CHAIN,
    OUTER,
    TABLE_CHAIN,
    USER,
    allowed,
    member,
    nobody,
    owned_by,
)


def test_each_missing_grant_is_suggested() -> None:
    """Each missing privilege gives one line with the grant that would provide it."""
    lines = suggest(decide(member(), Action.TABLE_LOAD, TABLE_CHAIN, nobody))

    assert lines == [
        "Grant USE_CATALOG on catalog main to a role of u.",
        "Grant USE_SCHEMA on namespace main.a.b to a role of u.",
        "Grant SELECT_TABLE or MODIFY_TABLE on table main.a.b.t to a role of u.",
    ]


def test_suggestion_names_role_with_the_denial() -> None:
    """If a denial decides, the role with the denial is named."""
    subject = allowed((Privilege.USE_CATALOG, LAKE), deny=[(Privilege.USE_SCHEMA, OUTER)])

    lines = suggest(decide(subject, Action.TABLE_LIST, TABLE_CHAIN[1:], nobody))

    assert lines == ["Revoke the denial of USE_SCHEMA on namespace main.a from role r."]


def test_ownership_is_suggested_if_only_that_suffices() -> None:
    """If only ownership is sufficient, the suggestion names the object to own."""
    lines = suggest(decide(member(), Action.CATALOG_DROP, CATALOG_CHAIN, nobody))

    assert lines == ["Make u, or a group of theirs, the owner of catalog main."]


def test_membership_is_suggested_first_to_non_member() -> None:
    """For a non-member the membership is suggested first."""
    stranger = Subject.of(None, "x", member=False)

    assert suggest(decide(stranger, Action.CATALOG_LOAD, CATALOG_CHAIN, nobody)) == ["Add user x to the metalake lake."]


def test_metalake_creation_suggests_a_service_admin() -> None:
    """For creating a metalake the suggestion names a service admin, because no grant is sufficient."""
    (line,) = suggest(decide(member(), Action.METALAKE_CREATE, METALAKE_CHAIN, nobody))

    assert line.startswith("Ask a service admin")


def test_long_advice_is_cut() -> None:
    """At most four lines are suggested, however many denials there are."""
    rules = [(p, link.id) for p in Privilege for link in TABLE_CHAIN]

    lines = suggest(decide(allowed(*rules, deny=rules), Action.TABLE_LOAD, TABLE_CHAIN, nobody))

    assert len(lines) == 4
    assert lines[-1].startswith("And ")


def test_permission_needs_no_advice() -> None:
    """An allowed decision has reasons and no suggestions."""
    decision = decide(member(), Action.CATALOG_LOAD, CATALOG_CHAIN, owned_by({2: USER}))

    assert suggest(decision) == []
    assert describe(decision)[1:] == ["  owner on catalog main"]


def test_description_has_reasons_and_advice() -> None:
    """A refusal is described by its message, its factors and suggestions."""
    lines = describe(decide(member(), Action.CATALOG_LOAD, CATALOG_CHAIN, nobody))

    assert lines[1:] == [
        "  missing USE_CATALOG on catalog main",
        "  missing OWNER on catalog main",
        "  -> Grant USE_CATALOG on catalog main to a role of u.",
    ]


def test_action_on_another_kind_is_refused() -> None:
    """Explaining a table's action on a catalog is an error that names the kinds of the action."""
    with pytest.raises(BadRequest, match="table_drop is done to a table, not to a catalog"):
        require_kind(Action.TABLE_DROP, Kind.CATALOG)
