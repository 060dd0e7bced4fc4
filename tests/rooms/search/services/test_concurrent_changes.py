# SPDX-License-Identifier: Apache-2.0
"""Searches beside changes: a change at any point of a search before its last read decides what is found."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

import pytest

from limnos.access.authentication import Credential
from limnos.rooms.search.services.visible_nodes import CatalogsOutdated, visible_nodes
from limnos.services.lookup.visibility import usable_catalogs_of
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.store.objects.name_search import COLUMNS, SearchCandidate
from limnos.store.sql import Load, Sql
from tests.http.conftest import empty_database, fresh  # noqa: F401 - fixtures
from tests.http.driver import API, OWN, DriverNode, grant, node_at
from tests.http.iceberg.wire import make_space, make_table

Change = Callable[[DriverNode], Awaitable[None]]


class WatchedReads:
    """Counts the reads of requests, and makes a change before one of them."""

    def __init__(self, node: DriverNode, *, at: int, change: Callable[[], Awaitable[None]]) -> None:
        self.node = node
        self.reads = 0
        self._at, self._change, self._is_changing = at, change, False

    async def before_read(self) -> None:
        """Count a read of the watched request, and make the change if it is the one."""
        if self._is_changing:
            return
        self.reads += 1
        if self.reads == self._at:
            self._is_changing = True
            await self._change()
            self._is_changing = False


def search_beside(
    node: DriverNode,
    query: str,
    *,
    at: int,
    change: Callable[[], Awaitable[None]],
) -> tuple[list[str], int]:
    """Search as ana, with a change before the read of this number. Returns the names found and the number of reads."""
    watched = WatchedReads(node, at=at, change=change)

    def counted(real: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def read(ctx: Context, *args: Any, **more: Any) -> Any:  # noqa: ANN401 - passed on
            await watched.before_read()
            return await real(ctx, *args, **more)

        return read

    with pytest.MonkeyPatch.context() as patch:
        for name in ("read", "look_up"):
            patch.setattr(Context, name, counted(getattr(Context, name)))
        answer = node.get(f"{OWN}/metalakes/lake/search?q={quote(query)}", user="ana")
    assert answer.status == 200, answer.body
    return [str(hit["path"][-1]) for hit in answer.json()["hits"]], watched.reads


async def rename_tag(node: DriverNode) -> None:
    """Rename the tag `pii`."""
    update = {"updates": [{"@type": "rename", "newName": "gone"}]}
    assert (await node.answer("PUT", f"{API}/lake/tags/pii", update)).status == 200


async def hide_tag(node: DriverNode) -> None:
    """Revoke the right to load the tag `pii`."""
    body = {"roleNames": ["of tags"]}
    assert (await node.answer("PUT", f"{API}/lake/permissions/users/ana/revoke", body)).status == 200


async def remake_catalog(node: DriverNode) -> None:
    """Drop the catalog, and create an empty one of the same name."""
    assert (await node.answer("DELETE", f"{API}/lake/catalogs/side?force=true")).status == 200
    body = {"name": "side", "type": "FILESET", "provider": "fileset"}
    assert (await node.answer("POST", f"{API}/lake/catalogs", body)).status == 200


def fill(node: DriverNode) -> None:
    """Create a table with a tag, and a catalog with a schema, which ana may see."""
    make_space(node, "a")
    make_table(node, "a", "secret")
    node.done("POST", f"{API}/lake/tags", {"name": "pii"})
    node.done("POST", f"{API}/lake/objects/table/main.a.secret/tags", {"tagsToAdd": ["pii"]})
    node.done("POST", f"{API}/lake/catalogs", {"name": "side", "type": "FILESET", "provider": "fileset"})
    node.done("POST", f"{API}/lake/catalogs/side/schemas", {"name": "hidden"})
    grant(node, "ana", "use_catalog use_schema select_table read_fileset", kind="METALAKE", on="lake")
    rules = [{"name": "apply_tag", "condition": "allow"}]
    objects = [{"fullName": "pii", "type": "TAG", "privileges": rules}]
    node.done("POST", f"{API}/lake/roles", {"name": "of tags", "properties": {}, "securableObjects": objects})
    node.done("PUT", f"{API}/lake/permissions/users/ana/grant", {"roleNames": ["of tags"]})


@pytest.mark.parametrize("query", ["tag:pii", "tag:pii secret", "tag:pii kind:table"])
@pytest.mark.parametrize("change", [rename_tag, hide_tag])
def test_search_by_a_tag_does_not_find_what_changes_hide_meanwhile(
    fresh: Callable[[str], Any],  # noqa: F811 - a fixture
    query: str,
    change: Change,
) -> None:
    """Wherever the change comes before the last read of a search by a tag, the search tells no object that has the tag
    to a caller who may not load it any more.
    """
    with node_at(fresh("undisturbed")) as node:
        fill(node)
        undisturbed, reads = search_beside(node, query, at=-1, change=lambda: change(node))
    assert undisturbed == ["secret"]
    assert reads > 3

    names = {}
    for at in range(1, reads):
        with node_at(fresh(f"at{at}")) as node:
            fill(node)
            names[at] = search_beside(node, query, at=at, change=lambda node=node: change(node))[0]
    assert {at: each for at, each in names.items() if each} == {}


def test_objects_of_a_remade_catalog_are_outdated(fresh: Callable[[str], Any]) -> None:  # noqa: F811 - a fixture
    """If a catalog of the same name is made anew after the candidates were read, they are read again."""
    with node_at(fresh("data")) as node:
        fill(node)
        ctx = Context(node.built.services, Credential(user="admin"), "test")
        home = node.runner.run(ctx.read(RequestScope("lake"), usable_catalogs_of))
        candidates = node.runner.run(ctx.look_up(_candidates))
        before = node.runner.run(visible_nodes(ctx, "lake", home=home, candidates=candidates))
        node.runner.run(remake_catalog(node))
        with pytest.raises(CatalogsOutdated):
            node.runner.run(visible_nodes(ctx, "lake", home=home, candidates=candidates))

    assert [each.path for each in before.values()] == [("side", "hidden")]


def _candidates() -> Load[list[SearchCandidate]]:
    rows = yield Sql(f"SELECT {COLUMNS} FROM node n WHERE n.name = 'hidden'"), {}
    return [SearchCandidate._make(row) for row in rows]
