"""The navigation tabs of the operations pages.

May import `store` for the states of tasks, and the console's shared modules. Must not know resources.
"""

from __future__ import annotations

from urllib.parse import urlencode

from limnos.http.console.frame import Link
from limnos.http.console.page_requests import PageRequest
from limnos.store.activity.tasks import STATES

_OTHERS = (("Nodes", "nodes"), ("Service accounts", "accounts"), ("Storage", "storage"), ("Settings", "settings"))


def operation_tabs(page_request: PageRequest, metalake: str, *, current: str) -> tuple[Link, ...]:
    """Return links to the pages of operations. `current` is a state of tasks, or the path of a page."""
    base, query = page_request.base, urlencode({"metalake": metalake})
    tasks = tuple(
        Link(f"{state.capitalize()} tasks", f"{base}/operations?{query}&state={state}", state == current)
        for state in STATES
    )
    others = tuple(Link(text, f"{base}/{path}?{query}", path == current) for text, path in _OTHERS)
    return (*tasks, *others)
