# SPDX-License-Identifier: Apache-2.0
"""The table of a request on rows: a table of the tree, or one in a directory that is served without a store.

Has no business rules. The handlers of rows accept both, so that both have the same requests, refusals and responses.
"""

from __future__ import annotations

from limnos.http.request import Request
from limnos.model.errors import NotFound
from limnos.rooms.lance.http.identifiers import IdentifiedBody, path_of, place_of
from limnos.rooms.lance.services.directory_tables import FolderTables
from limnos.rooms.lance.services.rows import LanceRows, TreeRows
from limnos.services.request.context import Context

Where = Context | FolderTables
"""The location of the rows: the request's context, for a table of the tree; or the directory."""


def find_rows(request: Request, where: Where, *, body: IdentifiedBody | None = None) -> LanceRows:
    """Return the rows of the table that a request names. Raises BadRequest if path and body name different tables,
    InvalidName for an invalid name.
    """
    if isinstance(where, FolderTables):
        return where.table(path_of(request, body=body))
    object_path = place_of(request, where, body=body)
    return TreeRows(where, object_path.scope, levels=object_path.levels)


def find_transaction(request: Request, where: Where, *, body: IdentifiedBody) -> tuple[LanceRows, str]:
    """Return the table of a transaction and the transaction's own name, which follows the table's. Raises NotFound if
    the identifier has no table's name.
    """
    if isinstance(where, FolderTables):
        path = path_of(request, body=body)
        if len(path) < 2:
            raise NotFound(path[-1] if path else "", kind="transaction")
        return where.table(path[:-1]), path[-1]
    object_path = place_of(request, where, body=body)
    if len(object_path.levels) < 2:
        raise NotFound(object_path.path[-1] if object_path.path else "", kind="transaction")
    return TreeRows(where, object_path.scope, levels=object_path.levels[:-1]), object_path.levels[-1]
