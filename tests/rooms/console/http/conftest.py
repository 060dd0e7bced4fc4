# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the console's tests: a small lake with ordinary names and with names that contain markup."""

from __future__ import annotations

import pytest

from tests.http.driver import DriverNode
from tests.http.iceberg import wire
from tests.rooms.console.http.visitor import ConsoleVisitor

NASTY = "<script>x</script>\"' ../up \N{PILE OF POO} \N{ARABIC LETTER ALEF}"
SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long", "doc": "the number"},
        {
            "id": 2,
            "name": "place",
            "required": False,
            "doc": NASTY,
            "type": {"type": "struct", "fields": [{"id": 3, "name": "town", "required": False, "type": "string"}]},
        },
    ],
}
ICEBERG = "/iceberg/v1/lake.main"


def add_table(node: DriverNode, namespace: str, name: str, schema: dict = SCHEMA, **properties: str) -> None:
    """Create an Iceberg table as admin."""
    body = {"name": name, "schema": schema, "properties": properties}
    node.done("POST", f"{ICEBERG}/namespaces/{namespace}/tables", body)


def commit_flights(node: DriverNode, *updates: object) -> None:
    """Commit updates to the table `raw.flights` as admin."""
    answer = wire.commit(node, "raw", "flights", updates=updates)
    assert answer.status == 200, answer.body


@pytest.fixture
def lake(node: DriverNode) -> DriverNode:
    """A node with the tables `raw.flights` and `raw.nyc.hops`."""
    for levels in (["raw"], ["raw", "nyc"]):
        node.done(
            "POST",
            f"{ICEBERG}/namespaces",
            {"namespace": levels, "properties": {"comment": "as delivered", "team": "north"}},
        )
    add_table(node, "raw", "flights", comment="Flights of three airports")
    add_table(node, "raw%1Fnyc", "hops")
    return node


@pytest.fixture
def admin(lake: DriverNode) -> ConsoleVisitor:
    """The admin, signed in."""
    return ConsoleVisitor(lake).sign_in()
