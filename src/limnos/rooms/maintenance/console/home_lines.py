# SPDX-License-Identifier: Apache-2.0
"""Lines about tables that need maintenance, for the first page of the console."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

from limnos.model.entities import Node
from limnos.model.errors import LimnosError
from limnos.names import display
from limnos.rooms.console.http.home_needs import HomeNeeds, NeedLine
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.rendering import count_text
from limnos.rooms.maintenance.services.reports import findings_list
from limnos.services.request.request_scope import RequestScope

_NAMES: Final = 3


async def table_needs(page_request: PageRequest, metalake: str, *, catalogs: Sequence[Node]) -> HomeNeeds:
    """Return a line for each catalog with tables that need maintenance. One that the caller may not read has none."""
    lines = []
    for node in catalogs:
        try:
            page = await findings_list(page_request.ctx, RequestScope(metalake, node.name), after=0)
        except LimnosError:
            continue
        findings = sorted(page.findings, key=lambda each: -each.row.score)
        paths = list(dict.fromkeys(display.render((node.name, *each.path)) for each in findings))
        if not paths:
            continue
        more = f" and {count_text(len(paths) - _NAMES)} more" if len(paths) > _NAMES else ""
        text = f"{', '.join(paths[:_NAMES])}{more} need{'s' if len(paths) == 1 else ''} maintenance"
        href = f"{page_request.base}/maintenance?{urlencode({'metalake': metalake, 'catalog': node.name})}"
        lines.append(
            NeedLine(
                what="maintenance", look="warn", icon="wrench", text=text, href=href, detail=findings[0].row.reason
            )
        )
    return HomeNeeds(tuple(lines))
