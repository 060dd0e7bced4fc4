# SPDX-License-Identifier: Apache-2.0
"""Large numbers of users, groups and roles: a node with an empty view answers their lists with a few statements,
whatever their number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from limnos.access.actions import Action
from limnos.model.kinds import Kind
from limnos.model.privileges import GrantCondition, Privilege
from limnos.services.identity.access_holders import HoldersRequest, access_holders, access_rules
from limnos.services.identity.access_objects import AccessQuestion
from limnos.services.identity.grants import PrivilegeRequest, roles_give
from limnos.services.identity.owners import owner_set
from limnos.services.identity.roles import role_create, role_drop, roles_list, roles_on
from limnos.services.identity.users import holders_list, principal_add, principal_remove
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.store.schema import metadata
from limnos.store.sql import Load, Row
from tests.inprocess import LAKE, Node
from tests.services.conftest import ServiceDesk

T = TypeVar("T")
MANY = 300
"""More than the number of rounds that one read may have."""
STATEMENTS_MAX = 20
MASSES = 20_000
FAR = 1 << 52
"""No ids from here on are assigned by the store."""
NUMBERS = f"WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < {MASSES})"


def ask(desk: ServiceDesk, reader: Callable[[RequestView], Any], user: str = "admin") -> tuple[Any, int]:
    """Send a request to a node with an empty view. Returns the answer and the number of statements."""
    fresh = Node(desk.lab.open())
    answer = desk.run(fresh.ctx(user).read(RequestScope(LAKE), reader))
    return answer, fresh.store.statements


def give(desk: ServiceDesk, name: str, *roles: str, kind: Kind = Kind.USER, gives: bool = True) -> None:
    """Grant or revoke roles."""
    desk.run(roles_give(desk.ctx(), metalake=LAKE, kind=kind, name=name, roles=roles, gives=gives))


def make_role(desk: ServiceDesk, name: str, *privileges: Privilege) -> None:
    """Create a role with rights on the catalog."""
    privilege_request = PrivilegeRequest(
        Kind.CATALOG, "main", tuple((each, GrantCondition.ALLOW) for each in privileges)
    )
    privilege_requests = (privilege_request,) if privileges else ()
    desk.run(role_create(desk.ctx(), metalake=LAKE, name=name, properties={}, privilege_requests=privilege_requests))


def multiply(desk: ServiceDesk, table: str, where: str, **changed: str) -> None:
    """Insert many copies of a row directly; `n` in SQL is the number of the copy."""
    columns = metadata.tables[table].columns.keys()
    values = ", ".join(changed.get(column, column) for column in columns)
    desk.lab.database.sql(
        f"INSERT INTO {table} ({', '.join(columns)}) {NUMBERS} SELECT {values} FROM {table}, numbers WHERE {where}"
    )


def first(desk: ServiceDesk, statement: str) -> int:
    """Read one number."""
    number: int = desk.rows(statement)[0][0]
    return number


@pytest.mark.parametrize("kind", [Kind.USER, Kind.GROUP])
def test_cold_user_list_needs_few_statements(desk: ServiceDesk, kind: Kind) -> None:
    """A node with an empty view lists twenty thousand users with a role each by as many statements as a few users."""
    make_role(desk, "r")
    desk.run(principal_add(desk.ctx(), metalake=LAKE, kind=kind, name="p"))
    give(desk, "p", "r", kind=kind)
    one = first(desk, "SELECT id FROM principal WHERE name = 'p'")
    name = f"'p' || ({FAR} + n)"
    multiply(desk, "principal", f"id = {one}", id=f"{FAR} + n", name=name)
    multiply(desk, "role_member", f"principal_id = {one}", principal_id=f"{FAR} + n")

    holders, statements = ask(desk, lambda request_view: holders_list(request_view, kind))

    assert [each.roles for each in holders if each.principal.name[0] == "p"] == [("r",)] * (MASSES + 1)
    assert statements <= STATEMENTS_MAX


def test_cold_role_list_needs_few_statements(desk: ServiceDesk) -> None:
    """A node with an empty view lists twenty thousand roles with a rule each by a few statements."""
    make_role(desk, "r", Privilege.USE_CATALOG)
    one = first(desk, "SELECT id FROM role WHERE name = 'r'")
    catalog = first(desk, "SELECT id FROM node WHERE kind = 2")
    multiply(desk, "role", f"id = {one}", id=f"{FAR} + n", name=f"'r' || ({FAR} + n)")
    multiply(desk, "access_grant", f"role_id = {one}", role_id=f"{FAR} + n")
    multiply(desk, "owner", f"object_id = {one}", object_id=f"{FAR} + n")
    give(desk, "ana", "r")

    every, statements = ask(desk, roles_list)
    mine, of_mine = ask(desk, roles_list, "ana")
    on, of_on = ask(desk, lambda request_view: roles_on(request_view, catalog))

    assert (len(every), [role.name for role in mine], len(on)) == (MASSES + 1, ["r"], MASSES + 1)
    assert max(statements, of_mine) <= STATEMENTS_MAX
    assert of_on <= STATEMENTS_MAX + 100


@pytest.mark.parametrize("kind", [Kind.USER, Kind.GROUP])
def test_users_are_listed_with_direct_roles_by_few_statements(desk: ServiceDesk, kind: Kind) -> None:
    """Users are listed with their direct roles, sorted, with the same number of statements for many as for few."""
    for role in ("r1", "r0"):
        make_role(desk, role)
    for number in range(MANY):
        desk.run(principal_add(desk.ctx(), metalake=LAKE, kind=kind, name=f"p{number:03}"))
    give(desk, "p007", "r1", "r0", kind=kind)
    give(desk, "p008", "r1", kind=kind)

    holders, statements = ask(desk, lambda request_view: holders_list(request_view, kind))

    roles = {each.principal.name: each.roles for each in holders if each.principal.name[0] == "p"}
    assert len(roles) == MANY
    assert {name: role_names for name, role_names in roles.items() if role_names} == {
        "p007": ("r0", "r1"),
        "p008": ("r1",),
    }
    assert statements <= STATEMENTS_MAX


def test_lists_reflect_role_changes_and_removed_users(desk: ServiceDesk) -> None:
    """Lists reflect granted, revoked and dropped roles, and removed users."""
    for role in ("r", "s"):
        make_role(desk, role)

    def known() -> dict[str, tuple[str, ...]]:
        holders = desk.run(
            desk.ctx().read(RequestScope(LAKE), lambda request_view: holders_list(request_view, Kind.USER))
        )
        return {each.principal.name: each.roles for each in holders if each.roles}

    assert known() == {}
    give(desk, "ana", "r", "s")
    assert known() == {"ana": ("r", "s")}
    give(desk, "ana", "s", gives=False)
    assert known() == {"ana": ("r",)}
    give(desk, "bob", "s")
    desk.run(role_drop(desk.ctx(), metalake=LAKE, name="r"))
    assert known() == {"bob": ("s",)}
    desk.run(principal_remove(desk.ctx(), metalake=LAKE, kind=Kind.USER, name="bob"))
    assert known() == {}


def test_owners_and_holders_see_own_roles_by_few_statements(desk: ServiceDesk) -> None:
    """The list of roles takes a few statements. Owners and holders see their own roles, also after a transfer."""
    for number in range(MANY):
        make_role(desk, f"r{number:03}", Privilege.USE_CATALOG)
    give(desk, "ana", "r001")

    def seen() -> tuple[list[str], int]:
        roles, statements = ask(desk, roles_list, "ana")
        return [role.name for role in roles], statements

    names, statements = seen()
    assert names == ["r001"]
    assert statements <= STATEMENTS_MAX
    everything, statements = ask(desk, roles_list)
    assert len(everything) == MANY
    assert statements <= STATEMENTS_MAX

    warm = desk.ctx("ana")
    desk.run(warm.read(RequestScope(LAKE), roles_list))
    desk.run(owner_set(desk.ctx(), metalake=LAKE, kind=Kind.ROLE, full_name="r002", owner_kind=Kind.USER, owner="ana"))
    assert [role.name for role in desk.run(warm.read(RequestScope(LAKE), roles_list))] == ["r001", "r002"]


@pytest.mark.parametrize("count", [3, 50, 51, MANY])
def test_roles_on_an_object_are_listed_by_few_statements(desk: ServiceDesk, count: int) -> None:
    """The visible roles on an object are listed with few statements for few and many roles."""
    for number in range(count):
        make_role(desk, f"r{number:03}", Privilege.USE_CATALOG)
    make_role(desk, "elsewhere")
    give(desk, "ana", "r001", "elsewhere")
    ((catalog,),) = desk.rows("SELECT id FROM node WHERE kind = 2")

    every, statements = ask(desk, lambda request_view: roles_on(request_view, catalog))
    mine, _ = ask(desk, lambda request_view: roles_on(request_view, catalog), "ana")

    assert every == tuple(f"r{number:03}" for number in range(count))
    assert mine == ("r001",)
    assert statements <= STATEMENTS_MAX + 2 * min(count, 50)


class CountingContext(Context):
    """A request that counts the rows of grants that each of its reads returns."""

    __slots__ = ("rows",)
    rows: list[int]

    async def look_up(self, load: Callable[[], Load[T]], *, aside: bool = False) -> T:
        """Read, and count."""
        self.rows.append(0)
        return await super().look_up(lambda: self._counted(load()), aside=aside)

    def _counted(self, load: Load[T]) -> Load[T]:
        rows: list[Row] | None = None
        while True:
            try:
                query = next(load) if rows is None else load.send(rows)
            except StopIteration as ended:
                result: T = ended.value
                return result
            rows = yield query
            if "access_grant" in query[0].text:
                self.rows[-1] += len(rows)


def counting_context(desk: ServiceDesk) -> CountingContext:
    """Return the context of a request by the admin."""
    ctx = CountingContext(desk.node.services, desk.ctx().credential, "r")
    ctx.rows = []
    return ctx


@pytest.mark.parametrize("work", ["holders", "rules"])
def test_grants_of_many_roles_are_read_once_in_parts(desk: ServiceDesk, work: str) -> None:
    """A page of a thousand users of twenty thousand with a role each reads each grant once, a thousand at a time."""
    make_role(desk, "r", Privilege.USE_CATALOG)
    desk.users("p")
    give(desk, "p", "r")
    one, role = first(desk, "SELECT id FROM principal WHERE name = 'p'"), first(desk, "SELECT id FROM role")
    multiply(desk, "principal", f"id = {one}", id=f"{FAR} + n", name=f"'p' || ({FAR} + n)")
    multiply(desk, "role", f"id = {role}", id=f"{2 * FAR} + n", name=f"'r' || ({FAR} + n)")
    multiply(desk, "role_member", f"role_id = {role}", principal_id=f"{FAR} + n", role_id=f"{2 * FAR} + n")
    multiply(desk, "access_grant", f"role_id = {role}", role_id=f"{2 * FAR} + n")
    ctx, question = counting_context(desk), AccessQuestion(LAKE, Kind.CATALOG, ("main",))

    if work == "holders":
        page = desk.run(access_holders(ctx, question, request=HoldersRequest(Action.CATALOG_LOAD, "", 1_000)))
        assert len(page.holders) == 1_000
        assert page.following is not None
    else:
        assert len(desk.run(access_rules(ctx, question, limit=100)).rules) == 100

    assert sum(ctx.rows) == MASSES + 1
    assert max(ctx.rows) <= 1_000
