# SPDX-License-Identifier: Apache-2.0
"""Admission of long bodies: a request view decides which callers' bodies are read, before the body is known."""

from __future__ import annotations

import pytest

from limnos.access.actions import Action
from limnos.model.errors import PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.names.path import Levels
from limnos.services.request.admission import require_possible_access
from limnos.services.request.request_scope import RequestScope
from tests.inprocess import MAIN
from tests.services.conftest import ServiceDesk


def ask(desk: ServiceDesk, user: str, *actions: Action, name: Levels = (), scope: RequestScope = MAIN) -> None:
    """Decide on the admission of a user; with a name, on a table."""
    kind = Kind.TABLE if name else None
    desk.run(
        desk.ctx(user).read(
            scope, lambda request_view: require_possible_access(request_view, actions, kind=kind, name=name)
        )
    )


def test_user_without_privileges_is_refused(desk: ServiceDesk) -> None:
    """The refusal of a user without privileges names the first action, and is the same for existing and missing
    tables.
    """
    desk.namespace("a")
    desk.table("a", "t")
    messages = []

    for name in (("a", "t"), ("a", "u")):
        with pytest.raises(PermissionDenied) as refused:
            ask(desk, "ana", Action.TABLE_COMMIT, Action.TABLE_CREATE, name=name)
        messages.append(str(refused.value).replace("a.u", "a.t"))

    assert messages[0] == messages[1]
    assert "table_commit" in messages[0]


def test_user_with_any_of_the_actions_is_admitted(desk: ServiceDesk) -> None:
    """A user who may perform the second action is admitted, also by a privilege on another object."""
    desk.namespace("a")
    desk.namespace("b")
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA)
    with pytest.raises(PermissionDenied):
        ask(desk, "ana", Action.TABLE_COMMIT, Action.TABLE_CREATE, name=("a", "t"))

    desk.allow("ana", Kind.NAMESPACE, "main.b", Privilege.CREATE_TABLE)

    ask(desk, "ana", Action.TABLE_COMMIT, Action.TABLE_CREATE, name=("a", "t"))
    with pytest.raises(PermissionDenied):
        ask(desk, "ana", Action.TABLE_COMMIT, name=("a", "t"))


def test_owners_are_admitted(desk: ServiceDesk) -> None:
    """The owner of the container is admitted."""
    desk.namespace("a")
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.CREATE_SCHEMA, Privilege.USE_SCHEMA)
    desk.namespace("mine", user="ana")

    ask(desk, "ana", Action.TABLE_COMMIT, name=("mine", "t"))
    with pytest.raises(PermissionDenied):
        ask(desk, "ana", Action.TABLE_COMMIT, name=("a", "t"))


def test_access_off_admits_everybody(file_lab: object) -> None:
    """With access control off, everybody is admitted."""
    from tests.inprocess import fill

    desk = ServiceDesk(file_lab, access=False)  # type: ignore[arg-type]
    desk.run(fill(desk.ctx()))

    ask(desk, "eve", Action.TABLE_COMMIT, name=("a", "t"))
