# SPDX-License-Identifier: Apache-2.0
"""Catalogs: supported providers, conditions of a drop, and required privileges."""

from __future__ import annotations

import pytest

from limnos.model.errors import AlreadyExists, BadRequest, InUse, LimnosError, NotEmpty, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.services.catalog.catalog_checks import catalog_test
from limnos.services.catalog.catalogs import catalog_alter, catalog_create, catalog_drop, catalog_enable
from limnos.services.request.property_edits import PropertyEdits
from tests.inprocess import LAKE, add_catalog
from tests.services.conftest import ServiceDesk


@pytest.mark.parametrize(
    "catalog_type, provider", [("RELATIONAL", "jdbc-doris"), ("messaging", "lakehouse-iceberg"), ("RELATIONAL", "")]
)
def test_unknown_provider_or_mismatched_type_is_refused(desk: ServiceDesk, catalog_type: str, provider: str) -> None:
    """An unknown provider, or a catalog type that does not match the provider, is refused before access is checked."""
    with pytest.raises(BadRequest):
        desk.run(
            catalog_create(
                desk.ctx("ana"),
                metalake=LAKE,
                name="c",
                catalog_type=catalog_type,
                provider=provider,
                comment=None,
                properties={},
            )
        )


def test_drop_needs_a_disabled_and_empty_catalog(desk: ServiceDesk) -> None:
    """A drop is refused while the catalog is enabled or has namespaces. A forced drop succeeds and frees the name."""
    desk.namespace("a")
    with pytest.raises(InUse):
        desk.run(catalog_drop(desk.ctx(), metalake=LAKE, name="main", force=False))
    desk.run(catalog_enable(desk.ctx(), metalake=LAKE, name="main", in_use=False))
    with pytest.raises(NotEmpty):
        desk.run(catalog_drop(desk.ctx(), metalake=LAKE, name="main", force=False))

    desk.run(catalog_drop(desk.ctx(), metalake=LAKE, name="main", force=True))

    desk.run(add_catalog(desk.ctx(), "main"))
    desk.namespace("a")


def test_use_catalog_does_not_allow_alter_or_drop(desk: ServiceDesk) -> None:
    """A user with USE_CATALOG may not alter, drop, enable or disable a catalog. The creator of a catalog owns it."""
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG)
    desk.allow("bob", Kind.METALAKE, LAKE, Privilege.CREATE_CATALOG)

    for work in (
        catalog_enable(desk.ctx("ana"), metalake=LAKE, name="main", in_use=False),
        catalog_enable(desk.ctx("ana"), metalake=LAKE, name="main", in_use=True),
        catalog_alter(desk.ctx("ana"), metalake=LAKE, name="main", edits=PropertyEdits(comment="c")),
        catalog_drop(desk.ctx("ana"), metalake=LAKE, name="main", force=True),
    ):
        with pytest.raises(PermissionDenied):
            desk.run(work)
    desk.run(add_catalog(desk.ctx("bob"), "his"))
    desk.run(catalog_alter(desk.ctx("bob"), metalake=LAKE, name="his", edits=PropertyEdits(name="hers")))


def test_taken_name_is_refused(desk: ServiceDesk) -> None:
    """A taken name is refused for a create, a connection test and a rename; names are case-sensitive."""
    desk.run(add_catalog(desk.ctx(), "Main"))
    with pytest.raises(AlreadyExists):
        desk.run(add_catalog(desk.ctx(), "main"))
    with pytest.raises(AlreadyExists):
        desk.run(
            catalog_test(
                desk.ctx(), metalake=LAKE, name="main", catalog_type=None, provider="lakehouse-iceberg", properties={}
            )
        )
    with pytest.raises(AlreadyExists):
        desk.run(catalog_alter(desk.ctx(), metalake=LAKE, name="Main", edits=PropertyEdits(name="main")))


def test_disabled_catalog_refuses_creates_and_changes(desk: ServiceDesk) -> None:
    """A disabled catalog refuses to create objects in it and to change its properties."""
    desk.run(catalog_enable(desk.ctx(), metalake=LAKE, name="main", in_use=False))

    with pytest.raises(LimnosError, match="disabled"):
        desk.namespace("a")
    with pytest.raises(LimnosError, match="disabled"):
        desk.run(catalog_alter(desk.ctx(), metalake=LAKE, name="main", edits=PropertyEdits(comment="c")))


def test_setting_lets_users_of_a_catalog_disable_it(desk: ServiceDesk) -> None:
    """With `access.catalog_enable = users`, Gravitino's rule, a user with USE_CATALOG may disable a catalog."""
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG)
    desk.allow("bob", Kind.METALAKE, LAKE, Privilege.CREATE_CATALOG)
    desk.node.services.rules = desk.node.services.rules._replace(users_enable_catalogs=True)

    with pytest.raises(PermissionDenied):
        desk.run(catalog_enable(desk.ctx("bob"), metalake=LAKE, name="main", in_use=False))
    node = desk.run(catalog_enable(desk.ctx("ana"), metalake=LAKE, name="main", in_use=False))
    assert not node.record.in_use  # type: ignore[union-attr]
