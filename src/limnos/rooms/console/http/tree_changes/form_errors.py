# SPDX-License-Identifier: Apache-2.0
"""Forms whose name a service refused: the page is shown again, with the message and the status of the error.

Must not know resources.
"""

from __future__ import annotations

from typing import Final

import msgspec

from limnos.http.error_statuses import status_of
from limnos.http.refusals import unescape_percent
from limnos.http.response import Response
from limnos.model.errors import AlreadyExists, BadRequest
from limnos.names.errors import InvalidName
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.sheets import SheetPage, sheet_response

NAME_ERRORS: Final = (AlreadyExists, BadRequest, InvalidName)
"""The errors that another name can avoid. For all others an error page is shown."""


def refused_form_response(
    page_request: PageRequest, page: SheetPage, *, error: AlreadyExists | BadRequest | InvalidName
) -> Response:
    """Render the page of a form again, with the message of the error as its warning."""
    page_request.request.failure = error
    view = msgspec.structs.replace(page, warning=unescape_percent(str(error)))
    response = sheet_response(page_request, view, status=status_of(error))
    response.reason = str(error)
    return response
