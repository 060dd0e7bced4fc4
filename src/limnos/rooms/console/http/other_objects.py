# SPDX-License-Identifier: Apache-2.0
"""Pages of views, models, topics, functions and other declared objects: definition and properties.

Has no business rules.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from limnos.http.response import Response
from limnos.model.kinds import Kind
from limnos.model.records import ObjectRecord
from limnos.rooms.console.http.addresses import ObjectAddress
from limnos.rooms.console.http.frame import Frame
from limnos.rooms.console.http.object_tabs import OTHER_TABS
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.rendering import render
from limnos.rooms.console.http.responses import html_response
from limnos.rooms.console.http.tabs import (
    Chip,
    Fact,
    ObjectHeading,
    Property,
    dashboard_facts,
    facts_of,
    heading_of,
    object_frame,
    properties_of,
)
from limnos.services.catalog.dashboards import dashboards_of
from limnos.services.catalog.models import versions_list
from limnos.services.catalog.views import view_load
from limnos.services.governance.details import ObjectDetails, details_load
from limnos.services.request.request_view import RequestView


class TextBlock(msgspec.Struct, frozen=True):
    """A text that defines an object, such as a statement, with its title."""

    title: str
    text: str


class Cell(msgspec.Struct, frozen=True):
    """A cell of a list: a text, or a time."""

    text: str = ""
    at_ms: int | None = None
    is_name: bool = False
    is_type: bool = False


class ListSection(msgspec.Struct, frozen=True):
    """A list on an object's page. `note` is shown if the list is empty."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""


class ObjectPage(msgspec.Struct, frozen=True, kw_only=True):
    """The data of the generic object page, for kinds without a page of their own."""

    frame: Frame
    heading: ObjectHeading
    facts: tuple[Fact, ...]
    blocks: tuple[TextBlock, ...]
    lists: tuple[ListSection, ...]
    properties: tuple[Property, ...]
    warning: str = ""


class _Representation(msgspec.Struct, frozen=True):
    sql: str = ""
    dialect: str = ""


class _ViewVersion(msgspec.Struct, frozen=True, rename="kebab"):
    version_id: int
    schema_id: int = 0
    representations: list[_Representation] = []


class _ViewField(msgspec.Struct, frozen=True):
    name: str
    type: object
    doc: str | None = None


class _ViewSchema(msgspec.Struct, frozen=True, rename="kebab"):
    schema_id: int = 0
    fields: list[_ViewField] = []


class _ViewMetadata(msgspec.Struct, frozen=True, rename="kebab"):
    current_version_id: int = 0
    versions: list[_ViewVersion] = []
    schemas: list[_ViewSchema] = []
    properties: dict[str, str] = {}


async def object_page(page_request: PageRequest, address: ObjectAddress) -> Response:
    """Show an object with its definition, lists and properties."""
    details, document, dashboards = await page_request.ctx.read(address.scope, lambda view: _read(view, address))
    record = details.node.record
    view = None if document is None else msgspec.json.decode(document, type=_ViewMetadata)
    blocks = _declared_blocks(details) if view is None else _view_blocks(view)
    lists: tuple[ListSection, ...] = () if view is None else (_view_columns(view),)
    if address.kind is Kind.MODEL:
        lists = (await _model_versions(page_request, address),)
    properties = record.properties if view is None else view.properties
    heading = heading_of(
        page_request,
        address,
        details=details,
        tabs=OTHER_TABS,
        tab="about",
        chips=(Chip(address.kind.word.replace("_", " ")),),
        comment=getattr(record, "comment", None) or properties.get("comment", ""),
    )
    facts = (*facts_of(details), *dashboard_facts(dashboards))
    page = ObjectPage(
        frame=await object_frame(page_request, address),
        heading=heading,
        facts=facts,
        blocks=blocks,
        lists=lists,
        properties=properties_of(properties),
    )
    return html_response(page_request.request, render("object.html", page))


def _read(view: RequestView, address: ObjectAddress) -> tuple[ObjectDetails, bytes | None, Mapping[str, str]]:
    details = details_load(view, address.kind, levels=address.levels)
    if address.kind is not Kind.VIEW:
        return details, None, {}
    document = view_load(view, address.levels[:-1], address.levels[-1]).body
    return details, document, dashboards_of(view, address.levels)


def _declared_blocks(details: ObjectDetails) -> tuple[TextBlock, ...]:
    record = details.node.record
    if isinstance(record, ObjectRecord):
        return tuple(
            TextBlock(name.replace("_", " ").capitalize(), _field_text(value))
            for name, value in record.own_fields().items()
            if value
        )
    statements: tuple[str, ...] = getattr(details.node.record, "statements", ())
    definition: str = getattr(details.node.record, "definition", "")
    blocks = tuple(TextBlock("Declared by", statement) for statement in statements)
    return (*blocks, TextBlock("Definition", definition)) if definition else blocks


def _field_text(value: object) -> str:
    """Return the text of an own field of a declared kind; several texts are separated by commas."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _view_blocks(view: _ViewMetadata) -> tuple[TextBlock, ...]:
    current = next((each for each in view.versions if each.version_id == view.current_version_id), None)
    texts = [] if current is None else current.representations
    return tuple(TextBlock(f"Query ({each.dialect})" if each.dialect else "Query", each.sql) for each in texts)


def _view_columns(view: _ViewMetadata) -> ListSection:
    current = next((each for each in view.versions if each.version_id == view.current_version_id), None)
    schema_id = None if current is None else current.schema_id
    schema = next((each for each in view.schemas if each.schema_id == schema_id), _ViewSchema())
    rows = tuple(
        (
            Cell(each.name, is_name=True),
            Cell(each.type if isinstance(each.type, str) else "nested", is_type=True),
            Cell(each.doc or ""),
        )
        for each in schema.fields
    )
    return ListSection("Columns", ("Name", "Type", "Description"), rows, "The view declares no columns.")


def _uris_text(uris: Mapping[str, str]) -> str:
    """Return the URIs of a model version with their names; a single URI without its name."""
    return ", ".join(uri if len(uris) == 1 else f"{name}: {uri}" for name, uri in uris.items())


async def _model_versions(page_request: PageRequest, address: ObjectAddress) -> ListSection:
    entries = await versions_list(page_request.ctx, address.scope, path=address.levels)
    rows = tuple(
        (
            Cell(str(each.version), is_name=True),
            Cell(", ".join(each.aliases)),
            Cell(_uris_text(each.uris)),
            Cell(each.comment or ""),
            Cell(each.created_by),
            Cell(at_ms=each.created_at),
        )
        for each in reversed(entries)
    )
    columns = ("Version", "Aliases", "Files", "Description", "By", "When")
    return ListSection("Versions", columns, rows, "No version is linked yet.")
