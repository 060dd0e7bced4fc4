# SPDX-License-Identifier: Apache-2.0
"""Two indexers at once: words and positions of the later one stay."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from limnos.services.search.indexing import index_step
from limnos.store.activity.search_index import zones_behind_read
from tests.http.conftest import empty_database, fresh, node  # noqa: F401 - fixtures
from tests.http.driver import OWN, DriverNode
from tests.http.iceberg.wire import make_table, set_properties, table_path


def index(node: DriverNode) -> None:  # noqa: F811 - a fixture
    """Index all committed changes."""
    while node.runner.run(index_step(node.built.services)):
        pass


def hits(node: DriverNode, word: str) -> list[str]:  # noqa: F811 - a fixture
    """Return the names of the objects that are found by a word."""
    answer = node.done("GET", f"{OWN}/metalakes/lake/search?q={word}")
    return [str(hit["path"][-1]) for hit in answer["hits"]]


@pytest.mark.parametrize("is_indexed", [True, False])
def test_slower_of_two_indexers_writes_nothing(
    node: DriverNode,  # noqa: F811 - a fixture
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_indexed: bool,
) -> None:
    """An indexer that read the words of a zone before another one indexed later changes writes neither the earlier
    words nor the earlier position.
    """
    make_table(node, "a", "t")
    if is_indexed:
        index(node)
    services, store = node.built.services, node.built.services.store
    submit, pending = store.submit, [True]

    async def change(words: str) -> None:
        body = {"requirements": [], "updates": [set_properties(comment=words)]}
        assert (await node.answer("POST", table_path("a", "t"), body)).status == 200

    async def submit_late(*args: Any, **more: Any) -> Any:  # noqa: ANN401 - passed on
        if pending.pop() if pending else False:
            await change("younger")
            while await index_step(services):
                pass
        return await submit(*args, **more)

    node.runner.run(change("older"))
    monkeypatch.setattr(store, "submit", submit_late)
    node.runner.run(index_step(services))

    assert node.runner.run(services.gate.look_up(partial(zones_behind_read, limit=9))) == []
    assert (hits(node, "younger"), hits(node, "older")) == (["t"], [])
