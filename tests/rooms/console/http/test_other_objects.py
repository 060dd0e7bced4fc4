# SPDX-License-Identifier: Apache-2.0
"""Pages of views, models and functions: their text, versions and properties."""

from __future__ import annotations

from tests.http.driver import DriverNode
from tests.rooms.console.http.conftest import ICEBERG
from tests.rooms.console.http.visitor import ConsoleVisitor

API = "/api/metalakes/lake"


def add_catalog(node: DriverNode, name: str, *, type: str, provider: str) -> None:
    """Create a catalog with the schema `s`."""
    node.done(
        "POST", f"{API}/catalogs", {"name": name, "type": type, "provider": provider, "comment": "", "properties": {}}
    )
    node.done("POST", f"{API}/catalogs/{name}/schemas", {"name": "s", "comment": "", "properties": {}})


def test_view_shows_its_query(admin: ConsoleVisitor) -> None:
    """A view's page has the text of each dialect, and the columns."""
    version = {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "default-namespace": ["raw"],
        "representations": [{"type": "sql", "sql": "SELECT id FROM flights WHERE a < b", "dialect": "spark"}],
    }
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
    body = {"name": "late", "schema": schema, "view-version": version, "properties": {"comment": "the late ones"}}
    admin.node.done("POST", f"{ICEBERG}/namespaces/raw/views", body)

    page = admin.read("/console/o/view/lake/main/raw/late")

    for words in ("Query (spark)", "SELECT id FROM flights WHERE a < b", "id long", "the late ones"):
        assert words in page.text


def test_model_shows_its_versions(admin: ConsoleVisitor) -> None:
    """A model's page lists the versions newest first, with aliases and files."""
    add_catalog(admin.node, "ml", type="model", provider="model")
    admin.node.done(
        "POST", f"{API}/catalogs/ml/schemas/s/models", {"name": "delay", "comment": "guesses", "properties": {}}
    )
    link = {"uri": "s3://models/delay/0", "comment": "first", "properties": {}, "aliases": ["best"]}
    admin.node.done("POST", f"{API}/catalogs/ml/schemas/s/models/delay/versions", link)

    page = admin.read("/console/o/model/lake/ml/s/delay")

    for words in ("Versions", "best", "s3://models/delay/0", "guesses"):
        assert words in page.text
