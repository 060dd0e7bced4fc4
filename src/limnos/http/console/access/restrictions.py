# SPDX-License-Identifier: Apache-2.0
"""The page of an object's read restrictions: a list, a form that sets one, and buttons that remove them.

The services make all access decisions.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from limnos.http.console.access.objects import restrictions_url
from limnos.http.console.addresses import ObjectAddress, parse_address
from limnos.http.console.frame import Link, crumbs_of
from limnos.http.console.page_requests import ConsoleRoute, PageRequest
from limnos.http.console.responses import redirect
from limnos.http.console.sheets import (
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
from limnos.http.console.tabs import object_frame
from limnos.http.response import Response
from limnos.model.errors import BadRequest
from limnos.model.privileges import Privilege
from limnos.model.restrictions import RestrictionTerms
from limnos.names import display
from limnos.services.governance.restrictions import (
    RestrictionPrincipals,
    RestrictionRequest,
    RestrictionTarget,
    RestrictionView,
    restriction_remove,
    restriction_set,
    restrictions_list,
)
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


async def restrictions_page(page_request: PageRequest) -> Response:
    """Show the restrictions that apply to an object, and a form to set one."""
    address = parse_address(page_request.request.params)
    views = await restrictions_list(page_request.ctx, _target(page_request, address))
    frame = await object_frame(page_request, address)
    path = display.render((address.catalog, *address.levels))
    columns = (
        SheetColumn("Name"),
        SheetColumn("Masks"),
        SheetColumn("Rows", is_code=True),
        SheetColumn("For"),
        SheetColumn("Except"),
        SheetColumn("Action"),
    )
    rows = tuple(_row(page_request, address, view=each) for each in views)
    page = SheetPage(
        frame,
        f"Read restrictions of {path}",
        "lock",
        "A restriction masks columns or leaves out rows for the users that it names, or for everybody. Owners of the object are exempt. "
        "It takes effect at the next request. The rows to keep are a condition, such as region = 'EU'.",
        (*crumbs_of(page_request, address), _crumb(page_request, address)),
        sheets=(Sheet("", columns, rows, "No restriction applies to this object."),),
        forms=(_form(page_request, address),),
    )
    return sheet_response(page_request, page)


def _target(page_request: PageRequest, address: ObjectAddress) -> RestrictionTarget:
    codec = codec_for(page_request.ctx.services.defaults)
    name = render_full_name(address.kind, (address.catalog, *address.levels), codec=codec)
    return RestrictionTarget(address.metalake, address.kind, name)


def _crumb(page_request: PageRequest, address: ObjectAddress) -> Link:
    return Link(address.name, page_request.base + address.path)


def _row(page_request: PageRequest, address: ObjectAddress, *, view: RestrictionView) -> tuple[SheetCell, ...]:
    terms, (kind, on) = view.restriction.terms, view.on
    masks = ", ".join(f"{each.column}: {each.action}" for each in terms.masks)
    own = display.render((address.catalog, *address.levels))
    is_own = kind is address.kind and on == own
    remove = FormView(
        restrictions_url(page_request, address),
        "Remove",
        hidden_fields(change="remove", name=view.restriction.name),
        label=f"Remove {view.restriction.name}",
        is_danger=True,
    )
    return (
        SheetCell(view.restriction.name, is_name=True, small="" if is_own else f"from {kind.word} {on}"),
        SheetCell(masks),
        SheetCell(_rows_text(terms)),
        SheetCell(_names(view.to) or "everybody"),
        SheetCell(_names(view.unless)),
        SheetCell(form=remove if is_own else None),
    )


def _rows_text(terms: RestrictionTerms) -> str:
    """Return the text of a row filter, or the privileges that the restriction denies."""
    if terms.denies:
        return f"denies {', '.join(Privilege(each).word for each in terms.denies)}"
    return terms.row_filter or "all"


def _names(who: RestrictionPrincipals) -> str:
    pairs = ((word, names) for word, names in zip(_PRINCIPALS, who, strict=True))
    return ", ".join(f"{word} {name}" for word, names in pairs for name in names)


def _form(page_request: PageRequest, address: ObjectAddress) -> FormView:
    kinds = (Choice("", "for everybody"), *(Choice(each, f"for the {each}", each == "user") for each in _PRINCIPALS))
    inputs = (
        FormInput("name", "Name", is_required=True),
        FormInput("column", "Column to mask"),
        FormInput("mask", "Mask", choices=tuple(Choice(each, each.replace("-", " ")) for each in _MASKS)),
        FormInput("filter", "Rows to keep"),
        FormInput("whom", "For whom", choices=kinds),
        FormInput("named", "User, group, role"),
    )
    return FormView(
        restrictions_url(page_request, address),
        "Restrict",
        hidden_fields(change="set"),
        inputs,
        title="Restrict what others read",
    )


async def change(page_request: PageRequest) -> Response:
    """Set or remove a restriction, and redirect to the list."""
    address = parse_address(page_request.request.params)
    fields = {name: text.strip() for name, text in (await page_request.form()).items()}
    name, on = fields.get("name", ""), _target(page_request, address)
    if fields.get("change") == "set":
        page_request.retry = with_values(_form(page_request, address), fields)
    if fields.get("change") not in ("set", "remove") or not name:
        raise BadRequest("Give the restriction a name")
    if fields["change"] == "remove":
        existed = await restriction_remove(page_request.ctx, on, name=name)
        done = f"The restriction {name} is removed" if existed else f"There was no restriction {name} on this object"
    else:
        await restriction_set(page_request.ctx, on, name=name, request=_request_of(fields))
        done = f"The restriction {name} is set"
    return redirect(f"{restrictions_url(page_request, address)}?{urlencode({'done': done})}")


def _request_of(fields: dict[str, str]) -> RestrictionRequest:
    """Parse a form into a restriction. Raises BadRequest for an invalid field."""
    kind, name = fields.get("whom", ""), fields.get("named", "")
    if (kind not in _PRINCIPALS and kind != "") or bool(kind) is not bool(name):
        raise BadRequest("Name the user, group or role that the restriction is for, or choose everybody")
    to = RestrictionPrincipals(**{f"{kind}s": (name,)}) if kind else RestrictionPrincipals()
    masks = {fields["column"]: fields.get("mask", "")} if fields.get("column") else {}
    return RestrictionRequest(fields.get("filter") or None, masks, to, RestrictionPrincipals())


ROUTES = (
    ConsoleRoute("GET", "/restrictions/{kind}/{path...}", restrictions_page, "restrictions-page", ("done",)),
    ConsoleRoute("POST", "/restrictions/{kind}/{path...}", change, "restrict-from-console"),
)
