# SPDX-License-Identifier: Apache-2.0
"""Random lakes for tests of rights: users, groups, roles, rules, denials and owners."""

from __future__ import annotations

import random
from collections.abc import Sequence

from limnos.access.actions import Action
from limnos.model.kinds import Kind
from limnos.model.privileges import BINDS, GrantCondition, Privilege
from limnos.services.identity.explain import access_explain
from limnos.services.identity.grants import PrivilegeRequest, privileges_grant, roles_give
from limnos.services.identity.groups import members_add
from limnos.services.identity.owners import owner_set
from limnos.services.identity.roles import role_create
from limnos.services.identity.users import principal_add
from tests.inprocess import LAKE
from tests.services.conftest import ServiceDesk

PEOPLE = ("ana", "bob", "cleo", "dan", "eve", "fay")
OBJECTS = ((Kind.METALAKE, LAKE), (Kind.CATALOG, "main"), (Kind.NAMESPACE, "main.a"), (Kind.TABLE, "main.a.t"))


def fits_tables(privilege: Privilege) -> bool:
    """Return whether a privilege can be granted in a catalog of tables."""
    return not any(word in privilege.name for word in ("FILESET", "TOPIC", "MODEL"))


def draw_rights(desk: ServiceDesk, drawn: random.Random) -> None:
    """Generate random roles, groups, rules, denials and owners."""
    desk.users(*PEOPLE[2:])
    for name in ("north", "south"):
        desk.run(principal_add(desk.ctx(), metalake=LAKE, kind=Kind.GROUP, name=name))
        desk.run(members_add(desk.ctx(), metalake=LAKE, group=name, users=tuple(drawn.sample(PEOPLE, 2))))
    fitting = {kind: [each for each in Privilege if kind in BINDS[each] and fits_tables(each)] for kind, _ in OBJECTS}
    uses = [Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.SELECT_TABLE, Privilege.MODIFY_TABLE]
    for number in range(5):
        role = f"r{number}"
        desk.run(role_create(desk.ctx(), metalake=LAKE, name=role, properties={}, privilege_requests=()))
        for kind, full_name in drawn.sample(OBJECTS, 2):
            likely = [each for each in uses if each in fitting[kind]]
            chosen = {*drawn.sample(fitting[kind], 3), *drawn.sample(likely, min(2, len(likely)))}
            pairs = tuple(
                (each, GrantCondition.DENY if drawn.random() < 0.12 else GrantCondition.ALLOW)
                for each in sorted(chosen)
            )
            privilege_request = PrivilegeRequest(kind, full_name, pairs)
            desk.run(privileges_grant(desk.ctx(), metalake=LAKE, role=role, privilege_request=privilege_request))
        holder, kind = drawn.choice(
            [*((each, Kind.USER) for each in PEOPLE), ("north", Kind.GROUP), ("south", Kind.GROUP)]
        )
        for name, of_kind in ((holder, kind), (drawn.choice(PEOPLE), Kind.USER)):
            desk.run(roles_give(desk.ctx(), metalake=LAKE, kind=of_kind, name=name, roles=(role,)))
    for kind, full_name in drawn.sample(OBJECTS[1:], 2):
        owner, of_kind = drawn.choice([("cleo", Kind.USER), ("north", Kind.GROUP)])
        desk.run(owner_set(desk.ctx(), metalake=LAKE, kind=kind, full_name=full_name, owner_kind=of_kind, owner=owner))


def may_any(desk: ServiceDesk, user: str, actions: Sequence[Action], kind: Kind, path: tuple[str, ...]) -> bool:
    """Return whether a user may do one of some actions, as the user's own requests would be decided."""

    def allowed(action: Action) -> bool:
        question = access_explain(desk.ctx(), metalake=LAKE, user=user, action=action, kind=kind, path=path)
        return desk.run(question)[0].allowed

    return any(allowed(action) for action in actions)
