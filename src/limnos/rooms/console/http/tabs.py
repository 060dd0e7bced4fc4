# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the pages of objects: heading, tabs, facts, properties, and paging.

Must not know particular kinds of objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.names import display
from limnos.rooms.console.http.addresses import ObjectAddress, segment_of
from limnos.rooms.console.http.frame import Frame, Link, crumbs_of, frame_of, icon_of
from limnos.rooms.console.http.object_tabs import DROPPABLE, EDITABLE, RENAMABLE
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.services.catalog.children import CHILD_KINDS
from limnos.services.governance.details import ObjectDetails
from limnos.services.request.table_formats import LANCE

_CHILD_KINDS: Final = {kind.word: kind for kind in CHILD_KINDS}
_ORDERED: Final = (
    ("read", "read"),
    ("scan", "read"),
    ("read_files", "read files"),
    ("write", "write"),
    ("alter", "change"),
    ("drop", "drop"),
    ("grant", "grant"),
)


ChipLook = Literal["plain", "accent", "ok", "warn", "bad", "info"]
"""A class of the style sheet: the colour of a label. A type of its own, so that it is not exchanged with a text."""


class Chip(msgspec.Struct, frozen=True):
    """A short label in a heading or cell."""

    text: str
    look: ChipLook = "plain"
    icon: str = ""


class Property(msgspec.Struct, frozen=True):
    """A property of an object, as a row of the page's table."""

    name: str
    value: str


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A fact shown under the tabs: a label with its text, or with a time. `href` is the URL that the text links to."""

    label: str
    text: str = ""
    at_ms: int | None = None
    is_code: bool = False
    href: str = ""


class ObjectHeading(msgspec.Struct, frozen=True, kw_only=True):
    """The heading of an object's page: name, kind, path, labels, tabs and buttons."""

    name: str
    kind: str
    icon: str
    path: str
    crumbs: tuple[Link, ...]
    chips: tuple[Chip, ...]
    comment: str
    tabs: tuple[Link, ...]
    tags: tuple[Link, ...]
    drop: str
    """The URL of the page that drops the object; empty if the caller may not or the console does not drop it."""
    rename: str
    """The URL of the page that renames the object; empty if the caller may not or the console does not rename it."""
    create: str
    """The URL of the page that creates a namespace in a catalog or namespace; empty if the caller may not."""
    edit: str
    """The URL of the page that edits comment, properties, columns' descriptions and tags; empty if the caller may not
    change the object.
    """
    query: str = ""
    """The URL of the worksheet with a query of the table; empty if the caller or SQL++ cannot read it."""


def child_after(text: str | None) -> tuple[Kind, str] | None:
    """Parse the child after which a page begins, such as `table:orders`. Raises BadRequest if the kind is unknown or
    the colon is missing.
    """
    if not text:
        return None
    word, mark, name = text.partition(":")
    kind = _CHILD_KINDS.get(word)
    if kind is None or not mark:
        raise BadRequest("This is not a page of the list: start at the first one")
    return kind, name


def tab_of(page_request: PageRequest, tabs: Iterable[str]) -> str:
    """Return the requested tab; the first one for an unknown tab."""
    names = tuple(tabs)
    name = page_request.request.query("tab")
    return name if name in names else names[0]


def heading_of(
    page_request: PageRequest,
    address: ObjectAddress,
    *,
    details: ObjectDetails | None,
    tabs: Mapping[str, str],
    tab: str,
    chips: tuple[Chip, ...] = (),
    comment: str = "",
    create: str = "",
    query: str = "",
    has_access: bool = True,
) -> ObjectHeading:
    """Return the heading of an object's page, with the caller's rights as a chip.

    `create` is the URL of the page that creates a namespace in the object, `query` that of the worksheet with a query
    of the object. `has_access` is whether the object has an access page.
    """
    object_url = page_request.base + address.path
    links = tuple(
        Link(text, object_url if name == next(iter(tabs)) else f"{object_url}?tab={name}", name == tab)
        for name, text in tabs.items()
    )
    if has_access:
        links = (*links, Link("Access", page_request.base + access_path(address), tab == "access"))
    rights = () if details is None else (rights_chip(details),)
    word = address.kind.word
    lake = f"{page_request.base}/tag/{segment_of(address.metalake)}"
    attached = () if details is None else details.tags
    tags = tuple(
        Link(_tag_text(each.node.name, each.values), f"{lake}/{segment_of(each.node.name)}") for each in attached
    )
    may_drop = details is not None and "drop" in details.rights
    drop = page_request.base + drop_path(address) if may_drop and address.kind in DROPPABLE else ""
    may_rename = details is not None and "rename" in details.rights
    rename = page_request.base + rename_path(address) if may_rename and address.kind in RENAMABLE else ""
    may_edit = details is not None and "alter" in details.rights and details.node.format != LANCE
    edit = page_request.base + edit_path(address) if may_edit and address.kind in EDITABLE else ""
    return ObjectHeading(
        name=address.name,
        kind=word.replace("_", " "),
        icon=icon_of(word),
        path=display.render((address.catalog, *address.levels)),
        crumbs=crumbs_of(page_request, address),
        chips=(*chips, *rights),
        comment=comment,
        tabs=links,
        tags=tags,
        drop=drop,
        rename=rename,
        create=create,
        edit=edit,
        query=query,
    )


def access_path(address: ObjectAddress) -> str:
    """Return the path of an object's access page, below the console's root."""
    return f"/access{address.path.removeprefix('/o')}"


def drop_path(address: ObjectAddress) -> str:
    """Return the path of the page that drops an object, below the console's root."""
    return f"/drop{address.path.removeprefix('/o')}"


def rename_path(address: ObjectAddress) -> str:
    """Return the path of the page that renames an object, below the console's root."""
    return f"/rename{address.path.removeprefix('/o')}"


def edit_path(address: ObjectAddress) -> str:
    """Return the path of the page that edits an object, below the console's root."""
    return f"/edit{address.path.removeprefix('/o')}"


def creation_path(address: ObjectAddress) -> str:
    """Return the path of the page that creates a namespace in a catalog or namespace, below the console's root."""
    return f"/create-namespace{address.path.removeprefix('/o')}"


def _tag_text(name: str, values: tuple[str, ...]) -> str:
    return f"{name}: {', '.join(values)}" if values else name


def rights_chip(details: ObjectDetails) -> Chip:
    """Return the label with the caller's rights on an object, such as "You may read and write"."""
    if not details.is_access_on:
        return Chip("Access control is off", "warn", "alert")
    words = list(dict.fromkeys(word for right, word in _ORDERED if right in details.rights))
    if not words:
        return Chip("You may see it", "plain", "eye")
    last = words.pop()
    text = f"{', '.join(words)} and {last}" if words else last
    return Chip(f"You may {text}", "ok", "check")


def dashboard_facts(dashboards: Mapping[str, str]) -> tuple[Fact, ...]:
    """Return a fact for each dashboard that shows a table or view, from its name and URL. Only a URL of HTTP is a link:
    an import may bring any text.
    """
    return tuple(
        Fact(label="Dashboard", text=name, href=url if url.startswith(("https://", "http://")) else "")
        for name, url in dashboards.items()
    )


def facts_of(details: ObjectDetails) -> tuple[Fact, ...]:
    """Return the facts that every object has: owner, creation, last change."""
    node = details.node
    owner = "no owner" if details.owner is None else details.owner.name
    change_fact = (
        Fact(label="Changed", text=f"by {node.modified_by}", at_ms=node.modified_at)
        if node.modified_at is not None
        else None
    )
    creation = Fact(label="Created", text=f"by {node.created_by}", at_ms=node.created_at)
    return (Fact(label="Owner", text=owner), *((change_fact,) if change_fact is not None else ()), creation)


def properties_of(properties: Mapping[str, str]) -> tuple[Property, ...]:
    """Return properties as rows, ordered by name."""
    return tuple(Property(name, str(value)) for name, value in sorted(properties.items()))


async def object_frame(page_request: PageRequest, address: ObjectAddress) -> Frame:
    """Return the frame of an object's page, titled with its path, and with the tree expanded down to it."""
    return await frame_of(page_request, display.render((address.catalog, *address.levels)), at=address)
