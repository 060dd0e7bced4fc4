# SPDX-License-Identifier: Apache-2.0
"""Random lakes compared with plain Python: results on two nodes after random changes, for an owner and a reader.

`LIMNOS_TEST_SEARCHES` is the number of lakes; the full check uses 2,000.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest

from limnos.rooms.search.services.indexing import index_step
from limnos.store.activity.search_index import known_words_read
from tests.http.conftest import empty_database, fresh  # noqa: F401 - fixtures
from tests.http.driver import OWN, DriverNode, grant, node_at
from tests.http.iceberg.wire import commit, make_table, set_properties, table_path

LAKES = int(os.environ.get("LIMNOS_TEST_SEARCHES", "2"))
CHANGES = 12
WORDS = ("air", "airport", "bay", "bayou", "day", "delta", "flights", "harbour")
Lake = dict[tuple[str, str], tuple[str, str]]
"""Tables by namespace and name, each with a column's name and a comment."""


@pytest.fixture
def nodes(fresh: Callable[[str], Path]) -> Iterator[tuple[DriverNode, DriverNode]]:  # noqa: F811 - a fixture
    """Two nodes over one store."""
    data = fresh("data")
    with node_at(data) as one, node_at(data) as other:
        yield one, other


def words_in(text: str) -> list[str]:
    """Return the words of a name or text, and the whole text without separators."""
    parts = [part for part in re.split("[_ ]+", text) if part]
    return [*parts, "".join(parts)]


def expected(lake: Lake, words: list[str], may: Callable[[str, str], bool]) -> set[str]:
    """Return the expected hits of a search for words, computed in plain Python."""
    hits = set()
    for (space, name), (column, comment) in lake.items():
        own = [each for text in (name, column, "id", comment) for each in words_in(text)]
        above = [*words_in(space), "main"]
        met = [any(each.startswith(word) for each in own) for word in words]
        reached = [any(each.startswith(word) for each in above) for word in words]
        is_exact = name.startswith(" ".join(words))
        if may(space, name) and (is_exact or (any(met) and all(map(max, met, reached)))):
            hits.add(f"main.{space}.{name}")
    return hits


def name_of(dice: random.Random) -> str:
    """Return a name of one or two words."""
    return "_".join(dice.sample(WORDS, dice.choice((1, 1, 2))))


def change(dice: random.Random, node: DriverNode, lake: Lake) -> None:
    """Create, alter, move or drop a table, in the store and in the model."""
    tables = sorted(key for key in lake if key[1] != "first")
    kind = dice.choice(("make", "make", "alter", "move", "drop")) if tables else "make"
    space, name = name_of(dice), name_of(dice)
    if kind == "make":
        column, comment = name_of(dice), " ".join(dice.sample(WORDS, 2))
        if (space, name) not in lake:
            fields = [{"id": 1, "name": "id", "required": True, "type": "long"}]
            fields.append({"id": 2, "name": column, "required": False, "type": "string"})
            schema = {"type": "struct", "fields": fields}
            make_table(node, space, name, schema=schema, properties={"comment": comment})
            lake[space, name] = (column, comment)
        return
    old = dice.choice(tables)
    column, comment = lake.pop(old)
    if kind == "alter":
        comment = " ".join(dice.sample(WORDS, 2))
        commit(node, *old, updates=[set_properties(comment=comment)])
        lake[old] = (column, comment)
    elif kind == "move":
        target = (old[0], name)
        if target in lake:
            lake[old] = (column, comment)
            return
        body = {"kind": "table", "source": list(old), "target": list(target)}
        node.done("POST", f"{OWN}/metalakes/lake/catalogs/main/move", body)
        lake[target] = (column, comment)
    else:
        assert node.delete(table_path(*old)).status == 204


def catch_up(node: DriverNode) -> None:
    """Index all changes."""
    while node.runner.run(index_step(node.built.services)):
        pass


def search(node: DriverNode, words: list[str], user: str) -> set[str]:
    """Return the tables that a search finds."""
    target = f"{OWN}/metalakes/lake/search?limit=200&q={quote(' '.join(words))}+kind:table"
    answer = node.done("GET", target, user=user)
    assert (answer["more"], answer["bounded"], answer["behind"]) == (False, False, 0)
    return {".".join(hit["path"]) for hit in answer["hits"]}


@pytest.mark.parametrize("seed", range(LAKES))
def test_search_on_another_node_matches_the_model(nodes: tuple[DriverNode, DriverNode], seed: int) -> None:
    """After each random change on one node, the other node finds exactly the model's tables, for an owner and a
    reader.
    """
    dice, lake = random.Random(seed), Lake()
    one, other = nodes
    catch_up(one)
    open_space = name_of(dice)
    make_table(one, open_space, "first")
    lake[open_space, "first"] = ("city", "")
    hidden = f"main.{open_space}.first"
    grant(one, "ana", "USE_CATALOG", kind="CATALOG", on="main")
    grant(one, "ana", "USE_SCHEMA SELECT_TABLE", kind="SCHEMA", on=f"main.{open_space}")
    grant(one, "ana", "SELECT_TABLE", kind="TABLE", on=hidden, condition="deny")
    for _ in range(CHANGES):
        change(dice, dice.choice(nodes), lake)
        if dice.random() < 0.3:
            one.runner.run(index_step(one.built.services))
        words = [word[: dice.randint(2, len(word))] for word in dice.sample(WORDS, dice.choice((1, 1, 2, 3)))]
        asking = dice.choice(nodes)
        everything = expected(lake, words, lambda _, __: True)
        visible = expected(lake, words, lambda space, name: space == open_space and name != "first")

        assert search(asking, words, "admin") == everything, words
        assert search(asking, words, "ana") == visible, words
    assert other.get(table_path(open_space, "first"), user="ana").status == 403


def test_words_of_dropped_tables_are_deleted(nodes: tuple[DriverNode, DriverNode]) -> None:
    """When the last table with a word is dropped or renamed, the word is deleted from the vocabulary. Other words are
    not.
    """
    one, _ = nodes
    make_table(one, "day", "harbour")
    make_table(one, "day", "harbour_delta")
    catch_up(one)
    assert known(one, "harbour", "delta") == ["harbour", "delta"]

    assert one.delete(table_path("day", "harbour_delta")).status == 204
    catch_up(one)

    assert known(one, "harbour", "delta") == ["harbour"]


def known(node: DriverNode, *words: str) -> list[str]:
    """Return which of some words are in the vocabulary."""
    gate = node.built.services.gate
    return node.runner.run(gate.look_up(partial(known_words_read, words)))
