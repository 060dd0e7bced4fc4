# SPDX-License-Identifier: Apache-2.0
"""Pages of facts, lists and forms that need no template of their own.

Must not know resources: a page defines its columns, cells and forms.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from limnos.http.response import Response
from limnos.model.errors import BadRequest
from limnos.rooms.console.http.frame import Frame, Link
from limnos.rooms.console.http.page_requests import PageRequest
from limnos.rooms.console.http.rendering import render
from limnos.rooms.console.http.responses import html_response
from limnos.rooms.console.http.tabs import Chip, Fact

NUMBER_DIGITS_MAX = 18


class HiddenField(msgspec.Struct, frozen=True):
    """A hidden field of a form."""

    name: str
    value: str


class Choice(msgspec.Struct, frozen=True):
    """An option of a selection in a form."""

    value: str
    text: str
    is_chosen: bool = False


class FormInput(msgspec.Struct, frozen=True, kw_only=True):
    """An input of a form: a text field; with `choices` a selection, with `rows` a text area.

    `suggestions` are values that the browser offers for a text field. Only one input of a page with a given name may
    have them. `begins_row`: it stands below the inputs before it, however wide the page is.
    """

    name: str
    label: str
    value: str = ""
    choices: tuple[Choice, ...] = ()
    is_required: bool = False
    rows: int = 0
    suggestions: tuple[str, ...] = ()
    begins_row: bool = False


class FormView(msgspec.Struct, frozen=True, kw_only=True):
    """A form that is sent to the URL `action`. `label` is the accessible name of its button, if the button's text alone
    is ambiguous.
    """

    action: str
    button: str
    fields: tuple[HiddenField, ...] = ()
    inputs: tuple[FormInput, ...] = ()
    title: str = ""
    label: str = ""
    is_danger: bool = False
    is_primary: bool = False
    method: str = "post"
    is_inline: bool = False
    """Whether it lies in a row of a list, whose columns are the labels of its inputs."""


class SheetColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a list. `hides` hides it on narrow screens; `is_long` cuts its texts after two lines; `is_wrapped`
    breaks them at any character; `is_quoted` keeps the line ends of texts of users.
    """

    text: str
    hides: bool = False
    is_number: bool = False
    is_code: bool = False
    is_long: bool = False
    is_wrapped: bool = False
    is_quoted: bool = False


class SheetCell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell of a list: text, a link, chips, a time with its age, a form, or several of these."""

    text: str = ""
    href: str = ""
    chips: tuple[Chip, ...] = ()
    at_ms: int | None = None
    moment_ms: int | None = None
    """A time that is shown in full, such as a future expiry."""
    form: FormView | None = None
    is_name: bool = False
    small: str = ""


class Sheet(msgspec.Struct, frozen=True, kw_only=True):
    """A list. `note` is shown if the list is empty; `more` is a sentence below the rows."""

    title: str
    columns: tuple[SheetColumn, ...]
    rows: tuple[tuple[SheetCell, ...], ...]
    note: str = ""
    more: str = ""
    following: str = ""


class TabPart(msgspec.Struct, frozen=True):
    """Facts, lists and forms as a part of another page; `warning` is shown before them."""

    facts: tuple[Fact, ...] = ()
    sheets: tuple[Sheet, ...] = ()
    forms: tuple[FormView, ...] = ()
    warning: str = ""


class CodeBlock(msgspec.Struct, frozen=True):
    """A block of text in monospace. With `id` it has a copy button."""

    title: str
    text: str
    id: str = ""


class SheetPage(msgspec.Struct, frozen=True, kw_only=True):
    """The data of a page of facts, lists and forms."""

    frame: Frame
    title: str
    icon: str = ""
    intro: str = ""
    crumbs: tuple[Link, ...] = ()
    chips: tuple[Chip, ...] = ()
    tabs: tuple[Link, ...] = ()
    facts: tuple[Fact, ...] = ()
    warning: str = ""
    blocks: tuple[CodeBlock, ...] = ()
    sheets: tuple[Sheet, ...] = ()
    forms: tuple[FormView, ...] = ()
    cancel: str = ""
    """The URL of the link that cancels the form."""


def sheet_response(
    page_request: PageRequest, page: SheetPage, *, status: int = 200, is_secret: bool = False
) -> Response:
    """Render a page. A page with a secret is never compressed."""
    return html_response(page_request.request, render("sheet.html", page), status=status, is_secret=is_secret)


def hidden_fields(**fields: str) -> tuple[HiddenField, ...]:
    """Return hidden fields from names and values."""
    return tuple(HiddenField(name, value) for name, value in fields.items())


def with_values(form: FormView, fields: Mapping[str, str]) -> FormView:
    """Return a copy of a form whose inputs have the values that were sent."""
    inputs = tuple(
        msgspec.structs.replace(
            each,
            value=fields.get(each.name, each.value),
            choices=tuple(
                msgspec.structs.replace(choice, is_chosen=choice.value == fields[each.name])
                if each.name in fields
                else choice
                for choice in each.choices
            ),
        )
        for each in form.inputs
    )
    return msgspec.structs.replace(form, inputs=inputs)


def number_field(text: str | None, *, what: str) -> int:
    """Parse a number from a form or URL. Raises BadRequest, which calls it `what`, if it is missing or invalid."""
    if not text or not (text.isascii() and text.isdigit() and len(text) <= NUMBER_DIGITS_MAX):
        raise BadRequest(f"{what} must be a number")
    return int(text)
