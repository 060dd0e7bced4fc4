# SPDX-License-Identifier: Apache-2.0
"""Subjects built from facts: the rules merged from roles are reused until one of these roles changes."""

from __future__ import annotations

from collections import Counter

import pytest

from limnos.access import subjects
from limnos.access.subjects import subject_of
from limnos.model.entities import ClockRow, Grant, Principal, RoleEntity
from limnos.model.kinds import Kind
from limnos.model.principals import MergedRules, Subject
from limnos.model.privileges import Privilege
from limnos.store.changes import UNKNOWN, GateResult
from limnos.view.cache_miss import CacheMiss
from limnos.view.keys import Key, groups_key, principal_id_key, principal_key, roles_key, rules_key
from limnos.view.view import StoreView

LAKE, USER, CREW, ROLE, OBJECT = 1, 10, 11, 100, 5000
ROLES = 600


def person(id: int, name: str, kind: Kind = Kind.USER) -> Principal:
    """Return a user or group."""
    return Principal(
        id=id,
        metalake_id=LAKE,
        kind=kind,
        name=name,
        external_id=None,
        enabled=True,
        created_by="admin",
        created_at=0,
        modified_by=None,
        modified_at=None,
    )


def role(number: int, *more: Grant) -> tuple[RoleEntity, tuple[Grant, ...]]:
    """Return a role that allows a privilege on its own object, and more."""
    entity = RoleEntity(
        id=ROLE + number,
        metalake_id=LAKE,
        name=f"r{number}",
        properties=(),
        created_by="admin",
        created_at=0,
        modified_by=None,
        modified_at=None,
    )
    return entity, (Grant(OBJECT + number, Kind.TABLE, int(Privilege.SELECT_TABLE), allowed=True), *more)


class Facts:
    """A fake view with a user who holds many roles, some of them through a group."""

    def __init__(self) -> None:
        self.view = StoreView()
        self.view.advance(
            GateResult(7, (ClockRow(0, 1, 0, 0), ClockRow(LAKE, 1, 0, 0)), ()), ((0, UNKNOWN), (LAKE, UNKNOWN))
        )
        self.put(principal_key(LAKE, Kind.USER, "ana"), person(USER, "ana"))
        self.put(groups_key(USER), (CREW,))
        self.put(principal_id_key(CREW), person(CREW, "crew", Kind.GROUP))
        self.put(roles_key(USER), tuple(ROLE + number for number in range(ROLES - 1)))
        self.put(roles_key(CREW), (ROLE + ROLES - 1, ROLE))
        for number in range(ROLES):
            self.put(rules_key(ROLE + number), role(number))

    def put(self, key: Key, value: object) -> None:
        """Merge a fact."""
        self.view.merge({key: value}, zone_of={key: LAKE}, at={LAKE: self.view.zones[LAKE].revision})

    def forget_what_access_gave(self) -> None:
        """Drop derived values, as any change of the metalake's access revision does."""
        self.view.memo(LAKE).clear()

    def subject(self) -> Subject:
        """Return the user's subject."""
        return subject_of(self.view, LAKE, "ana", service_admin=False)


@pytest.fixture
def facts() -> Facts:
    """Return facts of a metalake."""
    return Facts()


@pytest.fixture
def build_counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return how often a role's rules were built from its fact, and how often rules were merged."""
    counted: Counter[str] = Counter()
    rules_of, merge = subjects.rules_of, MergedRules.of

    def counting_rules(fact: tuple[RoleEntity, tuple[Grant, ...]]) -> object:
        counted["rules"] += 1
        return rules_of(fact)

    def counting_merge(roles: object) -> object:
        counted["merged"] += 1
        return merge(roles)  # type: ignore[arg-type]

    monkeypatch.setattr(subjects, "rules_of", counting_rules)
    monkeypatch.setattr(MergedRules, "of", counting_merge)
    return counted


def test_a_subject_has_the_rules_of_all_roles(facts: Facts, build_counts: Counter[str]) -> None:
    """A subject has the rules of all of its roles, also those through groups, whose names it has. Each role is built
    once, and all are merged once.
    """
    subject = facts.subject()

    assert subject.allow_ids == {Privilege.SELECT_TABLE: {OBJECT + number for number in range(ROLES)}}
    assert len(subject.roles) == ROLES + 1
    assert [held_role.rules.name for held_role in subject.roles if held_role.via == "crew"] == [f"r{ROLES - 1}", "r0"]
    assert build_counts == {"rules": ROLES, "merged": 1}


def test_unrelated_change_rebuilds_no_role(facts: Facts, build_counts: Counter[str]) -> None:
    """An unrelated change of access builds and merges nothing again."""
    before = facts.subject()
    build_counts.clear()
    facts.forget_what_access_gave()
    facts.put(rules_key(ROLE + ROLES), role(ROLES))

    after = facts.subject()

    assert not build_counts
    assert after.allow_ids is before.allow_ids
    assert after.roles is before.roles


def test_only_the_changed_role_is_rebuilt(facts: Facts, build_counts: Counter[str]) -> None:
    """If one of many roles changes, only it is built again, and all are merged."""
    facts.subject()
    build_counts.clear()
    facts.forget_what_access_gave()
    facts.put(rules_key(ROLE + 7), role(7, Grant(1, Kind.CATALOG, int(Privilege.USE_CATALOG), allowed=False)))

    subject = facts.subject()

    assert build_counts == {"rules": 1, "merged": 1}
    assert subject.deny_ids == {Privilege.USE_CATALOG: {1}}


@pytest.mark.parametrize("change", ["given", "taken", "gone", "group"])
def test_changes_of_roles_and_groups_affect_the_next_subject(facts: Facts, change: str) -> None:
    """Granted, revoked and dropped roles, and groups that the user has left, affect the next subject."""
    facts.subject()
    facts.forget_what_access_gave()
    match change:
        case "given":
            facts.put(rules_key(ROLE + ROLES), role(ROLES))
            facts.put(roles_key(USER), (ROLE + ROLES,))
            expected = {OBJECT + ROLES, OBJECT + ROLES - 1, OBJECT}
        case "taken":
            facts.put(roles_key(USER), ())
            expected = {OBJECT + ROLES - 1, OBJECT}
        case "gone":
            facts.put(rules_key(ROLE + 1), None)
            expected = {OBJECT + number for number in range(ROLES) if number != 1}
        case _:
            facts.put(groups_key(USER), ())
            expected = {OBJECT + number for number in range(ROLES - 1)}

    assert facts.subject().allow_ids == {Privilege.SELECT_TABLE: expected}


def test_many_roles_are_read_in_parts(facts: Facts) -> None:
    """Many roles are read in parts, between which other requests run; a few are read at once."""
    view = StoreView()
    view.advance(GateResult(7, (ClockRow(0, 1, 0, 0), ClockRow(LAKE, 1, 0, 0)), ()), ((0, UNKNOWN), (LAKE, UNKNOWN)))
    whole, facts.view = facts.view, view
    parts = []
    for _ in range(10):
        try:
            facts.subject()
            break
        except CacheMiss as cold:
            parts.append((len(cold.missing_keys), cold.goes_on))
            for key in cold.missing_keys:
                named = principal_key(LAKE, Kind.USER, key[2]) if key[0] == "member" else key
                facts.put(named, whole.get(named))

    assert [part for part in parts if part[0] > 2] == [(256, True), (256, True), (ROLES - 512, False)]


def test_cached_subjects_are_limited(facts: Facts, build_counts: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of cached subjects is limited for all users together."""
    monkeypatch.setattr(subjects, "HELD_ROLES_MAX", ROLES)
    facts.subject()
    facts.forget_what_access_gave()
    facts.put(principal_key(LAKE, Kind.USER, "bob"), person(12, "bob"))
    facts.put(groups_key(12), ())
    facts.put(roles_key(12), (ROLE,))
    subject_of(facts.view, LAKE, "bob", service_admin=False)
    build_counts.clear()

    facts.subject()

    assert build_counts["merged"] == 1
