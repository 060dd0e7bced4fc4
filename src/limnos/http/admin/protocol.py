"""The own API and the root as the application sees them: routes with their whole paths, and the error shape.

May import `model`, `names`, this package and the shared modules of `limnos.http`. The last protocol: it answers for
paths that are nobody's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.http.admin import access, groups, moves, service, tokens, users
from limnos.http.admin.errors import error_response
from limnos.http.routing import Router

if TYPE_CHECKING:
    from limnos.http.application import Handler
    from limnos.http.response import Response
    from limnos.model.errors import LimnosError
    from limnos.names.errors import InvalidName

_MODULES = (service, moves, groups, users, tokens, access)


class AdminProtocol:
    """Limnos' own API, and what lies at the root."""

    name = "admin"
    anonymous = service.ANONYMOUS

    def __init__(self) -> None:
        self.router: Router[Handler] = Router("", [route for module in _MODULES for route in module.ROUTES])

    def error(self, error: LimnosError | InvalidName, *, request_id: str, operation: str) -> Response:
        """Give a failure its status and body."""
        return error_response(error, request_id=request_id)
