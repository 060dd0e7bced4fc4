# SPDX-License-Identifier: Apache-2.0
"""The pages of the console other than those of objects, for the navigation and the palette, by the caller's rights.

The services make all access decisions.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from limnos.http.console.site import ConsoleSite
from limnos.names.percent import quote
from limnos.services.activity.webhooks import may_manage_webhooks
from limnos.services.identity.service_accounts import may_manage_secrets
from limnos.services.request.request_view import RequestView
from limnos.services.upkeep.nodes import may_inspect
from limnos.services.upkeep.tasks import may_manage_tasks

OPERATIONS: Final = "operations"
INSPECTION: Final = "inspection"
SECRETS: Final = "secrets"
WORKSHEET: Final = "worksheet"


class ConsolePage(NamedTuple):
    """A page of the console.

    - `path`: its path below the console's root, with a query or without.
    - `section`: its name in the navigation; empty for a page that is only in the palette.
    - `key`: its keyboard shortcut.
    - `words`: further words by which the palette finds it.
    - `needs`: the name of the right that opens it; empty for pages that every user may open.
    """

    path: str
    text: str
    icon: str
    section: str = ""
    key: str = ""
    words: str = ""
    needs: str = ""

    def is_openable(self, site: ConsoleSite, *, needs: frozenset[str]) -> bool:
        """Return whether a caller who has the rights `needs` may open the page on this server."""
        if self.needs == WORKSHEET:
            return site.has_sqlpp
        return not self.needs or self.needs in needs

    def href(self, base: str, metalake: str) -> str:
        """Return the URL of the page for a metalake."""
        return f"{base}{self.path}{'&' if '?' in self.path else '?'}metalake={quote(metalake)}"


CONSOLE_PAGES: Final = (
    ConsolePage(path="/", text="Home", icon="home", section="home"),
    ConsolePage(path="/pipelines", text="Pipelines", icon="run", section="pipelines", key="g p", words="runs"),
    ConsolePage(
        path="/worksheet",
        text="Worksheet",
        icon="function",
        section="worksheet",
        words="sql query statements",
        needs=WORKSHEET,
    ),
    ConsolePage(path="/jobs", text="Jobs", icon="list", section="jobs"),
    ConsolePage(
        path="/maintenance",
        text="Maintenance",
        icon="wrench",
        section="maintenance",
        key="g m",
        words="compaction snapshots",
    ),
    ConsolePage(path="/audit", text="Audit", icon="clock", section="audit", key="g a", words="log history"),
    ConsolePage(
        path="/people", text="Users and roles", icon="person", section="people", key="g u", words="groups people"
    ),
    ConsolePage(path="/people?kind=group", text="Groups", icon="person"),
    ConsolePage(path="/people?kind=role", text="Roles", icon="key", words="privileges"),
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
"""All pages that need no object, in the order of the navigation."""


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
