# SPDX-License-Identifier: Apache-2.0
"""Paths of objects that lie at a fixed depth: a path with more parts is refused, and never cut."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from limnos.client import ArgumentError, Client
from limnos.client.paths import catalog_name, shaped_parts
from tests.client.fake import FakeServer

LONG = "ml.shop.fresh.v2"
CALLS: dict[str, Callable[[Client], object]] = {
    "model-register": lambda c: c.models.register(LONG),
    "model-get": lambda c: c.models.get(LONG),
    "model-delete": lambda c: c.models.delete(LONG),
    "model-versions": lambda c: c.models.versions(LONG),
    "model-version": lambda c: c.models.version(LONG, 1),
    "model-link": lambda c: c.models.link(LONG, {"w": "file:///x"}),
    "model-aliases": lambda c: c.models.set_aliases(LONG, 0, add=["prod"]),
    "model-unlink": lambda c: c.models.unlink(LONG, 0),
    "model-list": lambda c: c.models.list("ml.shop.fresh"),
    "fileset-create": lambda c: c.filesets.create(LONG),
    "fileset-get": lambda c: c.filesets.get(LONG),
    "fileset-delete": lambda c: c.filesets.delete(LONG),
    "fileset-files": lambda c: c.filesets.files(LONG),
    "fileset-location": lambda c: c.filesets.location(LONG),
    "fileset-list": lambda c: c.filesets.list("ml.shop.fresh"),
    "schema-load": lambda c: c.schemas.load("ml.shop.fresh"),
    "schema-list": lambda c: c.schemas.list("ml.shop.fresh"),
    "schema-table": lambda c: c.schemas.table(LONG),
    "schema-topic": lambda c: c.schemas.topic(LONG),
    "catalog-owner": lambda c: c.owners.set("ml.shop", "ana", kind="catalog"),
    "catalog-tags": lambda c: c.tags.change("ml.shop", kind="catalog", adds=["pii"]),
    "catalog-alter": lambda c: c.objects.alter("ml.shop", kind="catalog", updates=[]),
}


@pytest.mark.parametrize("name", CALLS)
def test_longer_paths_are_refused_before_a_request(fake: FakeServer, client: Client, name: str) -> None:
    """A call with more parts than objects of its kind have raises ArgumentError with the form, and sends nothing."""
    with pytest.raises(ArgumentError, match=r"is too long for a (model|fileset|schema|table|topic|catalog): give "):
        CALLS[name](client)

    assert fake.asked == []


def test_paths_of_a_shape_are_parsed() -> None:
    """A path with the parts of the shape is returned; the message for another one has the shape."""
    assert shaped_parts("ml.`a.b`", "catalog", "schema") == ("ml", "a.b")
    assert catalog_name("main") == "main"
    with pytest.raises(ArgumentError, match=r"^'a\.b\.c' is too long for a schema: give catalog\.schema$"):
        shaped_parts("a.b.c", "catalog", "schema")
    with pytest.raises(ArgumentError, match="too short"):
        shaped_parts("a", "catalog", "schema")
    with pytest.raises(ArgumentError, match=r"^'main\.raw' is too long for a catalog: give its name alone$"):
        catalog_name("main.raw")
