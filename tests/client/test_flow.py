# SPDX-License-Identifier: Apache-2.0
"""Arguments of calls: one text is not taken for a sequence of its letters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from limnos.client import ArgumentError, AsyncClient, Client
from tests.client.fake import FakeServer

CALLS: dict[str, Callable[[Any], object]] = {
    "aliases": lambda c: c.models.link("ml.shop.nearest", {"w": "file:///x"}, aliases="prod"),
    "uris": lambda c: c.models.link("ml.shop.nearest", "file:///x"),
    "removals": lambda c: c.catalogs.alter("main", removals="key"),
    "columns": lambda c: c.previews.head("main.raw.t", columns="day"),
    "users": lambda c: c.groups.add("team", "ana"),
    "roles": lambda c: c.roles.grant_to_user("ana", "reader"),
    "privileges": lambda c: c.roles.allow("reader", "SELECT_TABLE", on="main", kind="catalog"),
    "adds": lambda c: c.tags.change("main", kind="catalog", adds="pii"),
    "allowed_values": lambda c: c.tags.create("level", allowed_values="high"),
    "through": lambda c: c.access.explain("table_read", "main.raw.t", through="main.raw.v"),
    "steps": lambda c: c.runs.start("daily", steps="load"),
    "properties": lambda c: c.models.register("ml.shop.nearest", properties="acc=1"),
}


@pytest.mark.parametrize("name", CALLS)
def test_single_text_is_refused_for_several_values(fake: FakeServer, client: Client, name: str) -> None:
    """A text in the place of several values is refused with the argument and its form, and nothing is sent."""
    with pytest.raises(ArgumentError, match=f"^the argument {name} takes (several values|a mapping), as {name}="):
        CALLS[name](client)

    assert fake.asked == []


def test_awaited_call_refuses_a_single_text(fake: FakeServer) -> None:
    """The asynchronous client raises the error where the call is awaited."""

    async def link() -> None:
        async with AsyncClient(fake.uri, user="ana") as client:
            call = client.models.link("ml.shop.nearest", {"w": "file:///x"}, aliases="prod")
            with pytest.raises(ArgumentError, match="aliases"):
                await call

    asyncio.run(link())

    assert fake.asked == []


def test_several_values_may_be_a_list_tuple_or_set(fake: FakeServer, client: Client) -> None:
    """Lists, tuples, sets and generators of texts are sent as they are; paths may be one text."""
    path = "/api/metalakes/lake/catalogs/ml/schemas/shop/models/nearest/versions"
    fake.on("POST", path, {"code": 0})

    for aliases in (["prod"], ("prod",), {"prod"}, (each for each in ["prod"])):
        client.models.link("ml.shop.nearest", {"w": "file:///x"}, aliases=aliases)

    assert [each.body["aliases"] for each in fake.asked if isinstance(each.body, dict)] == [["prod"]] * 4
