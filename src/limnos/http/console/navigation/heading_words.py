"""The words in the heading of an object's access and lineage pages, which are those of its first page.

May import `model`, `services` and the console's shared modules. Must not know what these pages show.
"""

from __future__ import annotations

from typing import NamedTuple

from limnos.http.console.addresses import ObjectAddress
from limnos.http.console.table_metadata import decode_metadata
from limnos.http.console.tabs import Chip
from limnos.model.kinds import Kind
from limnos.services.governance.details import ObjectDetails
from limnos.services.iceberg.restricted_tables import table_visibility
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import ICEBERG, LANCE, format_of, is_sourced


class HeadingWords(NamedTuple):
    """The label and the comment in the heading of an object's page."""

    chips: tuple[Chip, ...]
    comment: str


def format_chip(version: int) -> Chip:
    """Return the label of an Iceberg table."""
    return Chip(f"Iceberg v{version}", "accent", "table")


def heading_words(view: RequestView, address: ObjectAddress, *, details: ObjectDetails) -> HeadingWords:
    """Return the words of the heading of an object's pages other than its first: a table's format, or the kind. Raises
    as `table_visibility`.

    The comment of an Iceberg table is in its metadata, and is left out for callers who see only a part of it.
    """
    comment = getattr(details.node.record, "comment", None) or ""
    if address.kind is not Kind.TABLE:
        return HeadingWords((Chip(address.kind.word.replace("_", " ")),), comment)
    if format_of(view) == LANCE:
        return HeadingWords((Chip("Lance", "accent", "table"),), comment)
    if format_of(view) != ICEBERG or is_sourced(view):
        return HeadingWords((), comment)
    visible = table_visibility(view, address.levels)
    metadata = decode_metadata(visible.document.body)
    chip = format_chip(metadata.format_version)
    if visible.bound is not None:
        return HeadingWords((chip, Chip("You see only a part of it", "warn", "alert")), "")
    return HeadingWords((chip,), metadata.properties.get("comment", ""))
