# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the unit tests of services: a metalake on SQLite, without a server process and without files."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from limnos.model.kinds import Kind
from limnos.model.privileges import GrantCondition, Privilege
from limnos.services.catalog.namespaces import namespace_create
from limnos.services.iceberg.tables import table_create
from limnos.services.identity.grants import PrivilegeRequest, privileges_grant, roles_give
from limnos.services.identity.roles import role_create
from limnos.services.identity.users import principal_add
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from tests.backends import StoreLab, sqlite_copy
from tests.inprocess import ADMIN, LAKE, MAIN, Node, fill, new_table

T = TypeVar("T")


class ServiceDesk:
    """A node on a test store, with short methods for common requests."""

    def __init__(self, lab: StoreLab, *, access: bool = True, believes_basic: bool = True) -> None:
        self.lab = lab
        self.node = Node(lab.store, access=access, believes_basic=believes_basic)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a service coroutine to its end."""
        return self.lab.run(work)

    def ctx(self, user: str = ADMIN) -> Context:
        """Return the context of a user's request."""
        return self.node.ctx(user)

    def users(self, *names: str) -> None:
        """Add users."""
        for name in names:
            self.run(principal_add(self.ctx(), metalake=LAKE, kind=Kind.USER, name=name))

    def namespace(self, *levels: str, user: str = ADMIN, scope: RequestScope = MAIN) -> None:
        """Create a namespace."""
        self.run(namespace_create(self.ctx(user), scope, levels=levels, properties={}))

    def table(self, *levels: str, user: str = ADMIN, scope: RequestScope = MAIN) -> None:
        """Create a table."""
        self.run(table_create(self.ctx(user), scope, namespace=levels[:-1], request=new_table(levels[-1])))

    def allow(
        self,
        user: str,
        kind: Kind,
        full_name: str,
        *privileges: Privilege,
        condition: GrantCondition = GrantCondition.ALLOW,
    ) -> None:
        """Grant privileges through a role named after the user, created and granted on first use."""
        role = f"of {user}"
        if not self.lab.database.sql("SELECT 1 FROM role WHERE name = ? AND deleted = 0", role):
            self.run(role_create(self.ctx(), metalake=LAKE, name=role, properties={}, privilege_requests=()))
            self.run(roles_give(self.ctx(), metalake=LAKE, kind=Kind.USER, name=user, roles=(role,)))
        privilege_request = PrivilegeRequest(kind, full_name, tuple((privilege, condition) for privilege in privileges))
        self.run(privileges_grant(self.ctx(), metalake=LAKE, role=role, privilege_request=privilege_request))

    def rows(self, statement: str, *params: object) -> list[tuple[Any, ...]]:
        """Query the database."""
        return self.lab.database.sql(statement, *params)


@pytest.fixture
def file_lab(sqlite_template: Path, tmp_path: Path) -> Iterator[StoreLab]:
    """A store lab on a new SQLite file."""
    lab = StoreLab(sqlite_copy(sqlite_template, tmp_path))
    yield lab
    lab.close()


@pytest.fixture
def desk(file_lab: StoreLab) -> Iterator[ServiceDesk]:
    """A desk with a metalake, its catalog `main`, and the users ana and bob without privileges."""
    desk = ServiceDesk(file_lab)
    desk.run(fill(desk.ctx()))
    desk.users("ana", "bob")
    yield desk
    desk.node.services.files.close()
