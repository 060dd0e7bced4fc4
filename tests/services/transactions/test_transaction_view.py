# SPDX-License-Identifier: Apache-2.0
"""The request view within a transaction, after its earlier operations: taken and freed names, ancestors of moved
objects, owners of created objects.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable

from limnos.access.actions import Action
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.services.request import request_view as request_view_module
from limnos.services.request.request_view import RequestView
from limnos.services.transactions.transaction_view import TransactionView, is_new
from tests.inprocess import MAIN
from tests.services.conftest import ServiceDesk

READ_NAMES = {"name_key", "node_key", "owner_key"}
"""Kinds of facts that an operation may change for later operations."""


def looked(desk: ServiceDesk, story: Callable[[TransactionView], None], user: str = "admin") -> None:
    """Return a transaction view that has the effects of operations."""
    desk.run(desk.ctx(user).read(MAIN, lambda request_view: story(TransactionView(request_view))))


def test_all_reading_methods_are_overridden() -> None:
    """The transaction view overrides every method that reads names, nodes or owners, so that the effects of earlier
    operations are visible.
    """
    body = ast.parse(inspect.getsource(request_view_module))
    (view_class,) = [node for node in body.body if isinstance(node, ast.ClassDef) and node.name == "RequestView"]
    reading = {
        method.name
        for method in view_class.body
        if isinstance(method, ast.FunctionDef)
        and any(isinstance(word, ast.Name) and word.id in READ_NAMES for word in ast.walk(method))
    }

    assert (
        reading - {"_walk", "want_owners"} <= vars(TransactionView).keys()
    )  # find walks by itself, and decisions read again


def test_new_object_under_a_moved_objects_old_name_is_distinct(desk: ServiceDesk) -> None:
    """A moved object has its new name and ancestors, its old name is free, and a new object under the old name is a
    different one.
    """
    desk.namespace("a")
    desk.namespace("b")
    desk.table("a", "t")

    def story(request_view: TransactionView) -> None:
        node, _ = request_view.find(("a", "t"), Kind.TABLE)
        into, _ = request_view.find(("b",), Kind.NAMESPACE)
        assert node is not None
        assert into is not None
        request_view.note_moved(node, parent_id=into.id, name="u")
        assert request_view.find(("a", "t"), Kind.TABLE)[0] is None
        assert request_view.holder_of(node.parent_id, Kind.TABLE, "t") is None
        assert not request_view.is_taken(node.parent_id, Kind.TABLE, "t")
        moved_table, chain = request_view.find(("b", "u"), Kind.TABLE)
        assert moved_table is not None
        assert (moved_table.id, moved_table.parent_id, moved_table.name) == (node.id, into.id, "u")
        assert [link.name for link in chain] == ["u", "b", "main", "lake"]
        new_table = request_view.note_made(Kind.TABLE, parent_id=node.parent_id, name="t")
        assert is_new(new_table.id)
        assert request_view.find(("a", "t"), Kind.TABLE)[0] == new_table
        assert request_view.holder_of(node.parent_id, Kind.VIEW, "t") is Kind.TABLE
        request_view.note_dropped(new_table)
        assert request_view.find(("a", "t"), Kind.TABLE)[0] is None

    looked(desk, story)


def test_objects_of_a_moved_namespace_have_its_new_name(desk: ServiceDesk) -> None:
    """Objects in a moved namespace are found only below its new name."""
    for levels in (("a",), ("a", "b"), ("c",)):
        desk.namespace(*levels)
    desk.table("a", "b", "t")

    def story(request_view: TransactionView) -> None:
        node, _ = request_view.find(("a",), Kind.NAMESPACE)
        into, _ = request_view.find(("c",), Kind.NAMESPACE)
        assert node is not None
        assert into is not None
        request_view.note_moved(node, parent_id=into.id, name="x")
        assert request_view.find(("c", "x", "b", "t"), Kind.TABLE)[0] is not None
        assert request_view.find(("a", "b", "t"), Kind.TABLE)[0] is None

    looked(desk, story)


def test_moved_objects_have_the_privileges_of_the_new_namespace(desk: ServiceDesk) -> None:
    """Privileges on a namespace apply to objects moved into it and end for those moved out of it. Created objects
    belong to the caller.
    """
    for name in ("mine", "theirs"):
        desk.namespace(name)
        desk.table(name, "t")
    desk.allow("bob", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA)
    desk.allow("bob", Kind.NAMESPACE, "main.mine", Privilege.MODIFY_TABLE, Privilege.CREATE_TABLE)

    def story(request_view: TransactionView) -> None:
        def may(*levels: str) -> bool:
            return request_view.decide(Action.TABLE_COMMIT, request_view.find(levels, Kind.TABLE)[1]).allowed

        assert (may("mine", "t"), may("theirs", "t")) == (True, False)
        mine, theirs = (request_view.find((name,), Kind.NAMESPACE)[0] for name in ("mine", "theirs"))
        tables = [request_view.find((name, "t"), Kind.TABLE)[0] for name in ("mine", "theirs")]
        assert mine is not None
        assert theirs is not None
        assert tables[0] is not None
        assert tables[1] is not None
        request_view.note_moved(tables[0], parent_id=theirs.id, name="u")
        request_view.note_moved(tables[1], parent_id=mine.id, name="u")
        assert (may("theirs", "u"), may("mine", "u")) == (False, True)
        request_view.note_made(Kind.TABLE, parent_id=theirs.id, name="own")
        assert may("theirs", "own")

    looked(desk, story, "bob")


def test_effects_do_not_change_other_views(desk: ServiceDesk) -> None:
    """Effects that are recorded in one transaction view change neither the node's view nor other request views."""
    desk.namespace("a")
    desk.table("a", "t")

    def story(request_view: TransactionView) -> None:
        node, _ = request_view.find(("a", "t"), Kind.TABLE)
        assert node is not None
        request_view.note_dropped(node)
        request_view.decide(Action.TABLE_COMMIT, request_view.find(("a", "t"), Kind.TABLE)[1])

    looked(desk, story)

    def other(request_view: RequestView) -> bool:
        return request_view.find(("a", "t"), Kind.TABLE)[0] is not None

    assert desk.run(desk.ctx().read(MAIN, other))
