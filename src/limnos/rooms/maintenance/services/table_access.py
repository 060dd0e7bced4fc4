# SPDX-License-Identifier: Apache-2.0
"""Access to a table for its maintenance: the table, and the decision that a user may maintain it.

Must not know operations.
"""

from __future__ import annotations

from limnos.access.actions import Action
from limnos.model.entities import Node
from limnos.names.path import Levels
from limnos.services.catalog.tables import table_find
from limnos.services.request.authorized_object import AuthorizedObject
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import ICEBERG, refuse_directory_request


def catalog_require(request_view: RequestView) -> None:
    """Check that the caller may use the catalog, before any other check of the request. Raises PermissionDenied."""
    request_view.require(Action.CATALOG_LOAD, request_view.settled.outer)


def maintained_table(
    request_view: RequestView, path: Levels, *, action: Action = Action.TABLE_MAINTAIN, table_format: str = ICEBERG
) -> AuthorizedObject[Node]:
    """Find a table of a format for a caller who may maintain it, or may do another action on it.

    Raises:
        NotFound: The table is missing or has another format, and the caller may know that.
        PermissionDenied: The caller may not perform the action on it.
        NotInUse: The catalog or metalake is disabled.
        UnsupportedOperation: The catalog is federated, or shows a directory of Lance tables.
    """
    if table_format != ICEBERG:
        refuse_directory_request(request_view, action)
    return table_find(request_view, path[:-1], path[-1], action, required_format=table_format)
