# SPDX-License-Identifier: Apache-2.0
"""The page of restrictions: users who may grant on an object set and remove them, and others are refused."""

from __future__ import annotations

import html

import pytest

from tests.http.driver import OWN, DriverNode
from tests.rooms.console.http.access.test_objects import add_reader
from tests.rooms.console.http.visitor import ConsoleVisitor, text_of

PAGE = "/console/restrictions/table/lake/main/raw/flights"
ACCESS = "/console/access/table/lake/main/raw/flights"
API = f"{OWN}/metalakes/lake/objects/table/main.raw.flights/restrictions"
MASK = {
    "change": "set",
    "name": "private",
    "column": "id",
    "mask": "replace-with-null",
    "whom": "user",
    "named": "ana",
}


def restrictions_of(node: DriverNode) -> list[dict]:
    """Return the restrictions that apply to the table."""
    return node.done("GET", API)["restrictions"]


def test_a_column_is_masked_and_unmasked(lake: DriverNode) -> None:
    """The access page leads to the form; a mask for one user is listed with its terms and can be removed."""
    add_reader(lake)
    admin = ConsoleVisitor(lake).sign_in()

    led = PAGE in admin.read(ACCESS).hrefs
    done = admin.post(PAGE, MASK)
    page = admin.read(done.headers["location"])
    (row,) = restrictions_of(lake)
    removed = admin.post(PAGE, {"change": "remove", "name": "private"})

    assert led
    assert "private id: replace-with-null all user ana" in page.text
    assert (row["masks"], row["to"]["users"]) == ({"id": "replace-with-null"}, ["ana"])
    assert "is removed" in admin.read(removed.headers["location"]).text
    assert restrictions_of(lake) == []


def test_namespace_row_filter_is_shown_on_its_table(lake: DriverNode) -> None:
    """A row filter on a namespace for all users applies to its table. The table's page shows it without a button to
    remove it.
    """
    admin = ConsoleVisitor(lake).sign_in()
    fields = {"change": "set", "name": "few", "filter": "id < 10"}

    assert admin.post("/console/restrictions/namespace/lake/main/raw", fields).status == 303
    page = admin.read(PAGE)

    assert "few from namespace main.raw" in page.text
    assert "everybody" in page.text
    assert page.actions.count(("post", PAGE)) == 1


@pytest.mark.parametrize("user", ["ana", "stranger"])
def test_user_without_rights_cannot_see_or_set_restrictions(lake: DriverNode, user: str) -> None:
    """A reader and a user without rights are refused the page and the form, and their pages have no link to it."""
    add_reader(lake)
    ConsoleVisitor(lake).sign_in().post(PAGE, MASK)
    visitor = ConsoleVisitor(lake).sign_in(user)

    assert visitor.get(PAGE).status == 403
    assert visitor.post(PAGE, MASK | {"name": "other"}).status == 403
    assert visitor.post(PAGE, {"change": "remove", "name": "private"}).status == 403
    assert PAGE not in text_of(visitor.get(ACCESS))
    assert [each["name"] for each in restrictions_of(lake)] == ["private"]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"name": ""},
        {"named": ""},
        {"whom": "hat"},
        {"whom": ""},
        {"mask": "hide"},
        {"column": "gone"},
        {"change": "burn"},
    ],
)
def test_invalid_form_is_400(lake: DriverNode, fields: dict[str, str]) -> None:
    """A missing name, user or change, and an unknown mask or column, are 400."""
    add_reader(lake)
    admin = ConsoleVisitor(lake).sign_in()

    assert admin.post(PAGE, {**MASK, **fields} if fields else {}).status == 400
    assert restrictions_of(lake) == []


def test_form_offers_columns_and_sets_several_masks_with_exceptions(lake: DriverNode) -> None:
    """The form chooses among the table's columns; several masks, a filter and exceptions are one restriction, which the
    form changes afterwards.
    """
    add_reader(lake)
    admin = ConsoleVisitor(lake).sign_in()
    text = text_of(admin.get(PAGE))
    assert '<option value="id">' in text
    assert '<option value="place">' in text
    fields = MASK | {
        "whom": "",
        "named": "",
        "column2": "place",
        "mask2": "replace-with-null",
        "filter": "id < 10",
        "unless": "user:ana, user: admin",
    }
    assert admin.post(PAGE, fields | {"unless": "user:ana,ana"}).status == 400
    assert admin.post(PAGE, fields | {"column2": "id"}).status == 400

    assert admin.post(PAGE, fields | {"unless": "user:ana, user:admin"}).status == 303
    (row,) = restrictions_of(lake)
    edit = next(href for href in admin.read(PAGE).hrefs if "edit=private" in href)
    form = text_of(admin.get(edit.partition("#")[0]))

    assert row["masks"] == {"id": "replace-with-null", "place": "replace-with-null"}
    assert sorted(row["except"]["users"]) == ["admin", "ana"]
    assert '<option value="place" selected>' in form
    assert 'value="user:admin, user:ana"' in form or 'value="user:ana, user:admin"' in form
    assert 'name="column4"' in form
    value = html.unescape(form.partition('name="filter" value="')[2].partition('"')[0])
    assert admin.post(PAGE, fields | {"filter": value, "unless": "user:ana", "column2": ""}).status == 303
    (changed,) = restrictions_of(lake)
    assert changed["masks"] == {"id": "replace-with-null"}
    assert changed["filter"] == row["filter"]
