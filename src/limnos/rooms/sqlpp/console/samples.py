# SPDX-License-Identifier: Apache-2.0
"""The sample statement of an empty worksheet: a query of a table that the caller may load.

Has no business rules.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from limnos.model.errors import LimnosError, NotFound, PermissionDenied, UnsupportedOperation
from limnos.model.kinds import Kind
from limnos.names.path import Levels
from limnos.rooms.console.http.connect import select_text
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.services.catalog.children import ChildrenRequest
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import ICEBERG, format_of

SEARCHED_LEVELS: Final = 4
"""How many levels of namespaces are searched for a table: the first namespace of each."""
SEARCHED_CHILDREN: Final = 5
SAMPLE_NAME: Final = ("sales", "europe", "orders")


async def sample_statement(page_request: PageRequest) -> str:
    """Return a query of a table that the caller may load; of a fictitious one if a short search yields none."""
    levels: Levels = ()
    with suppress(LimnosError):
        levels = await _table_levels(page_request)
    return select_text(levels or SAMPLE_NAME)


async def _table_levels(page_request: PageRequest) -> Levels:
    """Return the levels of a table in the first namespaces of the catalog of SQL++; empty if they have none.

    Also empty unless it is a catalog of Iceberg tables of this server: the page does not wait for external systems.
    """
    defaults = page_request.ctx.services.defaults
    scope = RequestScope(defaults.metalake, defaults.sqlpp_catalog)
    if not await page_request.ctx.read(scope, _is_own_iceberg):
        return ()
    levels: Levels = ()
    for _ in range(SEARCHED_LEVELS):
        namespace = await _first_name(page_request, scope, parent=levels, kind=Kind.NAMESPACE)
        if not namespace:
            return ()
        levels = (*levels, namespace)
        table = await _first_name(page_request, scope, parent=levels, kind=Kind.TABLE)
        if table:
            return (*levels, table)
    return ()


def _is_own_iceberg(request_view: RequestView) -> bool:
    traits = request_view.traits
    return not (traits.is_sourced or traits.is_federated) and format_of(request_view) == ICEBERG


async def _first_name(page_request: PageRequest, scope: RequestScope, *, parent: Levels, kind: Kind) -> str:
    """Return the name of the first child that the caller may load; empty without one."""
    with suppress(PermissionDenied, NotFound, UnsupportedOperation):
        page = await page_request.children(scope, parent, request=ChildrenRequest(size=SEARCHED_CHILDREN, kind=kind))
        return next((each.name for each in page.children if each.node is not None), "")
    return ""
