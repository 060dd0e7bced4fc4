# SPDX-License-Identifier: Apache-2.0
"""Catalogs that show a directory of Lance tables: the directory of a catalog, and pages of names from its content.

Objects in such a directory are not nodes of the tree: only rights on the catalog and the metalake apply. The room of
Lance reads the content (`table_files`). Decision record 0054.
"""

from __future__ import annotations

from typing import NamedTuple

from limnos.access.actions import Action
from limnos.formats.lance_contents import DirectoryContents
from limnos.model.entities import Node
from limnos.model.errors import NotFound
from limnos.names.iceberg import render
from limnos.names.path import Levels
from limnos.services.request.catalog_storage import DIRECTORY, CatalogStorage, catalog_storage_of
from limnos.services.request.name_pages import PageRequest
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView


class CatalogDirectory(NamedTuple):
    """The directory of a `lance-directory` catalog, and the catalog's storage. The storage limits the files that the
    server may read.

    `scope` is the catalog's, and `action` what the caller may do; both are needed to decide again.
    """

    catalog: Node
    location: str
    place: CatalogStorage
    scope: RequestScope
    action: Action


class DirectoryPage(NamedTuple):
    """A page of names, and the last of them, after which the next page begins; None at the end."""

    names: list[str]
    last: str | None


def catalog_directory_of(request_view: RequestView, action: Action) -> CatalogDirectory | None:
    """Return the directory of the request's catalog, for a caller who may do the action on everything in the catalog.

    Returns None for other catalogs. Raises PermissionDenied, NotInUse.
    """
    location = None if request_view.settled.catalog is None else request_view.catalog_record.properties.get(DIRECTORY)
    if not location:
        return None
    request_view.require_in_use()
    request_view.require(action, request_view.settled.outer)
    request_view.defaults.location_conflicts.refuse(request_view.catalog.id, what="directory")
    return CatalogDirectory(
        catalog=request_view.catalog,
        location=location.rstrip("/"),
        place=catalog_storage_of(request_view),
        scope=request_view.scope,
        action=action,
    )


def namespaces_in(contents: DirectoryContents, levels: Levels, *, page_request: PageRequest) -> DirectoryPage:
    """Return a page of the namespaces directly in a namespace. Raises NotFound."""
    properties_in(contents, levels)
    names = [each.path[-1] for each in contents.namespaces if each.path[:-1] == levels]
    return _page(names, page_request)


def tables_in(
    contents: DirectoryContents, levels: Levels, *, page_request: PageRequest, declared: bool
) -> DirectoryPage:
    """Return a page of the tables directly in a namespace; without `declared` only those with data.

    Raises NotFound (the namespace).
    """
    properties_in(contents, levels)
    tables = [each for each in contents.tables if each.path[:-1] == levels and (declared or not each.declared)]
    return _page([each.path[-1] for each in tables], page_request)


def properties_in(contents: DirectoryContents, levels: Levels) -> dict[str, str]:
    """Return a namespace's properties. Raises NotFound."""
    if not levels:
        return {}
    for each in contents.namespaces:
        if each.path == levels:
            return each.properties
    raise NotFound(f"Namespace does not exist: {render(levels)}", kind="namespace")


def _page(names: list[str], request: PageRequest) -> DirectoryPage:
    left = sorted(name for name in names if name > request.after)
    texts = left if request.size is None else left[: request.size]
    return DirectoryPage(texts, texts[-1] if texts and len(texts) < len(left) else None)
