# SPDX-License-Identifier: Apache-2.0
"""Failures of external systems on pages: the message, and a frame that does not call the system again.

Must not know kinds of objects.
"""

from __future__ import annotations

from limnos.http.error_statuses import status_of
from limnos.http.refusals import unescape_percent
from limnos.http.response import Response
from limnos.model.errors import SourceFailed
from limnos.names import display
from limnos.rooms.console.http.addresses import ObjectAddress
from limnos.rooms.console.http.frame import Frame, frame_of
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.responses import html_response


def failure_text(catalog: str, failure: SourceFailed) -> str:
    """Return the message about a system that failed or exceeded its deadline."""
    return (
        f"The external system of catalog {catalog} did not return the data of this page."
        f" {unescape_percent(str(failure))}"
    )


async def failed_frame(page_request: PageRequest, address: ObjectAddress) -> Frame:
    """Return the frame of an object's page with a collapsed tree: to expand it would call the system again."""
    title = display.render((address.catalog, *address.levels))
    return await frame_of(page_request, title, metalake=address.metalake)


def external_response(page_request: PageRequest, text: str, *, failure: SourceFailed | None) -> Response:
    """Return a page as a response, which has the HTTP status of the system's failure, if any."""
    if failure is None:
        return html_response(page_request.request, text)
    page_request.request.failure = failure
    response = html_response(page_request.request, text, status=status_of(failure))
    response.reason = str(failure)
    return response
