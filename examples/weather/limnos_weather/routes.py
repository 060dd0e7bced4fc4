# SPDX-License-Identifier: Apache-2.0
"""The route of the room: the reports of its table."""

from __future__ import annotations

from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.routing import Route
from limnos.model.permits import upkeep_permit
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.store.sql import Sql
from limnos_weather.work import SEEN

REPORTS = Sql("SELECT text FROM weather_report")


async def show(_request: Request, ctx: Context) -> Response:
    """Return the weather of the place in the settings, to a user whom the server knows."""
    user = await ctx.read(RequestScope(), lambda request_view: request_view.user)
    rows = await ctx.services.store.submit(upkeep_permit("weather"), lambda tx: tx.rows(REPORTS, {}))
    return json_response({"user": user, "place": SEEN.get("place", ""), "weather": [row[0] for row in rows]})


ROUTES = (Route(method="GET", path="/api/weather", handler=show, operation="show-weather"),)
