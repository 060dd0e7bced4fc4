# SPDX-License-Identifier: Apache-2.0
"""Object details: owner, tags and the caller's rights, read in one request view."""

from __future__ import annotations

import pytest

from limnos.model.errors import NotFound, PermissionDenied
from limnos.model.kinds import FILESET_PROVIDER, Kind
from limnos.model.privileges import Privilege
from limnos.services.catalog.filesets import FilesetRequest, fileset_create
from limnos.services.governance.details import ObjectDetails, details_load
from limnos.services.request.request_scope import RequestScope
from tests.inprocess import ADMIN, LAKE, MAIN, add_catalog
from tests.services.conftest import ServiceDesk
from tests.services.governance.test_attachments import make, put


def load(desk: ServiceDesk, kind: Kind, *levels: str, user: str = ADMIN) -> ObjectDetails:
    """Return the details of an object for a user."""
    return desk.run(desk.ctx(user).read(MAIN, lambda request_view: details_load(request_view, kind, levels=levels)))


def test_owner_has_every_right(desk: ServiceDesk) -> None:
    """The owner may read, write, change, drop and grant."""
    desk.namespace("a")
    desk.table("a", "t")

    details = load(desk, Kind.TABLE, "a", "t")

    assert details.rights >= {"read", "write", "alter", "drop", "grant", "set_owner", "protect"}
    assert details.owner is not None
    assert details.owner.name == ADMIN


def test_reader_has_only_read_rights(desk: ServiceDesk) -> None:
    """The rights in a reader's details equal the decisions that the operations make for the reader."""
    desk.namespace("a")
    desk.table("a", "t")
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG)
    desk.allow("ana", Kind.NAMESPACE, "main.a", Privilege.USE_SCHEMA)
    desk.allow("ana", Kind.TABLE, "main.a.t", Privilege.SELECT_TABLE)

    assert load(desk, Kind.TABLE, "a", "t", user="ana").rights == {"read", "scan"}
    assert "create_table" not in load(desk, Kind.NAMESPACE, "a", user="ana").rights


def test_details_of_denied_or_missing_object_are_refused(desk: ServiceDesk) -> None:
    """The details of an object are refused to a user without privileges. For the owner, a missing object is
    NotFound.
    """
    desk.namespace("a")
    desk.table("a", "t")

    with pytest.raises(PermissionDenied):
        load(desk, Kind.TABLE, "a", "t", user="ana")
    with pytest.raises(NotFound):
        load(desk, Kind.TABLE, "a", "u")


def test_catalog_and_namespace_have_details(desk: ServiceDesk) -> None:
    """Catalogs and namespaces have details with the rights of their own operations."""
    desk.namespace("a")

    assert load(desk, Kind.CATALOG).node.name == "main"
    assert {"create_namespace", "create_table", "drop"} <= load(desk, Kind.NAMESPACE, "a").rights


@pytest.mark.parametrize(
    "kind, privilege, rights",
    [
        (Kind.TABLE, Privilege.MODIFY_TABLE, {"write", "alter", "rename"}),
        (Kind.TABLE, Privilege.SELECT_TABLE, {"read", "scan"}),
        (Kind.NAMESPACE, Privilege.USE_SCHEMA, set()),
        (Kind.NAMESPACE, Privilege.CREATE_TABLE, {"create_table"}),
        (Kind.NAMESPACE, Privilege.CREATE_SCHEMA, {"create_namespace"}),
    ],
)
def test_privilege_gives_only_rights_of_its_own_operations(
    desk: ServiceDesk, kind: Kind, privilege: Privilege, rights: set[str]
) -> None:
    """Each right in the details is the decision of its own operation, not of one that needs fewer privileges."""
    desk.namespace("a")
    desk.table("a", "t")
    levels = ("a", "t") if kind is Kind.TABLE else ("a",)
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA)
    desk.allow("ana", kind, ".".join(("main", *levels)), privilege)

    assert load(desk, kind, *levels, user="ana").rights == rights


def test_column_tags_are_limited_to_loadable_ones(desk: ServiceDesk) -> None:
    """The details contain only those tags of a column that the caller may load."""
    desk.namespace("a")
    desk.table("a", "t")
    make(desk, "red", "blue")
    put(desk, Kind.COLUMN, "main.a.t.x", "red", "blue")
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)
    desk.allow("ana", Kind.TAG, "red", Privilege.APPLY_TAG)

    ((_, everything),) = load(desk, Kind.TABLE, "a", "t").column_tags.items()
    ((_, hers),) = load(desk, Kind.TABLE, "a", "t", user="ana").column_tags.items()

    assert (sorted(everything), hers) == (["blue", "red"], ["red"])


def test_reading_fileset_files_is_a_separate_right(desk: ServiceDesk) -> None:
    """A user who may write a fileset may load it; the right to read its files is separate."""
    files = RequestScope(LAKE, "files")
    desk.run(add_catalog(desk.ctx(), "files", provider=FILESET_PROVIDER))
    desk.namespace("s", scope=files)
    desk.run(
        fileset_create(
            desk.ctx(),
            files,
            path=("s", "f"),
            request=FilesetRequest(None, external=False, locations={}, properties={}),
        )
    )
    desk.allow("ana", Kind.CATALOG, "files", Privilege.USE_CATALOG, Privilege.USE_SCHEMA)

    def rights() -> frozenset[str]:
        look = desk.ctx("ana").read(files, lambda view: details_load(view, Kind.FILESET, levels=("s", "f")))
        return desk.run(look).rights

    desk.allow("ana", Kind.FILESET, "files.s.f", Privilege.WRITE_FILESET)
    assert rights() == {"alter"}
    desk.allow("ana", Kind.FILESET, "files.s.f", Privilege.READ_FILESET)
    assert rights() == {"alter", "read_files"}
