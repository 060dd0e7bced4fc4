# SPDX-License-Identifier: Apache-2.0
"""Names of new users, groups and roles: every request that creates one checks its name."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from limnos.access.authentication import Authenticator
from limnos.model.errors import AlreadyExists, AuthenticationFailed, BadRequest
from limnos.model.kinds import Kind
from limnos.model.permits import upkeep_permit
from limnos.services.catalog.metalakes import metalake_create
from limnos.services.identity.issuer import ISSUER
from limnos.services.identity.issuer_sign_in import sign_in
from limnos.services.identity.logins import password_set
from limnos.services.identity.roles import role_create
from limnos.services.identity.service_accounts import secret_create
from limnos.services.identity.tokens import token_create
from limnos.services.identity.users import principal_add
from limnos.services.lookup.principal_names import invalid_names
from limnos.services.request.context import Context
from tests.backends import StoreLab
from tests.inprocess import ADMIN, LAKE
from tests.services.conftest import ServiceDesk
from tests.services.identity.test_issuer_sign_in import FakeIssuer

DOUBLE = "admin\u200b"
"""Looks like `admin`, but has a zero-width space at its end."""


Door = Callable[[Context, str], Coroutine[Any, Any, object]]
DOORS: dict[str, Door] = {
    "user": lambda ctx, name: principal_add(ctx, metalake=LAKE, kind=Kind.USER, name=name),
    "group": lambda ctx, name: principal_add(ctx, metalake=LAKE, kind=Kind.GROUP, name=name),
    "role": lambda ctx, name: role_create(ctx, metalake=LAKE, name=name, properties={}, privilege_requests=()),
    "secret": lambda ctx, name: secret_create(ctx, user=name, expires_in_s=None),
    "password": lambda ctx, name: password_set(ctx, user=name, password="correct horse battery", old=None, address="x"),
}


@pytest.mark.parametrize("creator", DOORS)
def test_every_creation_of_a_principal_refuses_deceptive_names(desk: ServiceDesk, creator: str) -> None:
    """Every request that creates a principal refuses a deceptive name, and nothing of the request is stored."""
    with pytest.raises(BadRequest, match=r"U\+200B"):
        desk.run(DOORS[creator](desk.ctx(), DOUBLE))

    assert [tables(desk, name) for name in (DOUBLE, "admin")] == [[0, 0, 0, 0], [1, 0, 0, 0]]


def tables(desk: ServiceDesk, name: str) -> list[int]:
    """Return the number of rows with a name in the tables of users, groups, roles, tokens and passwords."""
    name_columns = [("principal", "name"), ("role", "name"), ("token", "user_name"), ("password", "user_name")]
    return [desk.rows(f"SELECT count(*) FROM {table} WHERE {column} = ?", name)[0][0] for table, column in name_columns]


@pytest.mark.parametrize("creator", ["user", "group", "role"])
def test_every_creation_of_a_principal_refuses_lookalike_names(desk: ServiceDesk, creator: str) -> None:
    """Every request that creates a principal refuses a name that looks like that of an existing user, group or role."""
    desk.run(DOORS[creator](desk.ctx(), "scope"))

    with pytest.raises(BadRequest, match="looks like scope"):
        desk.run(DOORS[creator](desk.ctx(), "\u0455\u0441\u043e\u0440\u0435"))


def test_name_that_looks_like_a_service_admins_is_refused(desk: ServiceDesk) -> None:
    """A name of a user or group that looks like a service admin's name is refused, whether or not the metalake has that
    service admin as a user.
    """
    desk.run(DOORS["role"](desk.ctx(), "adm\u0131n"))  # no role is called admin

    with pytest.raises(BadRequest, match="looks like admin"):
        desk.run(DOORS["group"](desk.ctx(), "adm\u0131n"))


@pytest.mark.parametrize("user", [DOUBLE, "\u0430dmin", "adm\u0131n"])
def test_issuer_token_with_deceptive_user_name_is_refused(desk: ServiceDesk, user: str) -> None:
    """A token of an issuer with a deceptive user name is refused, and no metalake has the user afterwards."""
    desk.node.services.authenticator = Authenticator(believes_basic=True, has_issuer=True)
    ISSUER.put(desk.node.services, FakeIssuer())

    with pytest.raises(AuthenticationFailed, match="has an invalid user name"):
        desk.run(sign_in(desk.node.services, bearer(user), request_id="r"))
    assert desk.rows("SELECT count(*) FROM principal WHERE name = ?", user) == [(0,)]


def bearer(user: str) -> bytes:
    """Return a token of `FakeIssuer`, with escapes for characters beyond ASCII."""
    return f"Bearer {user.encode('unicode_escape').decode()}../10/-".encode()


def stored(desk: ServiceDesk, name: str) -> None:
    """Rename user ana in the store to a name that is refused today and that an older release accepted."""
    desk.lab.database.sql("UPDATE principal SET name = ? WHERE name = 'ana'", name)


def test_user_with_stored_deceptive_name_can_still_sign_in(desk: ServiceDesk) -> None:
    """A user whose stored name would be refused today can sign in and get tokens, secrets and roles. Adding the user
    again is AlreadyExists.
    """
    stored(desk, DOUBLE)
    desk.node.services.authenticator = Authenticator(believes_basic=True, has_issuer=True)
    ISSUER.put(desk.node.services, FakeIssuer())

    assert desk.run(sign_in(desk.node.services, bearer(DOUBLE), request_id="r")).user == DOUBLE
    assert desk.run(token_create(desk.ctx(), user=DOUBLE, name="x", expires_in_s=60))[0].user == DOUBLE
    assert desk.run(DOORS["secret"](desk.ctx(), DOUBLE))
    with pytest.raises(AlreadyExists):
        desk.run(DOORS["user"](desk.ctx(), DOUBLE))


def test_deceptive_stored_names_are_listed_with_reasons(desk: ServiceDesk) -> None:
    """The list of deceptive stored names has metalake, kind and reason of each, without the names of the settings'
    service admins.
    """
    stored(desk, DOUBLE)
    desk.lab.database.sql("UPDATE principal SET name = ? WHERE name = 'bob'", "adm\u0131n")

    async def list_invalid_names(*admins: str) -> list[tuple[Kind, str, str]]:
        problems = await desk.node.store.submit(upkeep_permit("test"), lambda tx: invalid_names(tx, admins=admins))
        return [(each.kind, each.name, each.problem[:20]) for each in problems if each.metalake == LAKE]

    assert desk.run(list_invalid_names(ADMIN)) == [
        (Kind.USER, DOUBLE, "U+200B is not allowe"),
        (Kind.USER, "adm\u0131n", "it looks like admin"),
    ]
    assert desk.run(list_invalid_names(ADMIN, DOUBLE, "adm\u0131n")) == []


def test_lookalike_user_cannot_create_with_access_control_off(file_lab: StoreLab) -> None:
    """With access control off, an unauthenticated user whose name looks like another user's can create neither
    metalakes nor tokens.
    """
    desk = ServiceDesk(file_lab, access=False)

    with pytest.raises(BadRequest, match=r"U\+200B"):
        desk.run(metalake_create(desk.ctx(DOUBLE), name="other", comment=None, properties={}))
    for user in (None, DOUBLE):
        with pytest.raises(BadRequest, match=r"U\+200B"):
            desk.run(token_create(desk.ctx(DOUBLE if user is None else "ana"), user=user, name="x", expires_in_s=60))
