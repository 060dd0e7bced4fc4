# SPDX-License-Identifier: Apache-2.0
"""Tables of all formats: move, drop and purge."""

from __future__ import annotations

import json

import pytest

from limnos.model.errors import AlreadyExists, BadRequest, NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.services.catalog.tables import table_drop, table_exists, table_load, table_move
from limnos.services.storage.purges import PURGE
from limnos.view.freshness_gate import COLD_READS
from tests.inprocess import MAIN
from tests.services.conftest import ServiceDesk


@pytest.fixture
def home(desk: ServiceDesk) -> ServiceDesk:
    """A desk with namespaces `a` and `b` and the table `a.t`."""
    desk.namespace("a")
    desk.namespace("b")
    desk.table("a", "t")
    return desk


def move(desk: ServiceDesk, source: str, target: str, *, user: str = "admin") -> None:
    """Move a table; names are separated by dots."""
    levels = {"source": tuple(source.split(".")), "target": tuple(target.split("."))}
    desk.run(table_move(desk.ctx(user), MAIN, **levels))


def drop(desk: ServiceDesk, *, purge: bool, user: str = "admin") -> None:
    """Drop `a.t`."""
    desk.run(table_drop(desk.ctx(user), MAIN, namespace=("a",), name="t", purge=purge))


def document(desk: ServiceDesk, namespace: str, name: str = "t") -> str:
    """Return the location of a table's metadata file."""
    loaded_table = desk.run(desk.ctx().read(MAIN, lambda request_view: table_load(request_view, (namespace,), name)))
    return loaded_table.metadata_location


def test_moved_table_keeps_its_id_and_document(home: ServiceDesk) -> None:
    """A moved table keeps its id and its document and frees its old name. A move to its current path succeeds."""
    before = document(home, "a")

    move(home, "a.t", "a.t")
    move(home, "a.t", "b.u")

    assert document(home, "b", "u") == before
    with pytest.raises(NotFound):
        home.run(home.ctx().read(MAIN, lambda request_view: table_exists(request_view, ("a",), "t")))
    home.table("a", "t")


def test_move_loads_missing_names_with_one_read(home: ServiceDesk) -> None:
    """A move of a table whose names are not in the view loads both names with one read."""
    move(home, "a.t", "a.u")
    before = COLD_READS[()]

    move(home, "a.u", "a.v")

    assert COLD_READS[()] - before == 1


def test_move_to_taken_or_invalid_path_is_refused(home: ServiceDesk) -> None:
    """A move to a taken name, or to a path without a namespace, is refused."""
    home.table("b", "t")

    with pytest.raises(AlreadyExists):
        move(home, "a.t", "b.t")
    for target in ("t", "missing.t"):
        with pytest.raises((BadRequest, NotFound)):
            move(home, "a.t", target)
    assert document(home, "a") != document(home, "b")


def test_rename_needs_fewer_privileges_than_move(home: ServiceDesk) -> None:
    """A user with MODIFY_TABLE may rename a table. A move needs ownership of the table, not only CREATE_TABLE at the
    target.
    """
    home.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.MODIFY_TABLE)

    home.allow("ana", Kind.CATALOG, "main", Privilege.CREATE_TABLE)
    move(home, "a.t", "a.u", user="ana")

    with pytest.raises(PermissionDenied):
        move(home, "a.u", "b.u", user="ana")


def test_only_drop_with_purge_creates_a_deletion_task(home: ServiceDesk) -> None:
    """Only a drop with purge creates a task. The task has the owner of the files and wakes the worker."""
    at = document(home, "a")
    drop(home, purge=False)
    assert (home.rows("SELECT count(*) FROM task"), home.node.woken) == ([(0,)], 0)
    home.table("a", "t")
    fresh = document(home, "a")

    drop(home, purge=True)

    ((kind, payload),) = home.rows("SELECT kind, payload FROM task")
    task = json.loads(payload)
    assert (kind, task["metadata-location"], home.node.woken) == (PURGE, fresh, 1)
    assert fresh != at
    assert task["location"].rpartition("/")[2] in fresh


def test_write_privileges_do_not_allow_drop(home: ServiceDesk) -> None:
    """The privileges to write a table and to create tables do not allow dropping it, with or without purge."""
    home.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA)
    home.allow("ana", Kind.CATALOG, "main", Privilege.MODIFY_TABLE, Privilege.CREATE_TABLE)

    for purge in (False, True):
        with pytest.raises(PermissionDenied):
            drop(home, purge=purge, user="ana")
    assert document(home, "a")
