# SPDX-License-Identifier: Apache-2.0
"""The heading of an object's access and lineage pages: the same as on its first page.

Must not know the content of these pages.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlencode

from limnos.model.kinds import Kind
from limnos.rooms.console.http.addresses import ObjectAddress
from limnos.rooms.console.http.connect import sqlpp_query
from limnos.rooms.console.http.object_tabs import tabs_of
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.table_metadata import decode_metadata
from limnos.rooms.console.http.tabs import Chip, ObjectHeading, creation_path, heading_of
from limnos.services.catalog.namespaces import may_create_namespace
from limnos.services.governance.details import ObjectDetails
from limnos.services.iceberg.restricted_tables import table_visibility
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import ICEBERG, LANCE, format_of, is_sourced


class HeadingWords(NamedTuple):
    """The labels and the comment in the heading of an object's page, and the conditions of its buttons.

    - `may_create`: whether the caller may create a namespace in the object.
    - `is_iceberg`: whether the object is an Iceberg table of this server.
    - `is_lance`: whether its catalog has Lance tables.
    - `is_bound`: whether a read restriction applies to the caller.
    """

    chips: tuple[Chip, ...]
    comment: str
    may_create: bool = False
    is_iceberg: bool = False
    is_lance: bool = False
    is_bound: bool = False


def format_chip(version: int) -> Chip:
    """Return the label of an Iceberg table with its format version."""
    return Chip(f"Iceberg v{version}", "accent", "table")


def heading_words(view: RequestView, address: ObjectAddress, *, details: ObjectDetails) -> HeadingWords:
    """Return the labels and the comment in the heading of an object's access and lineage pages.

    The comment of an Iceberg table is in its metadata, and is omitted for restricted users. Raises as
    `table_visibility`.
    """
    comment = getattr(details.node.record, "comment", None) or ""
    is_lance = format_of(view) == LANCE
    if address.kind is not Kind.TABLE:
        is_container = address.kind in (Kind.CATALOG, Kind.NAMESPACE)
        may_create = is_container and may_create_namespace(view, address.levels)
        return HeadingWords(chips=kind_chips(details), comment=comment, may_create=may_create, is_lance=is_lance)
    if is_lance:
        return HeadingWords(chips=(Chip("Lance", "accent", "table"),), comment=comment, is_lance=True)
    if format_of(view) != ICEBERG or is_sourced(view):
        return HeadingWords(chips=(), comment=comment)
    visible = table_visibility(view, address.levels)
    metadata = decode_metadata(visible.document.body)
    chip = format_chip(metadata.format_version)
    if visible.bound is not None:
        return HeadingWords(
            chips=(chip, Chip("You see only a part of it", "warn", "alert")), comment="", is_iceberg=True, is_bound=True
        )
    return HeadingWords(chips=(chip,), comment=metadata.properties.get("comment", ""), is_iceberg=True)


def kind_chips(details: ObjectDetails) -> tuple[Chip, ...]:
    """Return the labels of an object other than a table: a catalog's provider and whether it is disabled, whether a
    fileset is managed, otherwise the kind.
    """
    node, record = details.node, details.node.record
    if node.kind is Kind.CATALOG:
        is_in_use = bool(getattr(record, "in_use", True))
        disabled = () if is_in_use else (Chip("disabled", "warn", "alert"),)
        return (Chip(getattr(record, "provider", "")), *disabled)
    if node.kind is Kind.FILESET:
        return (Chip("external" if getattr(record, "external", False) else "managed"),)
    return (Chip(node.kind.word.replace("_", " ")),)


def query_url(page_request: PageRequest, address: ObjectAddress, *, details: ObjectDetails) -> str:
    """Return the URL of the worksheet with a query of a table; empty if the caller or SQL++ cannot read the table."""
    may_read = not details.rights.isdisjoint(("read", "scan"))
    text = sqlpp_query(page_request, address) if may_read else ""
    return f"{page_request.base}/worksheet?{urlencode({'text': text})}" if text else ""


def further_heading(
    page_request: PageRequest, address: ObjectAddress, *, details: ObjectDetails, words: HeadingWords, tab: str
) -> ObjectHeading:
    """Return the heading of an object's access or lineage page, with the labels and buttons of its first page."""
    return heading_of(
        page_request,
        address,
        details=details,
        tabs=tabs_of(address.kind, is_lance=words.is_lance, site=page_request.site),
        tab=tab,
        chips=words.chips,
        comment=words.comment,
        create=page_request.base + creation_path(address) if words.may_create else "",
        query=query_url(page_request, address, details=details) if words.is_iceberg and not words.is_bound else "",
    )
