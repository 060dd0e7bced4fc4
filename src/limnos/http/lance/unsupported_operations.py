"""Operations of the protocol that are not served: each is answered 406 with code 0, in words that say what to do instead.

May import `model`, `services` for the type of a request's context, and the shared modules of `limnos.http`. Nobody's rights are asked for, as nothing is looked at.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NoReturn

from limnos.http.routing import Route
from limnos.model.errors import UnsupportedOperation

if TYPE_CHECKING:
    from limnos.http.application import Handler
    from limnos.http.request import Request
    from limnos.services.request.context import Context

_ENTERPRISE = "only LanceDB Enterprise does it"
_ON_TABLE = {
    "backfill_column": ("alter-table-backfill-columns", _ENTERPRISE),
}
_ELSEWHERE = {
    "/materialized_view/{table_id}/create": ("create-materialized-view", _ENTERPRISE),
    "/materialized_view/{table_id}/refresh": ("refresh-materialized-view", _ENTERPRISE),
}


async def refuse_operation(_request: Request, _ctx: Context, *, operation: str, instead: str) -> NoReturn:
    """Refuse."""
    raise UnsupportedOperation(f"This server does not serve {operation}: {instead}")


def unsupported_routes() -> tuple[Route[Handler], ...]:
    """Return the routes of what is not served."""
    paths = {f"/table/{{table_id}}/{action}": told for action, told in _ON_TABLE.items()} | _ELSEWHERE
    return tuple(
        Route(
            "POST",
            path,
            partial(refuse_operation, operation=operation, instead=instead),
            f"lance-{operation}",
            takes="any",
            query=("delimiter", "metalake"),
        )
        for path, (operation, instead) in paths.items()
    )
