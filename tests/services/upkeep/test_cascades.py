# SPDX-License-Identifier: Apache-2.0
"""Dropping a schema with its content: each object is dropped as by its own request, or nothing is dropped."""

from __future__ import annotations

import pytest

from limnos.model.errors import BadRequest, NotFound, PermissionDenied, ProtectedObject
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.services.catalog.catalogs import catalog_create
from limnos.services.catalog.filesets import FilesetRequest, fileset_create
from limnos.services.catalog.protection import protection_set
from limnos.services.identity.owners import owner_set
from limnos.services.request.request_scope import RequestScope
from limnos.services.upkeep import cascades
from limnos.services.upkeep.cascades import namespace_drop_all
from tests.inprocess import LAKE, MAIN
from tests.services.conftest import ServiceDesk

FILES = RequestScope(LAKE, "files")


@pytest.fixture
def filled(desk: ServiceDesk) -> ServiceDesk:
    """A desk with a catalog of filesets, of which two are in the schema `raw` and one is in `other`."""
    desk.run(
        catalog_create(
            desk.ctx(), metalake=LAKE, name="files", catalog_type="FILESET", provider=None, comment=None, properties={}
        )
    )
    for schema, name in (("raw", "f"), ("raw", "g"), ("other", "f")):
        if name == "f":
            desk.namespace(schema, scope=FILES)
        request = FilesetRequest(None, external=False, locations={}, properties={})
        desk.run(fileset_create(desk.ctx(), FILES, path=(schema, name), request=request))
    return desk


def drop(desk: ServiceDesk, *levels: str, user: str = "admin", scope: RequestScope = FILES) -> None:
    """Drop a schema with its content."""
    desk.run(namespace_drop_all(desk.ctx(user), scope, levels=levels))


def alive(desk: ServiceDesk) -> list[str]:
    """Return the names of existing filesets and namespaces."""
    rows = desk.rows(
        "SELECT name FROM node WHERE deleted = 0 AND kind IN (?, ?)", int(Kind.FILESET), int(Kind.NAMESPACE)
    )
    return sorted(name for (name,) in rows)


def test_cascade_moves_each_object_to_the_trash_and_the_feed(filled: ServiceDesk) -> None:
    """Files are deleted when the trash is emptied, the feed has a drop of each object, and other schemas are not
    touched.
    """
    drop(filled, "raw")

    assert alive(filled) == ["f", "other"]
    trash = filled.rows("SELECT n.name, t.purges FROM trash t JOIN node n ON n.id = t.node_id ORDER BY n.name")
    assert [(name, bool(purges)) for name, purges in trash] == [("f", True), ("g", True), ("raw", False)]
    drop_rows = filled.rows("SELECT old_name FROM change WHERE operation = 'drop' ORDER BY revision, ordinal")
    assert sorted(name for (name,) in drop_rows) == ["f", "g", "raw"]


def test_protected_fileset_prevents_the_cascade(filled: ServiceDesk) -> None:
    """If one fileset is protected, nothing is dropped."""
    filled.run(protection_set(filled.ctx(), metalake=LAKE, kind=Kind.FILESET, full_name="files.raw.g", below=False))

    with pytest.raises(ProtectedObject):
        drop(filled, "raw")
    assert alive(filled) == ["f", "f", "g", "other", "raw"]


def test_only_the_schema_owner_may_cascade(filled: ServiceDesk) -> None:
    """The owner of one fileset may not drop the schema with its content. The schema's owner may, also with other users'
    objects.
    """
    filled.allow("ana", Kind.CATALOG, "files", Privilege.USE_CATALOG, Privilege.USE_SCHEMA)
    for kind, full_name in ((Kind.FILESET, "files.raw.f"), (Kind.NAMESPACE, "files.other")):
        filled.run(
            owner_set(filled.ctx(), metalake=LAKE, kind=kind, full_name=full_name, owner_kind=Kind.USER, owner="ana")
        )

    with pytest.raises(PermissionDenied):
        drop(filled, "raw", user="ana")
    with pytest.raises(NotFound):
        drop(filled, "none")
    drop(filled, "other", user="ana")
    assert alive(filled) == ["f", "g", "raw"]


def test_too_many_objects_are_refused(filled: ServiceDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A drop of a schema with more objects than the limit is refused. With exactly the limit, all are dropped."""
    monkeypatch.setattr(cascades, "OBJECTS_MAX", 1)
    with pytest.raises(BadRequest, match="More than 1 objects are in schema raw"):
        drop(filled, "raw")
    drop(filled, "other")

    assert alive(filled) == ["f", "g", "raw"]


def test_cascade_in_an_iceberg_catalog_is_refused(desk: ServiceDesk) -> None:
    """A cascading drop of a schema with tables is refused as in Gravitino, and the message names the parameter."""
    desk.namespace("a")
    desk.table("a", "t")

    with pytest.raises(BadRequest, match=r"cascade is not supported by catalogs of provider lakehouse-iceberg"):
        drop(desk, "a", scope=MAIN)
    assert desk.rows("SELECT count(*) FROM node WHERE name = 't' AND deleted = 0") == [(1,)]
