# SPDX-License-Identifier: Apache-2.0
"""The frame around every page: the signed-in user, the metalakes, the navigation, the tree, and a notice.

Must not know resources, except the tree.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import msgspec

from limnos.model.errors import LimnosError
from limnos.model.kinds import Kind
from limnos.names.percent import quote
from limnos.rooms.console.http.addresses import ObjectAddress, catalog_address, quote_path, segment_of
from limnos.rooms.console.http.navigation.console_pages import CONSOLE_PAGES, openable_needs
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.rendering import static_version
from limnos.services.catalog.catalogs import catalogs_list
from limnos.services.catalog.children import ChildrenPage, ChildrenRequest
from limnos.services.catalog.metalakes import metalakes_visible
from limnos.services.request.request_scope import RequestScope

TREE_SIZE: Final = 100
"""The number of children of an object that the tree shows at once."""
METALAKES_MAX: Final = 50
ICONS: Final = {
    **{
        word: word for word in ("catalog", "namespace", "table", "view", "fileset", "model", "topic", "function", "tag")
    },
    "user": "person",
    "group": "person",
    "role": "key",
    "policy": "lock",
    "job": "run",
    "job_template": "run",
}
"""The icons of kinds."""


class TreeItem(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """An object in the tree. `branch` is the URL of the HTML fragment with its children; empty for a leaf."""

    name: str
    kind: str
    icon: str
    href: str
    branch: str = ""
    is_open: bool = False
    is_current: bool = False
    children: tuple[TreeItem, ...] = ()
    following: str = ""
    """The URL of the next page of this object's children, if there are more."""


class Link(msgspec.Struct, frozen=True):
    """A hyperlink: its text and URL, and whether it is the current page."""

    text: str
    href: str
    is_current: bool = False


class SectionLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link of the navigation to a page of the console, with its icon and its keyboard shortcut."""

    text: str
    href: str
    icon: str
    key: str
    is_current: bool


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a console page around its content: title, user, navigation, tree and notice."""

    base: str
    version: str
    title: str
    now_ms: int
    user: str = ""
    metalake: str = ""
    metalakes: tuple[Link, ...] = ()
    tree: tuple[TreeItem, ...] = ()
    is_access_off: bool = False
    notice: str = ""
    sections: tuple[SectionLink, ...] = ()
    metalake_quoted: str = ""
    question: str = ""
    """The text in the search box."""


def plain_frame(page_request: PageRequest, title: str) -> Frame:
    """Return the frame of a page for a browser without a session, such as the sign-in page."""
    return Frame(
        base=page_request.base,
        version=static_version(),
        title=title,
        now_ms=page_request.now_ms,
        is_access_off=_is_access_off(page_request),
    )


def _is_access_off(page_request: PageRequest) -> bool:
    return not page_request.ctx.services.rules.access_enabled


async def frame_of(
    page_request: PageRequest,
    title: str,
    *,
    metalake: str | None = None,
    at: ObjectAddress | None = None,
    section: str = "",
    question: str = "",
) -> Frame:
    """Return the frame of a page in a metalake, with the tree expanded down to the object `at`.

    Also sets `needs` of the page request. Without `metalake` and `at`, the request's query selects the metalake.
    """
    visible = [node.name for node in await metalakes_visible(page_request.ctx)]
    page_metalake = metalake or (at.metalake if at is not None else None) or _choose_metalake(page_request, visible)
    links = tuple(
        Link(name, f"{page_request.base}/?metalake={quote(name)}", name == page_metalake)
        for name in visible[:METALAKES_MAX]
    )
    tree: tuple[TreeItem, ...] = ()
    sections: tuple[SectionLink, ...] = ()
    if page_metalake in visible:
        page_request.needs = await page_request.ctx.read(RequestScope(page_metalake), openable_needs)
        sections = _sections(page_request, page_metalake, current=section)
        with suppress(LimnosError):  # an error in the tree must not break the page
            tree = await tree_of(page_request, page_metalake, at=at)
    return Frame(
        base=page_request.base,
        version=static_version(),
        title=title,
        now_ms=page_request.now_ms,
        user=page_request.user,
        metalake=page_metalake,
        metalakes=links,
        tree=tree,
        is_access_off=_is_access_off(page_request),
        notice=page_request.notice,
        sections=sections,
        metalake_quoted=quote(page_metalake),
        question=question,
    )


def _sections(page_request: PageRequest, metalake: str, *, current: str) -> tuple[SectionLink, ...]:
    """Return links to the pages of the navigation that the caller may open."""
    return tuple(
        SectionLink(
            text=each.text,
            href=each.href(page_request.base, metalake),
            icon=each.icon,
            key=each.key,
            is_current=each.section == current,
        )
        for each in CONSOLE_PAGES
        if each.section and each.is_openable(page_request.site, needs=page_request.needs)
    )


def _choose_metalake(page_request: PageRequest, visible: list[str]) -> str:
    """Return the metalake in the query if it is visible, else the server's default one, else the first visible one."""
    requested_name = page_request.request.query("metalake")
    if requested_name is not None and requested_name in visible:
        return requested_name
    default_metalake = page_request.ctx.services.defaults.metalake
    return default_metalake if default_metalake in visible or not visible else visible[0]


async def tree_of(page_request: PageRequest, metalake: str, *, at: ObjectAddress | None) -> tuple[TreeItem, ...]:
    """Return the tree of a metalake's visible catalogs, expanded along the path to `at`."""
    catalogs = await page_request.ctx.read(RequestScope(metalake), catalogs_list)
    items: list[TreeItem] = []
    for node in catalogs:
        address = catalog_address(metalake, node.name)
        if at is not None and node.name == at.catalog:
            items.append(await _expanded_item(page_request, address, at=at))
        else:
            items.append(item_of(page_request, address))
    return tuple(items)


async def _expanded_item(page_request: PageRequest, address: ObjectAddress, *, at: ObjectAddress) -> TreeItem:
    """Return an expanded tree item with its children; the child on the path to `at` is expanded, too."""
    item = item_of(page_request, address, is_current=address == at)
    try:
        page = await page_request.children(address.scope, address.levels, request=ChildrenRequest(size=TREE_SIZE))
    except LimnosError:
        page = None
    depth = len(address.levels)
    children: list[TreeItem] = []
    next_on_path = None if depth >= len(at.levels) else _next_of(address, at=at)
    prefix = quote_path((address.metalake, address.catalog, *address.levels))
    for child in () if page is None else page.children:
        is_on_path = next_on_path is not None and (child.kind, child.name) == (next_on_path.kind, next_on_path.name)
        if is_on_path and next_on_path is not None:
            children.append(await _item_on_path(page_request, next_on_path, at=at))
            next_on_path = None
        else:
            children.append(_child_item(page_request.base, prefix, kind=child.kind, name=child.name))
    if next_on_path is not None:  # on a later page of the list, or not in it
        children.insert(0, await _item_on_path(page_request, next_on_path, at=at))
    following = "" if page is None else following_of(page_request, address, page=page)
    return msgspec.structs.replace(item, is_open=True, children=tuple(children), following=following)


def _child_item(base: str, prefix: str, *, kind: Kind, name: str) -> TreeItem:
    """Return a child as a collapsed item. `prefix` is the quoted path of its parent."""
    word = kind.word
    path = f"{word}/{prefix}/{segment_of(name)}"
    branch = f"{base}/branch/{path}" if kind is Kind.NAMESPACE else ""
    return TreeItem(name=name, kind=word, icon=icon_of(word), href=f"{base}/o/{path}", branch=branch)


async def _item_on_path(page_request: PageRequest, address: ObjectAddress, *, at: ObjectAddress) -> TreeItem:
    if address.kind is Kind.NAMESPACE:
        return await _expanded_item(page_request, address, at=at)
    return item_of(page_request, address, is_current=True)


def _next_of(address: ObjectAddress, *, at: ObjectAddress) -> ObjectAddress:
    depth = len(address.levels) + 1
    kind = at.kind if depth == len(at.levels) else Kind.NAMESPACE
    return ObjectAddress(kind, at.metalake, at.catalog, at.levels[:depth])


def item_of(page_request: PageRequest, address: ObjectAddress, *, is_current: bool = False) -> TreeItem:
    """Return an object as a collapsed item of the tree."""
    word, path = address.kind.word, address.path
    is_container = address.kind in (Kind.CATALOG, Kind.NAMESPACE)
    branch = f"{page_request.base}/branch{path.removeprefix('/o')}" if is_container else ""
    return TreeItem(
        name=address.name,
        kind=word,
        icon=icon_of(word),
        href=page_request.base + path,
        branch=branch,
        is_current=is_current,
    )


def icon_of(word: str) -> str:
    """Return the name of a kind's icon."""
    return ICONS.get(word, "object")


def following_of(page_request: PageRequest, address: ObjectAddress, *, page: ChildrenPage) -> str:
    """Return the URL of the HTML fragment with the next page of children; empty on the last page."""
    if page.following is None:
        return ""
    kind, name = page.following
    return f"{page_request.base}/branch{address.path.removeprefix('/o')}?after={kind.word}:{quote(name)}"


def crumbs_of(page_request: PageRequest, address: ObjectAddress) -> tuple[Link, ...]:
    """Return links to the containers of an object, the catalog first."""
    links: list[Link] = []
    above = address.parent
    while above is not None:
        links.append(Link(above.name, page_request.base + above.path))
        above = above.parent
    return tuple(reversed(links))
