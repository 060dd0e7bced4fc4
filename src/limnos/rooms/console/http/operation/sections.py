# SPDX-License-Identifier: Apache-2.0
"""The navigation tabs of the operations pages.

Must not know resources.
"""

from __future__ import annotations

from urllib.parse import urlencode

from limnos.rooms.console.http.frame import Link
from limnos.rooms.console.http.navigation.console_pages import INSPECTION, OPERATIONS, SECRETS
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.store.activity.tasks import STATES

_OTHERS = (
    ("Nodes", "nodes", INSPECTION),
    ("Service accounts", "accounts", SECRETS),
    ("Storage", "storage", ""),
    ("Settings", "settings", INSPECTION),
)


def operation_tabs(page_request: PageRequest, metalake: str, *, current: str) -> tuple[Link, ...]:
    """Return links to the pages of operations that the caller may open. `current` is a state of tasks, or the path of a
    page.
    """
    base, query = page_request.base, urlencode({"metalake": metalake})
    tasks = tuple(
        Link(f"{state.capitalize()} tasks", f"{base}/operations?{query}&state={state}", state == current)
        for state in STATES
        if OPERATIONS in page_request.needs
    )
    others = tuple(
        Link(text, f"{base}/{path}?{query}", path == current)
        for text, path, need in _OTHERS
        if not need or need in page_request.needs
    )
    return (*tasks, *others)
