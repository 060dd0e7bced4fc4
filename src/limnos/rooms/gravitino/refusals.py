# SPDX-License-Identifier: Apache-2.0
"""The answer to Gravitino's requests on a server without the room."""

from __future__ import annotations

from limnos.http.response import Response
from limnos.model.errors import LimnosError
from limnos.rooms.gravitino.http import errors


def error_response(error: LimnosError, *, request_id: str, operation: str) -> Response:
    """Return Gravitino's response for an error."""
    del request_id, operation
    return errors.error_response(error)
