# SPDX-License-Identifier: Apache-2.0
"""Users, groups, members, roles, rules, holders and owners in the store."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from limnos.model.entities import Grant, Principal, RoleEntity
from limnos.model.errors import AlreadyExists, NotFound
from limnos.model.kinds import ROOT_ID, Kind
from limnos.model.privileges import Privilege
from limnos.store.activity.upkeep import feed_prune, orphans_sweep
from limnos.store.identity import roles
from limnos.store.identity.principals import (
    UserEntry,
    groups_of_read,
    members_read,
    principal_by_id_read,
    principal_read,
    principals_read,
    user_entries_read,
)
from limnos.store.identity.roles import (
    LAST_ID,
    many_rules_read,
    role_objects_read,
    role_read,
    role_rules_read,
    roles_of_read,
    roles_on_read,
    roles_read,
    rules_end_read,
    rules_part_read,
)
from limnos.store.objects.owners import owner_read
from limnos.store.tx import Tx
from limnos.view.fact_reads import read_facts
from limnos.view.keys import rules_key
from tests.backends import StoreLab
from tests.store.world import StoreWorld, add_namespace, add_table


class Graph:
    """Methods that write to the metalake's zone, and the effect of the last write on its clock."""

    def __init__(self, lab: StoreLab, world: StoreWorld) -> None:
        self.lab = lab
        self.world = world
        self.zone = world.lake.id

    def write(self, mutation: Callable[[Tx], object]) -> object:
        """Submit a mutation of the metalake's zone."""
        return self.lab.write(mutation, zone=self.zone)

    def user(self, name: str, **fields: object) -> Principal:
        """Add a user."""
        return self.lab.write(lambda tx: tx.principals.create(self.zone, Kind.USER, name, **fields), zone=self.zone)

    def group(self, name: str) -> Principal:
        """Add a group."""
        return self.lab.write(lambda tx: tx.principals.create(self.zone, Kind.GROUP, name), zone=self.zone)

    def role(self, name: str) -> RoleEntity:
        """Add a role without rules."""
        return self.lab.write(
            lambda tx: tx.roles.create(self.zone, name, properties={"k": "v"}, owner_id=9), zone=self.zone
        )

    def moved(self) -> bool:
        """Return whether the last revision moved the access revision."""
        revision, access = self.lab.clock(self.zone)
        return revision == access


@pytest.fixture
def graph(lab: StoreLab, world: StoreWorld) -> Graph:
    """The metalake without users, groups and roles."""
    return Graph(lab, world)


def rule(object_id: int, privilege: Privilege = Privilege.SELECT_TABLE, *, allowed: bool = True) -> Grant:
    """Return a rule on a table."""
    return Grant(object_id, Kind.TABLE, int(privilege), allowed)


def test_user_reads_back(lab: StoreLab, graph: Graph) -> None:
    """A user is found by name and by id, and not as a group."""
    user = graph.user("ana", external_id="x-1", enabled=False)

    assert lab.load(principal_read(graph.zone, Kind.USER, "ana")) == user
    assert lab.load(principal_by_id_read(user.id)) == user
    assert lab.load(principal_read(graph.zone, Kind.GROUP, "ana")) is None
    assert (user.external_id, user.enabled) == ("x-1", False)
    assert graph.moved()


def test_names_and_external_ids_are_unique_in_a_metalake(graph: Graph) -> None:
    """A second user with the same name or external id is refused. A group with the same name is accepted."""
    graph.user("ana", external_id="x-1")

    for name, external_id in (("ana", None), ("bob", "x-1")):
        with pytest.raises(AlreadyExists):
            graph.user(name, external_id=external_id)
    assert graph.group("ana").kind is Kind.GROUP


def test_removed_user_loses_memberships_and_roles(lab: StoreLab, graph: Graph) -> None:
    """Removing a user ends its memberships and roles. A user added again under the name has none of them."""
    ana, staff, role = graph.user("ana"), graph.group("staff"), graph.role("r")
    graph.write(lambda tx: (tx.principals.join(staff, ana), tx.roles.give(role, ana)))

    graph.write(lambda tx: tx.principals.drop(ana))

    again = graph.user("ana")
    assert again.id != ana.id
    assert lab.load(principal_by_id_read(ana.id)) is None
    assert lab.load(groups_of_read(again.id)) == lab.load(roles_of_read(again.id)) == ()
    assert lab.load(members_read(staff.id)) == ()


def test_user_state_change_moves_the_access_revision(lab: StoreLab, graph: Graph) -> None:
    """The state of a user is stored, and a change of it moves the access revision."""
    ana = graph.user("ana")

    graph.write(lambda tx: tx.principals.enable(ana, enabled=False))

    user = lab.load(principal_read(graph.zone, Kind.USER, "ana"))
    assert user.enabled is False
    assert graph.moved()


def test_tokens_of_a_removed_user_are_refused_for_its_successor(lab: StoreLab, graph: Graph) -> None:
    """The first user of a name accepts any token for it. A later user of the name accepts only tokens made since the
    removal of the earlier one.
    """
    first = graph.user("ana")
    graph.write(lambda tx: tx.principals.drop(first))

    second, other, group = graph.user("ana"), graph.user("ben"), graph.group("ana")

    assert [each.tokens_from for each in (first, second, other, group)] == [0, second.id, 0, 0]
    assert lab.load(principal_read(graph.zone, Kind.USER, "ana")) == second


def test_entries_of_users_have_state_and_first_token(lab: StoreLab, graph: Graph) -> None:
    """One statement reads the entries of several users; a missing or removed user, and a group, has none."""
    first = graph.user("ana")
    graph.write(lambda tx: tx.principals.drop(first))
    second = graph.user("ana")
    graph.user("ben", enabled=False)
    graph.group("staff")

    entries = lab.load(user_entries_read(["ana", "ben", "staff", "o'neill"]))

    assert entries == {
        "ana": [UserEntry(True, second.id)],
        "ben": [UserEntry(False, 0)],
        "staff": [],
        "o'neill": [],
    }


def test_principals_are_listed_by_code_point(lab: StoreLab, graph: Graph) -> None:
    """The list has all users of the metalake and no group, in the order of code points."""
    for name in ("b", "A", "é", "\ufffd", "\U0001f600"):
        graph.user(name)
    graph.group("g")

    listed = lab.load(principals_read(graph.zone, Kind.USER))

    assert [each.name for each in listed] == ["A", "b", "é", "\ufffd", "\U0001f600"]


def test_group_membership_changes_are_idempotent(lab: StoreLab, graph: Graph) -> None:
    """Joining and leaving a group are idempotent, and only effective changes are in the feed."""
    ana, staff = graph.user("ana"), graph.group("staff")
    graph.write(lambda tx: tx.principals.join(staff, ana))
    joined = lab.clock(graph.zone)

    graph.write(lambda tx: tx.principals.join(staff, ana))

    assert lab.clock(graph.zone) == joined
    assert lab.load(members_read(staff.id)) == ("ana",)
    assert lab.load(groups_of_read(ana.id)) == (staff.id,)
    assert graph.write(lambda tx: tx.principals.remove_member(staff, ana)) is True
    assert graph.write(lambda tx: tx.principals.remove_member(staff, ana)) is False
    assert lab.load(members_read(staff.id)) == ()


def test_removed_group_has_no_memberships(lab: StoreLab, graph: Graph) -> None:
    """A removed group leaves no membership rows."""
    ana, staff = graph.user("ana"), graph.group("staff")
    graph.write(lambda tx: tx.principals.join(staff, ana))

    graph.write(lambda tx: tx.principals.drop(staff))

    assert lab.load(groups_of_read(ana.id)) == ()


def test_missing_group_error_names_its_kind(graph: Graph) -> None:
    """The error for a missing group names its kind."""
    with pytest.raises(NotFound, match="Group staff does not exist") as missing:
        graph.write(lambda tx: tx.principals.require(graph.zone, Kind.GROUP, "staff"))

    assert missing.value.kind == "group"


def test_role_reads_back(lab: StoreLab, graph: Graph) -> None:
    """A role is found by name with its properties and owner, and its rules by its id."""
    role = graph.role("r")

    assert lab.load(role_read(graph.zone, "r")) == role
    assert lab.load(role_rules_read(role.id)) == (role, ())
    assert role.properties == (("k", "v"),)
    assert lab.load(owner_read(role.id)) == 9
    with pytest.raises(AlreadyExists):
        graph.role("r")


def test_latest_allow_or_deny_of_a_rule_counts(lab: StoreLab, graph: Graph) -> None:
    """A rule on a privilege and an object allows or denies it, never both: the latest one counts. Only the exact rule
    can be withdrawn.
    """
    role = graph.role("r")
    graph.write(lambda tx: tx.roles.allow(role, [rule(5), rule(5, Privilege.MODIFY_TABLE), rule(6)]))
    graph.write(lambda tx: tx.roles.allow(role, [rule(5, allowed=False)]))

    graph.write(lambda tx: tx.roles.withdraw(role, [rule(5), rule(6), rule(7)]))

    grants = lab.load(role_rules_read(role.id))[1]
    assert set(grants) == {rule(5, allowed=False), rule(5, Privilege.MODIFY_TABLE)}
    assert lab.load(roles_on_read(5)) == ("r",)
    assert lab.load(roles_on_read(6)) == ()
    assert graph.moved()


def test_rules_are_read_in_parts(lab: StoreLab, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of a role's rules ends after all rules of an object. A role with many rules is read without them, and a
    change of one object's rules names the object.
    """
    monkeypatch.setattr(roles, "PART_MAX", 3)
    role = graph.role("r")
    many = [rule(at) for at in (5, 6, 7, 8)] + [rule(7, Privilege.MODIFY_TABLE)]

    graph.write(lambda tx: tx.roles.allow(role, many))

    assert lab.load(role_rules_read(role.id))[1] is None
    assert lab.load(rules_end_read(role.id, 0)) == 7
    assert len(lab.load(rules_part_read(role.id, (0, 7)))) == 4
    assert lab.load(rules_end_read(role.id, 7)) == LAST_ID
    assert lab.load(rules_part_read(role.id, (7, LAST_ID))) == (rule(8),)


def test_many_roles_are_read_by_two_statements(lab: StoreLab, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two statements read many roles like single reads: roles without rules, with few, with many, dropped ones and
    missing ones.
    """
    monkeypatch.setattr(roles, "PART_MAX", 3)
    created_roles = [graph.role(name) for name in ("none", "few", "many", "gone")]
    graph.write(lambda tx: tx.roles.allow(created_roles[1], [rule(6), rule(5, allowed=False)]))
    graph.write(lambda tx: tx.roles.allow(created_roles[2], [rule(at) for at in range(5, 15)]))
    graph.write(lambda tx: tx.roles.drop(created_roles[3]))
    ids = [*(each.id for each in created_roles), 10**12]
    before = lab.store.statements

    role_rules = lab.load(many_rules_read(ids))

    assert lab.store.statements - before == 3  # the load's clock, the roles, and the rules
    assert role_rules == {each: lab.load(role_rules_read(each)) for each in ids}


def test_facts_of_many_roles_are_read_together(lab: StoreLab, graph: Graph) -> None:
    """Many facts about roles that are wanted at the same time are loaded together."""
    created_roles = [graph.role(f"r{number}") for number in range(30)]
    before = lab.store.statements

    facts = lab.load(read_facts(tuple(rules_key(each.id) for each in created_roles)))

    assert lab.store.statements - before == 3
    assert facts.values == {rules_key(each.id): lab.load(role_rules_read(each.id)) for each in created_roles}


def test_replaced_role_has_exactly_the_new_rules(lab: StoreLab, graph: Graph) -> None:
    """A replaced role has exactly the new rules."""
    role = graph.role("r")
    graph.write(lambda tx: tx.roles.allow(role, [rule(5)]))

    graph.write(lambda tx: tx.roles.replace(role, [rule(6)]))

    assert lab.load(role_rules_read(role.id))[1] == (rule(6),)


def test_role_grants_are_idempotent_and_end_with_the_role(lab: StoreLab, graph: Graph) -> None:
    """Granting and revoking a role are idempotent. A dropped role has no holders, rules or owner."""
    ana, staff, role, other = graph.user("ana"), graph.group("staff"), graph.role("r"), graph.role("s")
    graph.write(lambda tx: [tx.roles.give(each, ana) for each in (role, other, role)])
    graph.write(lambda tx: (tx.roles.give(role, staff), tx.roles.allow(role, [rule(5)])))
    graph.write(lambda tx: tx.roles.take(other, ana))
    assert lab.load(roles_of_read(ana.id)) == lab.load(roles_of_read(staff.id)) == (role.id,)

    graph.write(lambda tx: tx.roles.drop(role))

    assert lab.load(roles_of_read(ana.id)) == lab.load(roles_of_read(staff.id)) == ()
    assert lab.load(role_rules_read(role.id)) is None
    assert lab.load(roles_on_read(5)) == ()
    assert lab.load(owner_read(role.id)) is None
    assert [each[0].name for each in lab.load(roles_read(graph.zone))] == ["s"]


def test_new_owner_replaces_the_earlier_one(lab: StoreLab, graph: Graph, world: StoreWorld) -> None:
    """A new owner replaces the earlier one, and the access revision of the object's zone moves."""
    zone = world.main.id
    node = lab.write(lambda tx: add_namespace(tx, world.main, "a", owner_id=1), zone=zone)

    lab.write(lambda tx: tx.owners.set(node.id, node.kind, 2, parent_id=node.parent_id, space="namespace"), zone=zone)

    assert lab.load(owner_read(node.id)) == 2
    assert lab.clock(zone) == (2, 2)


def test_sweep_deletes_grants_on_dropped_objects_only(lab: StoreLab, graph: Graph, world: StoreWorld) -> None:
    """Grants on dropped objects are swept after the change row of the drop was deleted. Grants on other objects and on
    roles are kept.
    """
    zone = world.main.id
    retained_node, lost = lab.write(lambda tx: [add_namespace(tx, world.main, name) for name in "ab"], zone=zone)
    role = graph.role("r")
    on_role = Grant(role.id, Kind.ROLE, int(Privilege.MANAGE_GRANTS), allowed=True)
    graph.write(lambda tx: tx.roles.allow(role, [rule(retained_node.id), rule(lost.id), on_role]))
    lab.write(lambda tx: tx.nodes.drop(lost), zone=zone)

    early = lab.write(orphans_sweep)
    lab.write(lambda tx: feed_prune(tx, keep_ms=-1000))
    swept = lab.write(orphans_sweep)

    assert (early, swept) == (0, 1)
    assert {grant.object_id for grant in lab.load(role_rules_read(role.id))[1]} == {retained_node.id, role.id}


def test_role_objects_are_returned_with_their_ancestors(lab: StoreLab, graph: Graph, world: StoreWorld) -> None:
    """Each existing object of a role is returned with all of its ancestors. Dropped objects are omitted."""
    zone = world.main.id
    outer = lab.write(lambda tx: add_namespace(tx, world.main, "a"), zone=zone)
    table, lost = lab.write(lambda tx: [add_table(tx, outer, name) for name in "tu"], zone=zone)
    role = graph.role("r")
    graph.write(lambda tx: tx.roles.allow(role, [rule(table.id), rule(lost.id)]))
    lab.write(lambda tx: tx.nodes.drop(lost), zone=zone)

    role_objects = lab.load(role_objects_read(role.id))

    assert role_objects == {
        table.id: (outer.id, Kind.TABLE, "t"),
        outer.id: (world.main.id, Kind.NAMESPACE, "a"),
        world.main.id: (world.lake.id, Kind.CATALOG, "main"),
        world.lake.id: (ROOT_ID, Kind.METALAKE, "lake"),
    }
