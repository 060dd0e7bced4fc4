# SPDX-License-Identifier: Apache-2.0
"""Pages of filesets: the files of a directory, page by page, and the beginning of a file.

Has no business rules. Content is shown as text and as cells of a table.
"""

from __future__ import annotations

from typing import Final, cast
from urllib.parse import urlencode

import msgspec

from limnos.http.response import Response
from limnos.model.errors import LimnosError
from limnos.model.kinds import Kind
from limnos.model.records import FilesetRecord
from limnos.rooms.console.http.addresses import ObjectAddress
from limnos.rooms.console.http.frame import Frame, Link
from limnos.rooms.console.http.navigation.heading_words import kind_chips
from limnos.rooms.console.http.object_tabs import FILESET_TABS
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.rendering import render, size_text
from limnos.rooms.console.http.responses import html_response
from limnos.rooms.console.http.table_parts.preview import PreviewTab, file_preview_tab
from limnos.rooms.console.http.tabs import (
    Fact,
    ObjectHeading,
    Property,
    facts_of,
    heading_of,
    object_frame,
    properties_of,
    tab_of,
)
from limnos.services.catalog.fileset_browsing import FilePath, directory_page
from limnos.services.catalog.filesets import location_name, printable
from limnos.services.governance.details import details_load

PAGE_SIZE: Final = 200


class FileLine(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a directory, with the URL of its page; no URL for a name that is not UTF-8."""

    name: str
    href: str
    is_directory: bool
    size: str = ""
    changed_at_ms: int | None = None


class FilesetPage(msgspec.Struct, frozen=True, kw_only=True):
    """The data of a fileset's page: a directory, or the beginning of a file.

    `trail` has links to the parent directories, `locations` the fileset's named locations if there are several.
    """

    frame: Frame
    heading: ObjectHeading
    tab: str
    facts: tuple[Fact, ...]
    properties: tuple[Property, ...]
    locations: tuple[Link, ...] = ()
    trail: tuple[Link, ...] = ()
    lines: tuple[FileLine, ...] = ()
    following: str = ""
    refusal: str = ""
    file: str = ""
    preview: PreviewTab = PreviewTab()


async def fileset_page(page_request: PageRequest, address: ObjectAddress) -> Response:
    """Show a fileset: by default the top directory of its default location."""
    details = await page_request.ctx.read(
        address.scope, lambda view: details_load(view, Kind.FILESET, levels=address.levels)
    )
    record = cast("FilesetRecord", details.node.record)
    tab = tab_of(page_request, FILESET_TABS)
    query = page_request.request.query
    location, file = query("location") or location_name(record, None), query("file") or ""
    path = file or query("directory") or ""
    heading = heading_of(
        page_request,
        address,
        details=details,
        tabs=FILESET_TABS,
        tab=tab,
        chips=kind_chips(details),
        comment=record.comment or "",
    )
    where = Fact(label="Location", text=record.locations.get(location, ""), is_code=True)
    page = FilesetPage(
        frame=await object_frame(page_request, address),
        heading=heading,
        tab=tab,
        facts=(where, *facts_of(details)),
        properties=properties_of(record.properties) if tab == "properties" else (),
        locations=tuple(
            Link(name, _href(page_request, address, location=name), name == location)
            for name in sorted(record.locations)
        )
        if len(record.locations) > 1
        else (),
        trail=_directory_links(page_request, address, location=location, path=path),
        file=file,
    )
    if tab == "files":
        at = FilePath(address.levels, path or "/", location)
        page = await (_with_file if file else _with_lines)(page_request, address, page=page, at=at)
    return html_response(page_request.request, render("fileset.html", page), status=page.preview.status)


async def _with_file(
    page_request: PageRequest, address: ObjectAddress, *, page: FilesetPage, at: FilePath
) -> FilesetPage:
    return msgspec.structs.replace(page, preview=await file_preview_tab(page_request, address, at=at))


async def _with_lines(
    page_request: PageRequest, address: ObjectAddress, *, page: FilesetPage, at: FilePath
) -> FilesetPage:
    after = page_request.request.query("after") or ""
    try:
        entries = await directory_page(page_request.ctx, address.scope, at=at, after=after, size=PAGE_SIZE)
    except LimnosError as error:
        return msgspec.structs.replace(page, refusal=error.message)
    above, location = at.path.strip("/"), at.location or ""

    def href(name: str, key: str) -> str:
        return _href(page_request, address, location=location, **{key: f"{above}/{name}" if above else name})

    def line(name: str, key: str, *, size: str = "", changed_at_ms: int | None = None) -> FileLine:
        text = printable(name)
        return FileLine(
            name=text,
            href=href(name, key) if text == name else "",
            is_directory=key == "directory",
            size=size,
            changed_at_ms=changed_at_ms,
        )

    directories = tuple(line(name, "directory") for name in entries.directories)
    files = tuple(
        line(each.name, "file", size=size_text(each.size), changed_at_ms=each.modified_ms or None)
        for each in entries.files
    )
    following = (
        _href(page_request, address, location=location, directory=above, after=entries.after) if entries.after else ""
    )
    return msgspec.structs.replace(page, lines=(*directories, *files), following=following)


def _directory_links(
    page_request: PageRequest, address: ObjectAddress, *, location: str, path: str
) -> tuple[Link, ...]:
    """Return breadcrumb links to the top directory and to each directory on a path, the displayed one last."""
    names = [name for name in path.split("/") if name]
    links = [Link("Top", _href(page_request, address, location=location), not names)]
    for number, name in enumerate(names, 1):
        directory = "/".join(names[:number])
        links.append(
            Link(name, _href(page_request, address, location=location, directory=directory), number == len(names))
        )
    return tuple(links)


def _href(page_request: PageRequest, address: ObjectAddress, *, location: str, **more: str) -> str:
    query = {"location": location, **{key: value for key, value in more.items() if value}}
    return f"{page_request.base}{address.path}?{urlencode(query)}"
