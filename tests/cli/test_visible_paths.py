# SPDX-License-Identifier: Apache-2.0
"""Answers about paths: tables of another system are no missing tables."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Run
from tests.client.fake import FakeServer

CATALOG = "/api/limnos/v1/metalakes/lake/catalogs/delta"
OBJECTS = "/api/limnos/v1/metalakes/lake/access/objects?path=delta&path=sales&path="
PREVIEW = f"{CATALOG}/tables/preview?table=sales.{{name}}&rows=10"
ORDERS = {"kind": "table", "name": "orders", "path": ["delta", "sales", "orders"]}


@pytest.mark.parametrize("name,is_there", [("orders", True), ("nope", False)])
def test_command_on_rows_names_an_external_table(fake: FakeServer, limnos: Run, name: str, *, is_there: bool) -> None:
    """The server does not know whether a table of another system exists until it asks: the list of the schema tells."""
    missing = {"error": {"code": "not-found", "message": f"Table does not exist: sales.{name} in catalog delta"}}
    fake.on("GET", PREVIEW.format(name=name), missing, status=404)
    fake.on("GET", f"{OBJECTS}{name}", {"objects": [], "complete": False})
    fake.on("GET", f"{OBJECTS}{name}", {"objects": [], "complete": False})
    for _ in range(3):
        fake.on("GET", f"{CATALOG}/children?path=sales&limit=500", {"children": [ORDERS]})

    error = limnos("head", f"delta.sales.{name}").error

    if is_there:
        assert (
            error["message"] == "delta.sales.orders is a table of another system, which has its rows, files and states"
        )
        assert str(error["hint"]).startswith("'limnos show delta.sales.orders --uri ")
    else:
        assert str(error["message"]).startswith("Table does not exist: sales.nope")


def test_granted_external_table_is_not_called_missing(fake: FakeServer, limnos: Run) -> None:
    """With a grant on it the server knows the table, and says that it is of another system."""
    message = "Table does not exist: sales.orders. There is a table of another system: describe it over Gravitino REST"
    fake.on("GET", PREVIEW.format(name="orders"), {"error": {"code": "not-found", "message": message}}, status=404)

    error = limnos("head", "delta.sales.orders").error

    assert "Table does not exist" not in str(error["message"])
    assert "is a table of another system" in str(error["message"])
