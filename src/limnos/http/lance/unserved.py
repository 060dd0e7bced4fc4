"""Operations of the protocol that are not served: each is answered 406 with code 0, in words that say what to do instead.

May import `model`, `services` for the type of a request's context, and the shared modules of `limnos.http`. Nobody's rights are asked for, as nothing is looked at.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NoReturn

from limnos.http.routing import Route
from limnos.model.errors import Unsupported

if TYPE_CHECKING:
    from limnos.http.application import Handler
    from limnos.http.request import Request
    from limnos.services.context import Context

_BY_PATH = "open the table at its location, which describe tells, and do it there"
_ENTERPRISE = "only LanceDB Enterprise does it"
_ON_TABLE = {
    "merge_insert": ("merge-insert-into-table", _BY_PATH),
    "update": ("update-table", _BY_PATH),
    "delete": ("delete-from-table", _BY_PATH),
    "restore": ("restore-table", _BY_PATH),
    "schema_metadata/update": ("update-table-schema-metadata", _BY_PATH),
    "update_field_metadata": ("update-field-metadata", _BY_PATH),
    "stats": ("get-table-stats", _BY_PATH),
    "add_columns": ("alter-table-add-columns", _BY_PATH),
    "alter_columns": ("alter-table-alter-columns", _BY_PATH),
    "drop_columns": ("alter-table-drop-columns", _BY_PATH),
    "backfill_column": ("alter-table-backfill-columns", _ENTERPRISE),
    "create_index": ("create-table-index", _BY_PATH),
    "create_scalar_index": ("create-table-scalar-index", _BY_PATH),
    "index/list": ("list-table-indices", _BY_PATH),
    "index/{index_name}/stats": ("describe-table-index-stats", _BY_PATH),
    "index/{index_name}/drop": ("drop-table-index", _BY_PATH),
}
_ELSEWHERE = {
    "/transaction/{transaction_id}/describe": ("describe-transaction", _BY_PATH),
    "/transaction/{transaction_id}/alter": ("alter-transaction", _BY_PATH),
    "/materialized_view/{table_id}/create": ("create-materialized-view", _ENTERPRISE),
    "/materialized_view/{table_id}/refresh": ("refresh-materialized-view", _ENTERPRISE),
}


async def refuse(_request: Request, _ctx: Context, *, operation: str, instead: str) -> NoReturn:
    """Refuse."""
    raise Unsupported(f"This server does not serve {operation}: {instead}")


def unserved() -> tuple[Route[Handler], ...]:
    """Return the routes of what is not served."""
    paths = {f"/table/{{table_id}}/{action}": told for action, told in _ON_TABLE.items()} | _ELSEWHERE
    return tuple(
        Route("POST", path, partial(refuse, operation=operation, instead=instead), f"lance-{operation}", takes="any")
        for path, (operation, instead) in paths.items()
    )
