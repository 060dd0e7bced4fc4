# SPDX-License-Identifier: Apache-2.0
"""The first page: what needs the user, the metalake's catalogs, and its latest changes.

Has no business rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final
from urllib.parse import urlencode

import msgspec

from limnos.http.response import Response
from limnos.model.entities import Node
from limnos.model.errors import LimnosError
from limnos.model.kinds import Kind
from limnos.names import display
from limnos.rooms.console.http.addresses import KINDS, ObjectAddress, catalog_address, run_path
from limnos.rooms.console.http.frame import Frame, frame_of, icon_of
from limnos.rooms.console.http.home_needs import HomeNeeds, home_needs
from limnos.rooms.console.http.navigation.palette import pipeline_names
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.rendering import render
from limnos.rooms.console.http.responses import html_response
from limnos.rooms.console.http.tabs import creation_path
from limnos.services.activity.feed import changes_latest
from limnos.services.catalog.catalogs import catalogs_list
from limnos.services.catalog.children import ChildrenRequest
from limnos.services.catalog.namespaces import may_create_namespace
from limnos.services.lookup.change_publishing import PublishedChange
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import is_sourced

CHANGES_READ: Final = 60
"""The number of the latest revisions, in each zone, whose changes are read."""
CHANGES_SHOWN: Final = 20
FIRST_CATALOGS_MAX: Final = 3
"""The maximum number of catalogs of a lake that may be empty: two are created at the first start."""
NAMES_SHOWN: Final = 3
"""The maximum number of names of users, groups, roles, tags or policies in one line."""


_WORDS: Final = {
    "create": "created",
    "alter": "changed",
    "commit": "new version",
    "move": "moved or renamed",
    "drop": "dropped",
    "undrop": "restored",
    "purge": "deleted for good",
    "protect": "protected",
    "unprotect": "protection removed",
    "restrict": "read restriction set",
    "unrestrict": "read restriction removed",
    "own": "new owner",
    "join": "joined a group",
    "leave": "left a group",
    "give": "role assigned",
    "take": "role revoked",
    "attach": "attached",
    "detach": "detached",
    "start": "started",
    "resume": "resumed",
    "cancelling": "being cancelled",
    "cancel": "cancelled",
    "fail": "failed",
    "hold": "held for review",
    "discard": "discarded",
    "publish": "published",
    "succeed": "succeeded",
}
"""Labels of the operations in the change feed; others are shown by name."""


class CatalogLine(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the list of catalogs."""

    name: str
    href: str
    provider: str
    comment: str
    is_in_use: bool


class ChangeLine(msgspec.Struct, frozen=True, kw_only=True):
    """A group of similar changes (see `similar_changes`) with the operation, user and time of its latest change.

    `count` is the number of changes. `href` is the URL of the object's page; empty if there is none.
    """

    words: str
    kind: str
    icon: str
    path: str
    href: str
    user: str
    at_ms: int
    count: int


class FirstSteps(msgspec.Struct, frozen=True):
    """The first steps in an empty lake: the catalog for tables, and the URL of the form that creates a namespace in it.

    `catalog` is empty without a catalog, `create` if the caller may not create a namespace.
    """

    catalog: str
    create: str


class HomePage(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the home page: the visible catalogs and the latest changes."""

    frame: Frame
    catalogs: tuple[CatalogLine, ...]
    changes: tuple[ChangeLine, ...]
    is_member: bool
    needs: HomeNeeds
    first: FirstSteps | None


async def home(page_request: PageRequest) -> Response:
    """Show the visible catalogs, and the latest changes."""
    frame = await frame_of(page_request, "Home", section="home")
    is_member = any(link.is_current for link in frame.metalakes)
    nodes = await page_request.ctx.read(RequestScope(frame.metalake), catalogs_list) if is_member else []
    needs = await home_needs(page_request, frame.metalake, catalogs=nodes) if is_member else HomeNeeds()
    changes = await _changes(page_request, frame.metalake, runs=needs.runs) if is_member else ()
    first = await _first_steps(page_request, frame.metalake, catalogs=nodes) if is_member else None
    catalogs = _catalogs(page_request, frame.metalake, nodes=nodes)
    page = HomePage(frame=frame, catalogs=catalogs, changes=changes, is_member=is_member, needs=needs, first=first)
    return html_response(page_request.request, render("home.html", page))


async def _first_steps(page_request: PageRequest, metalake: str, *, catalogs: Sequence[Node]) -> FirstSteps | None:
    """Return the first steps in a lake whose few catalogs have no object that the caller may see; None for others."""
    if len(catalogs) > FIRST_CATALOGS_MAX:
        return None
    default_catalog = page_request.ctx.services.defaults.catalog
    first = next((each.name for each in catalogs if each.name == default_catalog), catalogs[0].name if catalogs else "")
    create = ""
    try:
        for node in catalogs:
            address = catalog_address(metalake, node.name)
            if await page_request.ctx.read(address.scope, is_sourced):
                return None
            page = await page_request.children(address.scope, (), request=ChildrenRequest(size=1))
            if page.children or page.following is not None:
                return None
            if node.name == first and await page_request.ctx.read(address.scope, _may_create):
                create = page_request.base + creation_path(address)
    except LimnosError:
        return None
    return FirstSteps(first, create)


def _may_create(view: RequestView) -> bool:
    return may_create_namespace(view, ())


def _catalogs(page_request: PageRequest, metalake: str, *, nodes: Sequence[Node]) -> tuple[CatalogLine, ...]:
    return tuple(
        CatalogLine(
            name=node.name,
            href=page_request.base + catalog_address(metalake, node.name).path,
            provider=getattr(node.record, "provider", ""),
            comment=getattr(node.record, "comment", None) or "",
            is_in_use=bool(getattr(node.record, "in_use", True)),
        )
        for node in nodes
    )


async def _changes(page_request: PageRequest, metalake: str, *, runs: Mapping[str, str]) -> tuple[ChangeLine, ...]:
    changes: list[PublishedChange] = []
    with suppress(LimnosError):  # an error in the list must not break the page
        changes = await changes_latest(page_request.ctx, RequestScope(metalake), count=CHANGES_READ)
    names = await pipeline_names(page_request, metalake)
    lines = (
        pipeline_line(page_request, metalake, changes=each, names=names, runs=runs)
        or change_line(page_request, metalake, changes=each)
        for each in similar_changes(changes)
    )
    return tuple(islice(lines, CHANGES_SHOWN))


def pipeline_line(
    page_request: PageRequest,
    metalake: str,
    *,
    changes: Sequence[PublishedChange],
    names: frozenset[str],
    runs: Mapping[str, str],
) -> ChangeLine | None:
    """Format changes of a pipeline or of one of its runs, with a link to its page; None for other changes.

    The feed calls a pipeline a job template, as Gravitino does. `runs` are the names of pipelines by id of the run.
    """
    change = changes[0]
    name = "".join(change.new or change.path or change.old or ())
    if change.kind is Kind.JOB_TEMPLATE and len(changes) == 1 and name in names and change.operation != "drop":
        kind, text, path = "pipeline", name, f"/pipeline?{urlencode({'metalake': metalake, 'name': name})}"
    elif change.kind is Kind.JOB and len({each.id for each in changes}) == 1 and name in runs:
        kind, text, path = "run", f"{runs[name]}, run {name[:8]}", run_path(metalake, run=name)
    else:
        return None
    words = _WORDS.get(change.operation, change.operation)
    return ChangeLine(
        words=words,
        kind=kind,
        icon="run",
        path=text,
        href=page_request.base + path,
        user=change.actor,
        at_ms=change.at,
        count=len(changes),
    )


def similar_changes(changes: Sequence[PublishedChange]) -> list[list[PublishedChange]]:
    """Group changes, the newest first, for one line each.

    Changes of one object of the tree, of one pipeline or of one run by the same operation and user are a group. Changes
    of several users, groups, roles, tags or policies by the same operation and user are one, too: a set-up creates
    many, which would fill the page.
    """
    groups: dict[tuple[object, ...], list[PublishedChange]] = {}
    for each in changes:
        object_id = each.id if each.kind.word in KINDS or each.kind in (Kind.JOB, Kind.JOB_TEMPLATE) else 0
        groups.setdefault((each.kind, object_id, each.operation, each.actor), []).append(each)
    return list(groups.values())


def change_line(page_request: PageRequest, metalake: str, *, changes: Sequence[PublishedChange]) -> ChangeLine:
    """Format a group of similar changes, with the URL of the object's page unless the object was dropped."""
    change = changes[0]
    path = change.new or change.path or change.old or ()
    kind = change.kind.word
    href = ""
    if path and kind in KINDS and change.operation not in {"drop", "purge"}:
        address = ObjectAddress(change.kind, metalake, path[0], path[1:])
        href = page_request.base + address.path if (change.kind is Kind.CATALOG) is (len(path) == 1) else ""
    name = display.render(path) if kind in KINDS else _names(changes)
    words = _WORDS.get(change.operation, change.operation)
    return ChangeLine(
        words=words,
        kind=kind.replace("_", " "),
        icon=icon_of(kind),
        path=name,
        href=href,
        user=change.actor,
        at_ms=change.at,
        count=len(changes),
    )


def _names(changes: Sequence[PublishedChange]) -> str:
    names = list(dict.fromkeys(".".join(each.new or each.path or each.old or ()) for each in changes))
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


ROUTES = (ConsoleRoute(method="GET", path="/", handler=home, operation="home", query=("metalake", "done")),)
