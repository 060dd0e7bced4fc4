# SPDX-License-Identifier: Apache-2.0
"""The refusal of a location names the object that has it to users who may see the object, and to nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.driver import API, DriverNode, grant
from tests.http.iceberg import wire

TABLES = "/iceberg/v1/lake.main/namespaces"
NAME = "The other object is table main.a.t"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[DriverNode]:
    """A node with table main.a.t; ben may create tables in b alone, ana may also read those of a."""
    with wire.node_over(tmp_path) as driver:
        for name in ("a", "b"):
            driver.done("POST", TABLES, {"namespace": [name], "properties": {}})
        for user in ("ana", "ben"):
            grant(driver, user, "use_catalog", kind="CATALOG", on="main")
            grant(driver, user, "use_schema create_table", kind="SCHEMA", on="main.b")
        grant(driver, "ana", "use_schema select_table", kind="SCHEMA", on="main.a")
        driver.done("POST", f"{TABLES}/a/tables", {"name": "t", "schema": wire.SCHEMA})
        yield driver


def refusal(node: DriverNode, location: str, *, user: str) -> str:
    """Return the message about a new table at a location."""
    body = {"name": "x", "schema": wire.SCHEMA, "location": location}
    answer = node.post(f"{TABLES}/b/tables", body, user=user)
    assert answer.status == 400, answer.body
    return str(answer.json()["error"]["message"])


def location_of(node: DriverNode) -> str:
    """Return the location of table main.a.t."""
    return str(node.get(f"{TABLES}/a/tables/t").json()["metadata"]["location"])


def test_visible_holder_of_a_location_is_named(node: DriverNode) -> None:
    """A user who may see the table at or above a location reads its path; the catalog of a root has its name, too."""
    location = location_of(node)
    directory = {"lance-directory": location.rpartition("/")[0]}
    vector_catalog = {"name": "vec", "type": "relational", "provider": "lakehouse-generic", "properties": directory}

    same, below = (refusal(node, each, user="ana") for each in (location, f"{location}/in"))
    of_catalog = node.post(f"{API}/lake/catalogs", vector_catalog)

    assert NAME in same
    assert "is at location" in same
    assert NAME in below
    assert of_catalog.status == 400
    assert b"The other object is catalog main" in of_catalog.body


def test_hidden_and_dropped_holders_of_a_location_are_not_named(node: DriverNode) -> None:
    """A user who may not see the table reads that there is one, as everybody does of a dropped one."""
    location = location_of(node)

    hidden = refusal(node, location, user="ben")
    node.ask("DELETE", f"{TABLES}/a/tables/t")
    dropped = refusal(node, location, user="ana")

    for message in (hidden, dropped):
        assert "Another table is at location" in message
        assert "other object" not in message
