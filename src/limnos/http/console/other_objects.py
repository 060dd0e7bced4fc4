"""Pages of views, filesets, models, topics, functions and the other declared objects: what each is, and its properties.

May import `model`, `services` and this package's shared modules. Knows no rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from limnos.http.console.answers import html_response
from limnos.http.console.frame import Frame
from limnos.http.console.look import render
from limnos.http.console.tabs import (
    Chip,
    Fact,
    ObjectHeading,
    Property,
    facts_of,
    heading_of,
    object_frame,
    properties_of,
)
from limnos.services.governance.details import details_load

if TYPE_CHECKING:
    from limnos.http.console.addresses import ObjectAddress
    from limnos.http.console.page_requests import PageRequest
    from limnos.http.response import Response


class TextBlock(msgspec.Struct, frozen=True):
    """A text that defines an object: a statement, with what it is called."""

    title: str
    text: str


class ObjectPage(msgspec.Struct, frozen=True):
    """The page of an object that has no page of its own kind."""

    frame: Frame
    heading: ObjectHeading
    facts: tuple[Fact, ...]
    blocks: tuple[TextBlock, ...]
    properties: tuple[Property, ...]


async def object_page(asked: PageRequest, address: ObjectAddress) -> Response:
    """Show an object with its statements and properties."""
    details = await asked.ctx.read(address.scope, lambda view: details_load(view, address.kind, levels=address.levels))
    record = details.node.record
    heading = heading_of(
        asked, address, details=details, tabs={"about": "About"}, tab="about", chips=(Chip(address.kind.word.replace("_", " ")),),
        comment=getattr(record, "comment", None) or "",
    )  # fmt: skip
    statements: tuple[str, ...] = getattr(record, "statements", ())
    blocks = tuple(TextBlock("Declared by", statement) for statement in statements)
    definition = getattr(record, "definition", "")
    if definition:
        blocks = (*blocks, TextBlock("Definition", definition))
    view = ObjectPage(
        await object_frame(asked, address), heading, facts_of(details), blocks, properties_of(record.properties)
    )
    return html_response(asked.request, render("object.html", view))
