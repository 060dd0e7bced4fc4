# SPDX-License-Identifier: Apache-2.0
"""The pages of the console other than those of objects, for the navigation and the palette, by the caller's rights.

The services make all access decisions.
"""

from __future__ import annotations

from typing import Final, cast

from limnos.manifests.installed import installed_rooms
from limnos.manifests.manifest import load
from limnos.rooms.console.http.navigation.console_page import ConsolePage
from limnos.services.activity.webhooks import may_manage_webhooks
from limnos.services.identity.service_accounts import may_manage_secrets
from limnos.services.request.request_view import RequestView
from limnos.services.upkeep.nodes import may_inspect
from limnos.services.upkeep.tasks import may_manage_tasks

OPERATIONS: Final = "operations"
INSPECTION: Final = "inspection"
SECRETS: Final = "secrets"


_OWN_PAGES: Final = (
    ConsolePage(path="/", text="Home", icon="home", section="home"),
    ConsolePage(path="/audit", text="Audit", icon="clock", section="audit", key="g a", words="log history"),
    ConsolePage(
        path="/people", text="Users and roles", icon="person", section="people", key="g u", words="groups people"
    ),
    ConsolePage(path="/people?kind=group", text="Groups", icon="person"),
    ConsolePage(path="/people?kind=role", text="Roles", icon="key", words="privileges"),
    ConsolePage(path="/requests", text="Requests for access", icon="key", words="ask grant decline"),
    ConsolePage(path="/tags", text="Tags", icon="tag", section="tags"),
    ConsolePage(path="/policies", text="Policies", icon="lock", section="policies"),
    ConsolePage(path="/trash", text="Trash", icon="trash", section="trash", words="dropped restore"),
    ConsolePage(
        path="/operations",
        text="Operations",
        icon="gauge",
        section="operations",
        words="tasks webhooks",
        needs=OPERATIONS,
    ),
    ConsolePage(path="/nodes", text="Nodes", icon="list", words="server processes", needs=INSPECTION),
    ConsolePage(path="/settings", text="Settings", icon="wrench", words="configuration", needs=INSPECTION),
    ConsolePage(path="/accounts", text="Service accounts", icon="key", words="secrets programs", needs=SECRETS),
    ConsolePage(path="/storage", text="Storage", icon="catalog", words="check"),
    ConsolePage(path="/sessions", text="Your sessions", icon="person", words="sign out"),
    ConsolePage(path="/tokens", text="API tokens", icon="key", words="your credentials"),
)


def _pages() -> tuple[ConsolePage, ...]:
    """Return the console's own pages and those of all installed rooms, in the order of the navigation."""
    own_pages = [page._replace(place=number * 10) for number, page in enumerate(_OWN_PAGES, 1)]
    room_pages = [
        page._replace(room=room.name)
        for room in installed_rooms().manifests
        for entry in room.pages
        if entry.navigation
        for page in cast("tuple[ConsolePage, ...]", load(entry.navigation))
    ]
    return tuple(sorted((*own_pages, *room_pages), key=lambda page: page.place))


CONSOLE_PAGES: Final = _pages()
"""All pages that need no object, of installed rooms as well, in the order of the navigation."""


def openable_needs(request_view: RequestView) -> frozenset[str]:
    """Return which values of `ConsolePage.needs` the caller has the right for, in the metalake of the request view.

    Refusals are not recorded in the audit.
    """
    has_tasks = may_manage_tasks(request_view)
    pairs = (
        (OPERATIONS, has_tasks or may_manage_webhooks(request_view)),
        (INSPECTION, may_inspect(request_view)),
        (SECRETS, may_manage_secrets(request_view)),
    )
    return frozenset(need for need, is_allowed in pairs if is_allowed)
