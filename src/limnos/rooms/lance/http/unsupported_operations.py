# SPDX-License-Identifier: Apache-2.0
"""Operations of the protocol that are not supported: each returns 406 with code 0, and advice.

Checks no rights, because nothing is read.
"""

from __future__ import annotations

from functools import partial
from typing import NoReturn

from limnos.http.request import Request
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.errors import UnsupportedOperation
from limnos.services.request.context import Context

_ENTERPRISE = "only LanceDB Enterprise has it"
_ON_TABLE = {"backfill_column": ("alter-table-backfill-columns", _ENTERPRISE)}
_ELSEWHERE = {
    "/materialized_view/{table_id}/create": ("create-materialized-view", _ENTERPRISE),
    "/materialized_view/{table_id}/refresh": ("refresh-materialized-view", _ENTERPRISE),
}


async def refuse_operation(_request: Request, _ctx: Context, *, operation: str, instead: str) -> NoReturn:
    """Refuse an operation. Raises UnsupportedOperation with the advice `instead`."""
    raise UnsupportedOperation(f"This server does not serve {operation}: {instead}")


def unsupported_routes() -> tuple[Route[Handler], ...]:
    """Return the routes of the operations that the server refuses with advice."""
    paths = {f"/table/{{table_id}}/{action}": result for action, result in _ON_TABLE.items()} | _ELSEWHERE
    return tuple(
        Route(
            method="POST",
            path=path,
            handler=partial(refuse_operation, operation=operation, instead=instead),
            operation=f"lance-{operation}",
            takes="any",
            query=("delimiter", "metalake"),
        )
        for path, (operation, instead) in paths.items()
    )
