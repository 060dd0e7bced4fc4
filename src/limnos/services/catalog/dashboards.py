# SPDX-License-Identifier: Apache-2.0
"""The dashboards that show a table or view.

Must not know wire formats. A dashboard names tables and views of its own namespace.
"""

from __future__ import annotations

from typing import Final, cast

from limnos.access.actions import kind_action
from limnos.model.kinds import Kind
from limnos.model.records import ObjectRecord
from limnos.names.path import Levels
from limnos.services.request.name_pages import PageRequest, page_of
from limnos.services.request.request_view import RequestView
from limnos.view.cache_miss import for_each

DASHBOARDS_MAX: Final = 500
"""The maximum number of dashboards of a namespace that are read for one of its tables, by name."""


def dashboards_of(request_view: RequestView, path: Levels) -> dict[str, str]:
    """Return name and URL of the dashboards that show a table or view; empty if the caller may not list them.

    Raises CacheMiss.
    """
    namespace, chain = request_view.find(path[:-1], Kind.NAMESPACE) if len(path) > 1 else (None, ())
    action = kind_action(Kind.DASHBOARD, "list")
    if namespace is None or not request_view.decide(action, chain).allowed:
        return {}
    page = page_of(request_view, action, kind=Kind.DASHBOARD, chain=chain, page_request=PageRequest("", DASHBOARDS_MAX))
    nodes = for_each(page.texts(), lambda name: request_view.find((*path[:-1], name), Kind.DASHBOARD)[0])
    fields = {node.name: cast("ObjectRecord", node.record).own_fields() for node in nodes if node is not None}
    return {
        name: str(own_fields.get("url", ""))
        for name, own_fields in fields.items()
        if path[-1] in cast("list[str]", own_fields.get("tables", []))
    }
