# SPDX-License-Identifier: Apache-2.0
"""The request view: resolution of a scope, and answers about missing objects to callers without rights."""

from __future__ import annotations

from typing import Any

import pytest

from limnos.access.actions import Action
from limnos.model.errors import NotFound, PermissionDenied
from limnos.model.kinds import GENERIC_PROVIDER, SHARED_SPACE, Kind
from limnos.model.privileges import Privilege
from limnos.services.catalog.catalogs import catalog_alter, catalog_drop, catalog_enable
from limnos.services.identity.owners import owner_set
from limnos.services.identity.users import principal_remove
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import format_of
from tests.inprocess import LAKE, MAIN, Node, add_catalog
from tests.services.conftest import ServiceDesk


def read(desk: ServiceDesk, scope: RequestScope, what: Any, *, user: str = "admin", node: Node | None = None) -> Any:  # noqa: ANN401
    """Read through a request view."""
    return desk.run((node or desk.node).ctx(user).read(scope, what))


def test_scope_uses_the_clocks_of_all_its_zones(desk: ServiceDesk) -> None:
    """A scope needs the clocks of all parts that it names, the server's first. Objects use the clock of their zone."""
    lake, main = read(desk, MAIN, lambda request_view: (request_view.metalake.id, request_view.catalog.id))

    assert [read(desk, scope, lambda s: s.settled.zones) for scope in (RequestScope(), RequestScope(LAKE), MAIN)] == [
        (0,),
        (0, lake),
        (0, lake, main),
    ]
    kinds = (Kind.METALAKE, Kind.CATALOG, Kind.ROLE, Kind.TAG, Kind.NAMESPACE, Kind.TABLE)
    assert read(desk, MAIN, lambda s: [s.zone_of(kind) for kind in kinds]) == [0, lake, lake, lake, main, main]


@pytest.mark.parametrize("fresh", [True, False])
def test_missing_catalog_is_not_found_only_for_privileged_users(desk: ServiceDesk, fresh: bool) -> None:
    """A missing catalog is NotFound for a user who could load it. Other users get the refusal that an existing catalog
    would give.
    """
    existing, missing = MAIN, RequestScope(LAKE, "mair")
    messages = []

    for scope in (existing, missing):
        node = Node(desk.lab.open()) if fresh else desk.node
        with pytest.raises(PermissionDenied) as refused:
            read(desk, scope, lambda s: s.require(Action.NAMESPACE_LIST, s.settled.outer), user="ana", node=node)
        messages.append(str(refused.value).replace("mair", "main"))
    with pytest.raises(NotFound, match="mair"):
        read(desk, missing, lambda s: s.require(Action.NAMESPACE_LIST, s.settled.outer))

    assert messages[0] == messages[1]


@pytest.mark.parametrize("kind, name", [(Kind.NAMESPACE, ("b",)), (Kind.TABLE, ("a", "u")), (Kind.TABLE, ("b", "u"))])
def test_missing_object_is_refused_like_an_inaccessible_one(
    desk: ServiceDesk, kind: Kind, name: tuple[str, ...]
) -> None:
    """`look_up` raises NotFound for a caller who may perform the action at that path, and else the refusal for an
    existing object.
    """
    desk.namespace("a")
    desk.table("a", "t")
    action = Action.TABLE_DROP if kind is Kind.TABLE else Action.NAMESPACE_DROP

    with pytest.raises(NotFound):
        read(desk, MAIN, lambda s: s.look_up(kind, name, action))
    with pytest.raises(PermissionDenied) as refused:
        read(desk, MAIN, lambda s: s.look_up(kind, name, action), user="ana")

    assert "does not exist" not in str(refused.value)


def test_cached_decision_is_invalid_when_its_facts_change(desk: ServiceDesk) -> None:
    """A cached decision becomes invalid when its facts change: it applies neither to a former owner nor to a later user
    of the same name.
    """
    desk.namespace("a")
    desk.table("a", "t")
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA)
    give = {"metalake": LAKE, "kind": Kind.TABLE, "full_name": "main.a.t", "owner_kind": Kind.USER}

    def drops() -> bool:
        def may(request_view: RequestView) -> bool:
            node, chain = request_view.find(("a", "t"), Kind.TABLE)
            assert node is not None
            return request_view.decide(Action.TABLE_DROP, chain).allowed

        is_allowed: bool = read(desk, MAIN, may, user="ana")
        return is_allowed

    seen = [drops()]
    for owner in ("ana", "admin", "ana"):
        desk.run(owner_set(desk.ctx(), owner=owner, **give))  # type: ignore[arg-type]
        seen.append(drops())
    desk.run(principal_remove(desk.ctx(), metalake=LAKE, kind=Kind.USER, name="ana"))
    desk.users("ana")
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA)
    seen.append(drops())

    assert seen == [False, True, False, True, False]


def test_permit_needs_an_allowed_decision(desk: ServiceDesk) -> None:
    """A permit can be made only from allowed decisions, and needs at least one."""

    def permit(request_view: RequestView) -> object:
        return request_view.permit("command", request_view.decide(Action.CATALOG_DROP, request_view.settled.outer))

    assert read(desk, MAIN, permit)
    with pytest.raises(PermissionDenied):
        read(desk, MAIN, permit, user="ana")
    with pytest.raises(PermissionDenied):
        read(desk, MAIN, lambda s: s.permit("command"))


def test_catalog_traits_are_recomputed_after_a_change(desk: ServiceDesk) -> None:
    """Values derived from a catalog are computed once per state of the catalog. A change applies at the next request on
    every node.
    """
    other = Node(desk.lab.open())
    before = [read(desk, MAIN, lambda s: s.traits, node=node) for node in (desk.node, desk.node, other)]
    desk.namespace("a")  # a change in the catalog, not of the catalog itself

    same = read(desk, MAIN, lambda s: s.traits)
    desk.run(catalog_alter(desk.ctx(), metalake=LAKE, name="main", edits=PropertyEdits(sets={"team": "blue"})))
    after = [read(desk, MAIN, lambda s: s.traits, node=node) for node in (desk.node, other)]

    assert same is before[0] is before[1]
    assert [each.record.properties.get("team") for each in (*before, *after)] == [None, None, None, "blue", "blue"]


def test_new_catalog_of_the_same_name_has_its_own_traits(desk: ServiceDesk) -> None:
    """A new catalog with another provider under the same name has its own derived values, also on nodes that cached
    those of the first catalog.
    """
    first = read(desk, MAIN, lambda s: (s.space(Kind.VIEW), format_of(s), s.zone))

    desk.run(catalog_enable(desk.ctx(), metalake=LAKE, name="main", in_use=False))
    desk.run(catalog_drop(desk.ctx(), metalake=LAKE, name="main", force=False))
    desk.run(add_catalog(desk.ctx(), "main", provider=GENERIC_PROVIDER))
    second = read(desk, MAIN, lambda s: (s.space(Kind.VIEW), format_of(s), s.zone))

    assert (first[:2], second[:2]) == (("table", "iceberg"), (SHARED_SPACE, "lance"))
    assert first[2] != second[2]


def test_reading_traits_without_a_catalog_raises(desk: ServiceDesk) -> None:
    """If a scope names no catalog, or a missing one, reading values derived from the catalog raises an error."""
    for scope in (RequestScope(LAKE), RequestScope(LAKE, "mair")):
        with pytest.raises(NotFound):
            read(desk, scope, lambda s: s.traits)
        with pytest.raises(NotFound):
            read(desk, scope, lambda s: s.space(Kind.TABLE))
        assert read(desk, RequestScope(LAKE), lambda s: s.space(Kind.TAG)) == "tag"
