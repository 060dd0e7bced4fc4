# SPDX-License-Identifier: Apache-2.0
"""Editing an object of the tree: its comment, properties, tags, and the descriptions of a table's columns.

The services make all access decisions. The forms of tags are sent to the routes of tags.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import urlencode

import msgspec

from limnos.http.response import Response
from limnos.model.errors import BadRequest, UnsupportedOperation
from limnos.model.kinds import Kind
from limnos.names import display
from limnos.rooms.console.http.addresses import ObjectAddress, parse_address, segment_of
from limnos.rooms.console.http.frame import Link, crumbs_of, icon_of
from limnos.rooms.console.http.page_requests import ConsoleRoute, PageRequest
from limnos.rooms.console.http.responses import redirect
from limnos.rooms.console.http.sheets import (
    Choice,
    FormInput,
    FormView,
    Sheet,
    SheetCell,
    SheetColumn,
    SheetPage,
    hidden_fields,
    number_field,
    sheet_response,
    with_values,
)
from limnos.rooms.console.http.table_metadata import SchemaPart, column_lines, decode_metadata
from limnos.rooms.console.http.tabs import edit_path, object_frame
from limnos.services.catalog.catalogs import catalog_alter
from limnos.services.catalog.filesets import is_fixed
from limnos.services.catalog.namespaces import namespace_alter
from limnos.services.governance.details import ObjectDetails, details_load
from limnos.services.iceberg.restricted_tables import table_visibility
from limnos.services.iceberg.table_evolution import column_describe, table_edit
from limnos.services.iceberg.views import view_edit
from limnos.services.lookup.metalake_objects import metalake_objects_list
from limnos.services.lookup.namespace_objects import namespace_object_alter
from limnos.services.request.context import Context
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import LANCE, format_of, is_sourced

SHOWN: Final = 200
"""The maximum number of properties, and of columns, with a form."""
_INTRO: Final = "Each button saves its own change at once. Clients see it at their next request."


class ObjectText(NamedTuple):
    """The content of an object's forms: its details, comment, properties, and the schema of an Iceberg table.

    Of a table with a read restriction for the caller only the details are shown, and so nothing but tags is edited.
    """

    details: ObjectDetails
    comment: str = ""
    properties: Mapping[str, str] = MappingProxyType({})
    schema: SchemaPart | None = None
    is_restricted: bool = False


class _ViewPart(msgspec.Struct):
    """The part of a view's document that is edited."""

    properties: dict[str, str] = {}


Edit = Callable[[Context, ObjectAddress, PropertyEdits], Awaitable[object]]


def _edit_in_namespace(ctx: Context, address: ObjectAddress, *, edits: PropertyEdits) -> Awaitable[object]:
    return namespace_object_alter(ctx, address.scope, path=address.levels, kind=address.kind, edits=edits)


_EDITS: Final[Mapping[Kind, Edit]] = {
    Kind.CATALOG: lambda ctx, address, edits: catalog_alter(
        ctx, metalake=address.metalake, name=address.catalog, edits=edits
    ),
    Kind.NAMESPACE: lambda ctx, address, edits: namespace_alter(ctx, address.scope, levels=address.levels, edits=edits),
    Kind.TABLE: lambda ctx, address, edits: table_edit(ctx, address.scope, path=address.levels, edits=edits),
    Kind.VIEW: lambda ctx, address, edits: view_edit(ctx, address.scope, path=address.levels, edits=edits),
    Kind.FILESET: lambda ctx, address, edits: _edit_in_namespace(ctx, address, edits=edits),
    Kind.MODEL: lambda ctx, address, edits: _edit_in_namespace(ctx, address, edits=edits),
    Kind.TOPIC: lambda ctx, address, edits: _edit_in_namespace(ctx, address, edits=edits),
}


async def edit_page(page_request: PageRequest) -> Response:
    """Show the forms that edit an object; only those of tags if the caller may not change it."""
    address = _address_of(page_request)
    text = await page_request.ctx.read(address.scope, lambda view: _read(view, address))
    tags = await page_request.ctx.read(
        RequestScope(address.metalake), lambda view: metalake_objects_list(view, Kind.TAG)
    )
    may_edit = "alter" in text.details.rights and not text.is_restricted
    path = display.render((address.catalog, *address.levels))
    description = SheetCell(form=_comment_form(page_request, address, comment=text.comment))
    about = Sheet(
        title="Description",
        columns=(SheetColumn(text="Shown below the name, and to clients as its comment"),),
        rows=((description,),),
    )
    sheets = (
        about,
        _properties_sheet(page_request, address, text=text),
        *_column_sheets(page_request, address, text=text),
    )
    forms = (_property_form(page_request, address),)
    page = SheetPage(
        frame=await object_frame(page_request, address),
        title=f"Edit {address.name}",
        icon=icon_of(address.kind.word),
        intro=_INTRO,
        crumbs=(*crumbs_of(page_request, address), Link(address.name, page_request.base + address.path)),
        sheets=(*(sheets if may_edit else ()), _tags_sheet(page_request, address, text=text)),
        forms=(*(forms if may_edit else ()), _tag_form(page_request, address, text=text, tags=[n.name for n in tags])),
        warning="" if may_edit else f"You may not change {path}. Its owner and administrators may.",
    )
    return sheet_response(page_request, page)


async def edit(page_request: PageRequest) -> Response:
    """Make one change of an object, and redirect to its forms."""
    address = _address_of(page_request)
    fields = await page_request.form()
    ctx, change = page_request.ctx, fields.get("change", "")
    await ctx.read(address.scope, lambda view: _read(view, address))
    name, value = fields.get("name", "").strip(), fields.get("value", "").strip()
    if change == "comment":
        page_request.retry = _comment_form(page_request, address, comment=value)
        await _EDITS[address.kind](ctx, address, PropertyEdits(comment=value or None, clears_comment=not value))
        notice = "The description is saved"
    elif change == "describe" and address.kind is Kind.TABLE:
        field_id = number_field(fields.get("field"), what="The column's field id")
        await column_describe(ctx, address.scope, path=address.levels, field_id=field_id, text=value)
        notice = f"The description of {name or 'the column'} is saved"
    elif change in ("set", "remove"):
        page_request.retry = with_values(_property_form(page_request, address), fields)
        if not name:
            raise BadRequest("Give the property a name")
        if address.kind is Kind.FILESET and is_fixed(name):
            raise BadRequest(f"The property {name} decides where the fileset's files are, and cannot be changed")
        edits = PropertyEdits(sets={name: value}) if change == "set" else PropertyEdits(removes=(name,))
        await _EDITS[address.kind](ctx, address, edits)
        notice = f"The property {name} is {'set' if change == 'set' else 'removed'}"
    else:
        raise BadRequest("This form makes no change that the console knows: open the object's page again")
    return redirect(f"{page_request.base}{edit_path(address)}?{urlencode({'done': notice})}")


def _address_of(page_request: PageRequest) -> ObjectAddress:
    """Return the object of the route. Raises BadRequest for a kind that is not edited here."""
    address = parse_address(page_request.request.params)
    if address.kind not in _EDITS:
        word = address.kind.word.replace("_", " ")
        raise BadRequest(f"The console does not edit a {word}; 'limnos --help' has the commands that do")
    return address


def _read(view: RequestView, address: ObjectAddress) -> ObjectText:
    """Return the forms' content. Raises UnsupportedOperation for an external object or a Lance table."""
    details = details_load(view, address.kind, levels=address.levels)
    if address.levels and is_sourced(view):
        raise UnsupportedOperation(
            f"The objects of catalog {view.catalog.name} are in an external system, and the console does not edit"
            " these: change them there, or over Gravitino REST"
        )
    record = details.node.record
    if address.kind is Kind.VIEW:
        properties = msgspec.json.decode(view.document(details.node.id).body, type=_ViewPart).properties
        others = {name: value for name, value in properties.items() if name != "comment"}
        return ObjectText(details=details, comment=properties.get("comment", ""), properties=others)
    if address.kind is not Kind.TABLE:
        return ObjectText(
            details=details,
            comment=getattr(record, "comment", None) or "",
            properties=getattr(record, "properties", {}),
        )
    if format_of(view) == LANCE:
        raise UnsupportedOperation("Lance tables are changed over Lance REST; their tags on the page of the tag")
    visible = table_visibility(view, address.levels)
    if visible.bound is not None:
        return ObjectText(details=details, is_restricted=True)
    metadata = decode_metadata(visible.document.body)
    properties = {name: value for name, value in metadata.properties.items() if name != "comment"}
    return ObjectText(
        details=details,
        comment=metadata.properties.get("comment", ""),
        properties=properties,
        schema=metadata.current_schema(),
    )


def _action(page_request: PageRequest, address: ObjectAddress) -> str:
    return page_request.base + edit_path(address)


def _comment_form(page_request: PageRequest, address: ObjectAddress, *, comment: str) -> FormView:
    return FormView(
        action=_action(page_request, address),
        button="Save",
        fields=hidden_fields(change="comment"),
        inputs=(FormInput(name="value", label="Description", value=comment, rows=2),),
        title="Description",
        label="Save the description",
        is_inline=True,
    )


def _property_form(page_request: PageRequest, address: ObjectAddress) -> FormView:
    return FormView(
        action=_action(page_request, address),
        button="Set",
        fields=hidden_fields(change="set"),
        inputs=(FormInput(name="name", label="Property", is_required=True), FormInput(name="value", label="Value")),
        title="Set a property",
        label="Set the property",
    )


def _inline_form(
    action: str, button: str, *, fields: Mapping[str, str], inputs: tuple[FormInput, ...] = ()
) -> FormView:
    """Return a form in a row of a list. Its hidden field `name` names the row."""
    label = f"{button} {fields['name']}"
    return FormView(
        action=action, button=button, fields=hidden_fields(**fields), inputs=inputs, label=label, is_inline=True
    )


def _properties_sheet(page_request: PageRequest, address: ObjectAddress, *, text: ObjectText) -> Sheet:
    action = _action(page_request, address)
    rows = tuple(
        (
            SheetCell(text=name, is_name=True),
            SheetCell(
                form=_inline_form(
                    action,
                    "Save",
                    fields={"change": "set", "name": name},
                    inputs=(FormInput(name="value", label=f"Value of {name}", value=value),),
                )
            ),
            SheetCell(form=_inline_form(action, "Remove", fields={"change": "remove", "name": name})),
        )
        for name, value in sorted(text.properties.items())[:SHOWN]
    )
    columns = (SheetColumn(text="Property"), SheetColumn(text="Value"), SheetColumn(text="Action"))
    more = f"The first {SHOWN} of {len(text.properties)} are shown." if len(text.properties) > SHOWN else ""
    return Sheet(title="Properties", columns=columns, rows=rows, note="No properties are set.", more=more)


def _column_sheets(page_request: PageRequest, address: ObjectAddress, *, text: ObjectText) -> tuple[Sheet, ...]:
    if text.schema is None:
        return ()
    lines, count = column_lines(text.schema, {})
    action = _action(page_request, address)
    rows = tuple(
        (
            SheetCell(text=each.name, is_name=True, small=each.type),
            SheetCell(
                form=_inline_form(
                    action,
                    "Save",
                    fields={"change": "describe", "name": each.name, "field": str(each.id)},
                    inputs=(FormInput(name="value", label=f"Description of {each.name}", value=each.comment),),
                )
            ),
        )
        for each in lines[:SHOWN]
        if each.id
    )
    more = f"The first {SHOWN} of {count} are shown." if count > SHOWN else ""
    return (
        Sheet(
            title="Columns", columns=(SheetColumn(text="Column"), SheetColumn(text="Description")), rows=rows, more=more
        ),
    )


def _tags_sheet(page_request: PageRequest, address: ObjectAddress, *, text: ObjectText) -> Sheet:
    path = (address.catalog, *address.levels)
    names = {} if text.schema is None else {each.id: each.name for each in text.schema.fields}
    rows = [
        _tag_row(page_request, address, tag=each.node.name, on=path, words=", ".join(each.values))
        if not each.inherited
        else (_tag_cell(page_request, address, tag=each.node.name), SheetCell(text="inherited"), SheetCell())
        for each in text.details.tags
    ]
    rows += [
        _tag_row(page_request, address, tag=tag, on=(*path, names[field_id]), words=f"column {names[field_id]}")
        for field_id, tags in text.details.column_tags.items()
        if field_id in names
        for tag in tags
    ]
    columns = (SheetColumn(text="Tag"), SheetColumn(text="Value or column"), SheetColumn(text="Action"))
    return Sheet(title="Tags", columns=columns, rows=tuple(rows), note="It has no tag that you may see.")


def _tag_cell(page_request: PageRequest, address: ObjectAddress, *, tag: str) -> SheetCell:
    return SheetCell(
        text=tag, href=f"{page_request.base}/tag/{segment_of(address.metalake)}/{segment_of(tag)}", is_name=True
    )


def _tag_row(
    page_request: PageRequest, address: ObjectAddress, *, tag: str, on: tuple[str, ...], words: str
) -> tuple[SheetCell, ...]:
    word = Kind.COLUMN.word if len(on) > len(address.levels) + 1 else address.kind.word
    fields = _tag_fields(page_request, address, path=display.render(on), kind=word) | {"name": tag, "change": "detach"}
    form = _inline_form(f"{page_request.base}/tag/attach", "Detach", fields=fields)
    return _tag_cell(page_request, address, tag=tag), SheetCell(text=words), SheetCell(form=form)


def _tag_fields(page_request: PageRequest, address: ObjectAddress, *, path: str, kind: str) -> dict[str, str]:
    form_action = _action(page_request, address)
    return {"metalake": address.metalake, "kind": kind, "path": path, "next": form_action}


def _tag_form(page_request: PageRequest, address: ObjectAddress, *, text: ObjectText, tags: list[str]) -> FormView:
    path = display.render((address.catalog, *address.levels))
    fields = _tag_fields(page_request, address, path=path, kind=address.kind.word) | {"change": "attach"}
    inputs = [
        FormInput(name="name", label="Tag", is_required=True, suggestions=tuple(tags[:SHOWN])),
        FormInput(name="value", label="Value, if the tag has values"),
    ]
    if text.schema is not None:
        columns = tuple(Choice(each.name, each.name) for each in text.schema.fields[:SHOWN])
        inputs.append(FormInput(name="column", label="On", choices=(Choice("", "the whole table"), *columns)))
    return FormView(
        action=f"{page_request.base}/tag/attach",
        button="Attach",
        fields=hidden_fields(**fields),
        inputs=tuple(inputs),
        title="Attach a tag",
        label=f"Attach the tag to {path}",
    )


ROUTES = (
    ConsoleRoute(
        method="GET", path="/edit/{kind}/{path...}", handler=edit_page, operation="edit-page", query=("done",)
    ),
    ConsoleRoute(method="POST", path="/edit/{kind}/{path...}", handler=edit, operation="edit-from-console"),
)
