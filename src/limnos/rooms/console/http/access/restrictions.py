# SPDX-License-Identifier: Apache-2.0
"""The page of an object's read restrictions: a list, a form that sets one, and buttons that remove them.

The services make all access decisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

import msgspec

from limnos.http.response import Response
from limnos.model.errors import BadRequest, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.model.restrictions import RestrictionTerms
from limnos.model.row_filter_sql import sql_of
from limnos.names import display
from limnos.rooms.console.http.access.objects import restrictions_url
from limnos.rooms.console.http.addresses import ObjectAddress, parse_address
from limnos.rooms.console.http.frame import Link, crumbs_of
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
    sheet_response,
    with_values,
)
from limnos.rooms.console.http.table_metadata import decode_metadata
from limnos.rooms.console.http.tabs import object_frame
from limnos.services.governance.restrictions import (
    RestrictionPrincipals,
    RestrictionRequest,
    RestrictionTarget,
    RestrictionView,
    restriction_remove,
    restriction_set,
    restrictions_list,
    row_filter_text,
)
from limnos.services.iceberg.restricted_tables import table_visibility
from limnos.services.lookup.securables import render_full_name
from limnos.services.request.name_codecs import codec_for

_MASKS: Final = (
    "replace-with-null",
    "mask-to-fixed-value",
    "mask-alphanum",
    "show-first-4",
    "show-last-4",
    "truncate-to-year",
    "truncate-to-month",
    "sha-256-global",
    "sha-256-query-local",
)
_PRINCIPALS: Final = ("user", "group", "role")
_MASK_ROWS: Final = 3
"""The number of masks in an empty form; the form of a restriction has two more than its own."""
_MASK_ROWS_MAX: Final = 50
_COLUMNS_MAX: Final = 500


async def restrictions_page(page_request: PageRequest) -> Response:
    """Show the restrictions that apply to an object, and a form to set one."""
    address = parse_address(page_request.request.params)
    views = await restrictions_list(page_request.ctx, _target(page_request, address))
    columns_named = await _column_names(page_request, address)
    edited = next((each for each in views if each.restriction.name == page_request.request.query("edit")), None)
    values = {} if edited is None else _fields_of(edited)
    frame = await object_frame(page_request, address)
    path = display.render((address.catalog, *address.levels))
    columns = (
        SheetColumn(text="Name"),
        SheetColumn(text="Masks"),
        SheetColumn(text="Rows", is_code=True),
        SheetColumn(text="For"),
        SheetColumn(text="Except"),
        SheetColumn(text="Action"),
        SheetColumn(text="Change"),
    )
    rows = tuple(_row(page_request, address, view=each) for each in views)
    page = SheetPage(
        frame=frame,
        title=f"Read restrictions of {path}",
        icon="lock",
        intro=(
            "A restriction masks columns or leaves out rows for the users that it names, or for everybody. Owners of"
            " the object are exempt. It takes effect at the next request. The rows to keep are a condition, such as"
            " region = 'EU'."
        ),
        crumbs=(*crumbs_of(page_request, address), _page_crumb(page_request, address)),
        sheets=(Sheet(title="", columns=columns, rows=rows, note="No restriction applies to this object."),),
        forms=(
            _form(page_request, address, columns=columns_named, values=values),
            *_preview_forms(page_request, address),
        ),
    )
    return sheet_response(page_request, page)


def _preview_forms(page_request: PageRequest, address: ObjectAddress) -> tuple[FormView, ...]:
    """Return the form that asks for the rows of a table as a user sees them; none for a namespace."""
    if address.kind is not Kind.TABLE:
        return ()
    return (
        FormView(
            action=f"{page_request.base}/seen-as{address.path.removeprefix('/o')}",
            button="Preview",
            inputs=(FormInput(name="as", label="User", is_required=True),),
            title="See the rows as a user",
            method="get",
        ),
    )


def _target(page_request: PageRequest, address: ObjectAddress) -> RestrictionTarget:
    codec = codec_for(page_request.ctx.services.defaults)
    name = render_full_name(address.kind, (address.catalog, *address.levels), codec=codec)
    return RestrictionTarget(address.metalake, address.kind, name)


def _page_crumb(page_request: PageRequest, address: ObjectAddress) -> Link:
    return Link(address.name, page_request.base + address.path)


def _row(page_request: PageRequest, address: ObjectAddress, *, view: RestrictionView) -> tuple[SheetCell, ...]:
    terms, (kind, on) = view.restriction.terms, view.on
    masks = ", ".join(f"{each.column}: {each.action}" for each in terms.masks)
    own_path = display.render((address.catalog, *address.levels))
    is_own = kind is address.kind and on == own_path
    remove = FormView(
        action=restrictions_url(page_request, address),
        button="Remove",
        fields=hidden_fields(change="remove", name=view.restriction.name),
        label=f"Remove {view.restriction.name}",
        is_danger=True,
    )
    return (
        SheetCell(text=view.restriction.name, is_name=True, small="" if is_own else f"from {kind.word} {on}"),
        SheetCell(text=masks),
        SheetCell(text=_rows_text(terms)),
        SheetCell(text=_names(view.to) or "everybody"),
        SheetCell(text=_names(view.unless)),
        SheetCell(form=remove if is_own else None),
        SheetCell(
            text="Edit" if is_own and _is_editable(view) else "",
            href=(
                f"{restrictions_url(page_request, address)}?{urlencode({'edit': view.restriction.name})}#form"
                if is_own and _is_editable(view)
                else ""
            ),
        ),
    )


def _rows_text(terms: RestrictionTerms) -> str:
    """Return the text of a row filter, or the privileges that the restriction denies."""
    if terms.denies:
        return f"denies {', '.join(Privilege(each).word for each in terms.denies)}"
    return row_filter_text(terms.row_filter) if terms.row_filter else "all"


def _names(who: RestrictionPrincipals) -> str:
    pairs = ((word, names) for word, names in zip(_PRINCIPALS, who, strict=True))
    return ", ".join(f"{word} {name}" for word, names in pairs for name in names)


def _is_editable(view: RestrictionView) -> bool:
    """Return whether the form can have all of a restriction: nothing is denied, and at most one is named."""
    names = [name for each in view.to for name in each]
    return not view.restriction.terms.denies and len(names) <= 1


def _fields_of(view: RestrictionView) -> dict[str, str]:
    """Return the values of the form for a restriction."""
    terms = view.restriction.terms
    kind_and_name = next(
        ((word, names[0]) for word, names in zip(_PRINCIPALS, view.to, strict=True) if names), ("", "")
    )
    fields = {
        "name": view.restriction.name,
        "filter": sql_of(msgspec.json.decode(terms.row_filter)) if terms.row_filter else "",
        "whom": kind_and_name[0],
        "named": kind_and_name[1],
        "unless": ", ".join(
            f"{word}:{name}" for word, names in zip(_PRINCIPALS, view.unless, strict=True) for name in names
        ),
    }
    for number, mask in enumerate(terms.masks):
        fields |= {_input_name("column", number): mask.column, _input_name("mask", number): mask.action}
    return fields


def _input_name(name: str, number: int) -> str:
    """Return the name of an input of one mask: `column`, `column2`, `column3`."""
    return name if number == 0 else f"{name}{number + 1}"


async def _column_names(page_request: PageRequest, address: ObjectAddress) -> tuple[str, ...]:
    """Return the columns of a table to choose from; none for a namespace, and for callers who may not load it."""
    if address.kind is not Kind.TABLE:
        return ()
    try:
        visible = await page_request.ctx.read(address.scope, lambda view: table_visibility(view, address.levels))
    except PermissionDenied:  # who manages grants need not read the table: the columns are typed
        return ()
    schema = decode_metadata(visible.document.body).current_schema()
    return tuple(each.name for each in schema.fields[:_COLUMNS_MAX])


def _form(
    page_request: PageRequest, address: ObjectAddress, *, columns: tuple[str, ...], values: Mapping[str, str]
) -> FormView:
    """Return the form that sets a restriction, with the values of `values`."""
    principal = values.get("whom", "user" if not values else "")
    kinds = (Choice("", "for everybody"), *(Choice(each, f"for the {each}", each == principal) for each in _PRINCIPALS))
    rows = max(_MASK_ROWS, min(_MASK_ROWS_MAX, 2 + sum(1 for name in values if name.startswith("column"))))
    inputs = [FormInput(name="name", label="Name", value=values.get("name", ""), is_required=True)]
    for number in range(rows):
        name, words = _input_name("column", number), f"Column to mask{f' ({number + 1})' if number else ''}"
        own, mask = values.get(name, ""), values.get(_input_name("mask", number), "")
        column_names = (*columns, *((own,) if own and own not in columns else ()))
        chosen = (Choice("", "none"), *(Choice(each, each, each == own) for each in column_names)) if columns else ()
        inputs.append(FormInput(name=name, label=words, value=own, choices=chosen, begins_row=True))
        choices = tuple(Choice(each, each.replace("-", " "), each == mask) for each in _MASKS)
        inputs.append(
            FormInput(
                name=_input_name("mask", number),
                label=f"Mask{f' ({number + 1})' if number else ''}",
                value="",
                choices=choices,
            )
        )
    inputs += [
        FormInput(
            name="filter", label="Rows to keep, as region = 'EU'", value=values.get("filter", ""), begins_row=True
        ),
        FormInput(name="whom", label="For whom", choices=kinds, begins_row=True),
        FormInput(name="named", label="User, group, role", value=values.get("named", "")),
        FormInput(name="unless", label="Except, as user:ana, role:audit", value=values.get("unless", "")),
    ]
    return FormView(
        action=restrictions_url(page_request, address),
        button="Restrict" if not values else "Save",
        fields=hidden_fields(change="set"),
        inputs=tuple(inputs),
        title="Restrict what others read" if not values else f"Change {values['name']}",
    )


async def change(page_request: PageRequest) -> Response:
    """Set or remove a restriction, and redirect to the list."""
    address = parse_address(page_request.request.params)
    fields = {name: text.strip() for name, text in (await page_request.form()).items()}
    name, on = fields.get("name", ""), _target(page_request, address)
    if fields.get("change") == "set":
        names = await _column_names(page_request, address)
        page_request.retry = with_values(_form(page_request, address, columns=names, values={}), fields)
    if fields.get("change") not in ("set", "remove") or not name:
        raise BadRequest("Give the restriction a name")
    if fields["change"] == "remove":
        existed = await restriction_remove(page_request.ctx, on, name=name)
        notice = f"The restriction {name} is removed" if existed else f"There was no restriction {name} on this object"
    else:
        await restriction_set(page_request.ctx, on, name=name, request=_request_of(fields))
        notice = f"The restriction {name} is set"
    return redirect(f"{restrictions_url(page_request, address)}?{urlencode({'done': notice})}")


def _request_of(fields: dict[str, str]) -> RestrictionRequest:
    """Parse a form into a restriction. Raises BadRequest for an invalid field."""
    kind, name = fields.get("whom", ""), fields.get("named", "")
    if (kind not in _PRINCIPALS and kind != "") or bool(kind) is not bool(name):
        raise BadRequest("Name the user, group or role that the restriction is for, or choose everybody")
    to = RestrictionPrincipals(**{f"{kind}s": (name,)}) if kind else RestrictionPrincipals()
    masks: dict[str, str] = {}
    for number in range(_MASK_ROWS_MAX):
        column = fields.get(_input_name("column", number), "")
        if column in masks:
            raise BadRequest(f"The column {column} has two masks: choose one")
        if column:
            masks[column] = fields.get(_input_name("mask", number), "")
    return RestrictionRequest(_filter_of(fields.get("filter", "")), masks, to, _exceptions_of(fields.get("unless", "")))


def _filter_of(text: str) -> object:
    """Return the row filter of a form: a condition as text, or the JSON of a stored one; None for all rows."""
    if text.startswith("{"):
        try:
            return msgspec.json.decode(text, type=dict[str, object])
        except msgspec.MsgspecError as error:
            raise BadRequest(f"The rows to keep are not valid JSON: {error}") from None
    return text or None


def _exceptions_of(text: str) -> RestrictionPrincipals:
    """Parse the exceptions, such as `user:ana, role:audit`. Raises BadRequest for another form."""
    names: dict[str, list[str]] = {word: [] for word in _PRINCIPALS}
    for each in filter(None, map(str.strip, text.split(","))):
        word, mark, name = each.partition(":")
        if not mark or word not in names or not name:
            raise BadRequest(f"Write the exceptions as user:ana, group:eu, role:audit, not as {each[:100]}")
        names[word].append(name)
    return RestrictionPrincipals(*(tuple(names[word]) for word in _PRINCIPALS))


ROUTES = (
    ConsoleRoute(
        method="GET",
        path="/restrictions/{kind}/{path...}",
        handler=restrictions_page,
        operation="restrictions-page",
        query=("edit", "done"),
    ),
    ConsoleRoute(
        method="POST", path="/restrictions/{kind}/{path...}", handler=change, operation="restrict-from-console"
    ),
)
