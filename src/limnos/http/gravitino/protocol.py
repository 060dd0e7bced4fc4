"""The protocol as the application sees it: all routes below `/api`, and the error shape.

May import `model`, `names`, this package and the shared modules of `limnos.http`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.http.gravitino import catalogs, groups, metalakes, owners, permissions, roles, schemas, service, users
from limnos.http.gravitino.errors import error_response
from limnos.http.routing import Router

if TYPE_CHECKING:
    from limnos.http.application import Handler
    from limnos.http.response import Response
    from limnos.model.errors import LimnosError
    from limnos.names.errors import InvalidName

ROOT = "/api"
_MODULES = (service, metalakes, catalogs, schemas, users, groups, roles, permissions, owners)


class GravitinoProtocol:
    """Gravitino REST at `/api`."""

    name = "gravitino"
    anonymous = service.ANONYMOUS

    def __init__(self) -> None:
        self.router: Router[Handler] = Router(ROOT, [route for module in _MODULES for route in module.ROUTES])

    def error(self, error: LimnosError | InvalidName, *, request_id: str, operation: str) -> Response:
        """Give a failure its status and body; the request id is in the header."""
        return error_response(error)
