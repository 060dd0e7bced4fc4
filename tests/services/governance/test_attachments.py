# SPDX-License-Identifier: Apache-2.0
"""Tags: nodes of the metalake with owners, grants and explanations like other objects; objects inherit the tags of
their ancestors.
"""

from __future__ import annotations

import pytest

from limnos.access.actions import Action
from limnos.model.errors import AlreadyExists, IllegalObject, NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.model.records import TagRecord
from limnos.services.catalog.tables import table_drop
from limnos.services.governance.attachments import (
    AttachedObject,
    attached_objects_list,
    attachment_load,
    attachments_associate,
    attachments_list,
)
from limnos.services.identity.explain import access_explain
from limnos.services.identity.owners import owner_load, owner_set
from limnos.services.lookup.metalake_objects import (
    metalake_object_alter,
    metalake_object_create,
    metalake_object_drop,
    metalake_object_load,
    metalake_objects_list,
)
from limnos.services.lookup.securables import AttachmentTarget
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_scope import RequestScope
from tests.inprocess import ADMIN, LAKE, MAIN, add_catalog
from tests.services.conftest import ServiceDesk


def make(desk: ServiceDesk, *names: str, user: str = ADMIN) -> None:
    """Create tags."""
    for name in names:
        desk.run(
            metalake_object_create(
                desk.ctx(user), metalake=LAKE, kind=Kind.TAG, name=name, record=TagRecord(comment=None, properties={})
            )
        )


def put(
    desk: ServiceDesk, kind: Kind, full_name: str, *names: str, user: str = ADMIN, removes: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Attach tags to an object, and detach others."""
    return desk.run(
        attachments_associate(
            desk.ctx(user), AttachmentTarget(LAKE, kind, full_name), kind=Kind.TAG, adds=names, removes=removes
        )
    )


def on(desk: ServiceDesk, kind: Kind, full_name: str, user: str = ADMIN) -> list[tuple[str, bool]]:
    """Return the tags of an object, and whether each is inherited."""
    attachments = desk.run(attachments_list(desk.ctx(user), AttachmentTarget(LAKE, kind, full_name), kind=Kind.TAG))
    return [(each.node.name, each.inherited) for each in attachments]


def listed(desk: ServiceDesk, user: str = ADMIN) -> list[str]:
    """Return the names of the tags that a user sees."""
    return [
        tag.name
        for tag in desk.run(
            desk.ctx(user).read(RequestScope(LAKE), lambda request_view: metalake_objects_list(request_view, Kind.TAG))
        )
    ]


def test_objects_inherit_tags_of_their_ancestors(desk: ServiceDesk) -> None:
    """An object lists its own tags first, then those of its ancestors, each once. Siblings do not inherit its tags."""
    desk.namespace("a", "b")
    desk.table("a", "b", "t")
    desk.table("a", "u")
    make(desk, "c", "s", "d", "own")
    put(desk, Kind.CATALOG, "main", "c")
    put(desk, Kind.NAMESPACE, "main.a", "s", "c")
    put(desk, Kind.NAMESPACE, "main.a:b", "d")
    names = put(desk, Kind.TABLE, "main.a:b.t", "own", "s")

    assert names == ("own", "s")
    assert on(desk, Kind.TABLE, "main.a:b.t") == [("s", False), ("own", False), ("d", True), ("c", True)]
    assert on(desk, Kind.TABLE, "main.a.u") == [("c", True), ("s", True)]
    assert on(desk, Kind.CATALOG, "main") == [("c", False)]
    attachment = desk.run(
        attachment_load(desk.ctx(), AttachmentTarget(LAKE, Kind.TABLE, "main.a.u"), kind=Kind.TAG, name="c")
    )
    assert attachment.inherited
    with pytest.raises(NotFound, match="is not on table"):
        desk.run(attachment_load(desk.ctx(), AttachmentTarget(LAKE, Kind.TABLE, "main.a.u"), kind=Kind.TAG, name="own"))


def test_objects_of_a_tag_are_listed_by_path_and_catalog(desk: ServiceDesk) -> None:
    """The objects of a tag are listed by path and catalog, without dropped objects and without those that the caller
    may not see.
    """
    desk.run(add_catalog(desk.ctx(), "side"))
    for scope in (MAIN, RequestScope(LAKE, "side")):
        desk.namespace("a", scope=scope)
        desk.table("a", "t", scope=scope)
    make(desk, "red")
    for kind, name in ((Kind.TABLE, "side.a.t"), (Kind.CATALOG, "main"), (Kind.TABLE, "main.a.t")):
        put(desk, kind, name, "red")
    desk.allow("ana", Kind.METALAKE, LAKE, Privilege.APPLY_TAG)
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG)
    everything = desk.run(attached_objects_list(desk.ctx(), metalake=LAKE, kind=Kind.TAG, name="red"))
    hers = desk.run(attached_objects_list(desk.ctx("ana"), metalake=LAKE, kind=Kind.TAG, name="red"))
    desk.run(table_drop(desk.ctx(), MAIN, namespace=("a",), name="t", purge=False))
    left = desk.run(attached_objects_list(desk.ctx(), metalake=LAKE, kind=Kind.TAG, name="red"))

    main, table, side = (
        AttachedObject(Kind.CATALOG, ("main",)),
        *(AttachedObject(Kind.TABLE, (c, "a", "t")) for c in ("main", "side")),
    )
    assert everything == [main, table, side]
    assert hers == [main]
    assert left == [main, side]


def test_apply_tag_allows_attaching_but_not_changing(desk: ServiceDesk) -> None:
    """A user with APPLY_TAG on one tag sees only that tag. The user may attach it to visible objects, but may not
    change it.
    """
    desk.namespace("a")
    make(desk, "red", "blue")
    desk.allow("ana", Kind.TAG, "red", Privilege.APPLY_TAG)
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA)
    put(desk, Kind.NAMESPACE, "main.a", "blue")

    assert listed(desk, "ana") == ["red"]
    assert listed(desk, "bob") == []
    assert put(desk, Kind.NAMESPACE, "main.a", "red", user="ana") == ("red",)
    assert on(desk, Kind.NAMESPACE, "main.a", "ana") == [("red", False)]
    with pytest.raises(PermissionDenied):
        put(desk, Kind.NAMESPACE, "main.a", user="ana", removes=("blue",))
    with pytest.raises(PermissionDenied):
        desk.run(metalake_object_drop(desk.ctx("ana"), metalake=LAKE, kind=Kind.TAG, name="red"))
    with pytest.raises(PermissionDenied):
        put(desk, Kind.NAMESPACE, "main.a", "red", user="bob")


def test_tag_owner_may_alter_it_and_right_is_explained(desk: ServiceDesk) -> None:
    """A tag has an owner, who may alter and drop it. The explanation of the right to load it names the role and the
    ownership.
    """
    desk.allow("ana", Kind.METALAKE, LAKE, Privilege.CREATE_TAG)
    make(desk, "hers", user="ana")
    owner = desk.run(owner_load(desk.ctx("ana"), metalake=LAKE, kind=Kind.TAG, full_name="hers"))
    decisions = {
        user: desk.run(
            access_explain(desk.ctx(), metalake=LAKE, user=user, action=Action.TAG_LOAD, kind=None, path=("hers",))
        )[0].allowed
        for user in ("ana", "bob")
    }
    desk.run(owner_set(desk.ctx(), metalake=LAKE, kind=Kind.TAG, full_name="hers", owner_kind=Kind.USER, owner="bob"))

    assert owner is not None
    assert owner.name == "ana"
    assert decisions == {"ana": True, "bob": False}
    with pytest.raises(PermissionDenied):
        desk.run(
            metalake_object_alter(
                desk.ctx("ana"), metalake=LAKE, kind=Kind.TAG, name="hers", edits=PropertyEdits(name="his")
            )
        )
    assert (
        desk.run(
            metalake_object_alter(
                desk.ctx("bob"), metalake=LAKE, kind=Kind.TAG, name="hers", edits=PropertyEdits(name="his")
            )
        ).name
        == "his"
    )
    assert listed(desk, "bob") == ["his"]


def test_renamed_tag_keeps_attachments_and_recreated_has_none(desk: ServiceDesk) -> None:
    """Attachments belong to a tag's id: a renamed tag keeps them, a tag created again has none."""
    make(desk, "red")
    put(desk, Kind.CATALOG, "main", "red")
    desk.run(
        metalake_object_alter(desk.ctx(), metalake=LAKE, kind=Kind.TAG, name="red", edits=PropertyEdits(name="rot"))
    )
    renamed = on(desk, Kind.CATALOG, "main")
    desk.run(metalake_object_drop(desk.ctx(), metalake=LAKE, kind=Kind.TAG, name="rot"))
    make(desk, "rot")

    assert renamed == [("rot", False)]
    assert on(desk, Kind.CATALOG, "main") == []


def test_association_is_all_or_nothing(desk: ServiceDesk) -> None:
    """If one tag is missing or already attached, nothing is changed. A tag that is both added and removed in one
    request is ignored.
    """
    make(desk, "red", "blue")
    put(desk, Kind.CATALOG, "main", "red")
    with pytest.raises(AlreadyExists, match="Tag red is on catalog main already"):
        put(desk, Kind.CATALOG, "main", "blue", "red")
    with pytest.raises(NotFound, match="Tag gone does not exist"):
        put(desk, Kind.CATALOG, "main", "blue", "gone")

    assert on(desk, Kind.CATALOG, "main") == [("red", False)]
    assert put(desk, Kind.CATALOG, "main", "red", "blue", removes=("red",)) == ("blue", "red")


def test_invalid_names_and_untaggable_objects_are_refused(desk: ServiceDesk) -> None:
    """A taken name, an invalid name, and an object that cannot have tags are refused with different errors."""
    make(desk, "red", "blue")

    with pytest.raises(AlreadyExists, match="Tag red already exists"):
        make(desk, "red")
    with pytest.raises(AlreadyExists, match="Tag blue already exists"):
        desk.run(
            metalake_object_alter(
                desk.ctx(), metalake=LAKE, kind=Kind.TAG, name="red", edits=PropertyEdits(name="blue")
            )
        )
    with pytest.raises(NotFound, match="Tag gone does not exist in metalake lake"):
        desk.run(
            desk.ctx().read(
                RequestScope(LAKE), lambda request_view: metalake_object_load(request_view, Kind.TAG, name="gone")
            )
        )
    with pytest.raises(IllegalObject, match="A metalake cannot have tags"):
        put(desk, Kind.METALAKE, LAKE, "red")
