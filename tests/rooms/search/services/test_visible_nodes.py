# SPDX-License-Identifier: Apache-2.0
"""Random lakes with random grants: a search finds exactly the objects that the user may load, and reveals no other
name.

The full check uses 2,000 lakes. The routes that load objects determine what the user may load.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from limnos.rooms.search.services.indexing import index_step
from tests.http.conftest import empty_database, fresh  # noqa: F401 - fixtures
from tests.http.driver import API, OWN, DriverNode, grant, node_at

pytestmark = pytest.mark.slow

LAKES = 2_000
EACH = 20
"""The number of lakes of a test, which share a node."""
WORDS = ("airport", "bayou", "delta", "flights", "harbour", "island")
MARKS = "bcdfghjklmnpqrstvwxz"
RULES = (
    ("CATALOG", ("USE_CATALOG", "USE_CATALOG", "USE_SCHEMA", "SELECT_TABLE", "CREATE_SCHEMA")),
    ("SCHEMA", ("USE_SCHEMA", "USE_SCHEMA SELECT_TABLE", "SELECT_TABLE", "CREATE_TABLE")),
    ("TABLE", ("SELECT_TABLE", "MODIFY_TABLE")),
)
Paths = dict[str, str]
"""Objects of a lake: dotted paths, each with the address that loads the object."""


def mark(dice: random.Random) -> str:
    """Return a word that only one object has."""
    return "q" + "".join(dice.choices(MARKS, k=8))


def index(node: DriverNode) -> None:
    """Index all committed changes."""
    while node.runner.run(index_step(node.built.services)):
        pass


def create_lake(node: DriverNode, dice: random.Random, catalog: str) -> tuple[Paths, dict[str, str]]:
    """Create a lake. Returns its objects, and the word that only each one has in its name, column or comment."""
    catalogs = f"{API}/lake/catalogs"
    body = {"name": catalog, "type": "RELATIONAL", "provider": "lakehouse-iceberg", "properties": {}, "comment": None}
    node.done("POST", catalogs, body)
    index(node)  # the index covers all changes from here on
    paths, marks = {catalog: f"{catalogs}/{catalog}"}, {}
    for _ in range(dice.choice((1, 2, 3))):
        own = mark(dice)
        space = f"{dice.choice(WORDS)}_{own}"
        node.done("POST", f"{catalogs}/{catalog}/schemas", {"name": space, "comment": dice.choice(WORDS)})
        paths[f"{catalog}.{space}"] = f"{catalogs}/{catalog}/schemas/{space}"
        marks[f"{catalog}.{space}"] = own
        for _ in range(dice.choice((0, 1, 2, 3))):
            own, marked_field = mark(dice), dice.choice(("name", "column", "comment"))
            name = f"{dice.choice(WORDS)}_{own if marked_field == 'name' else dice.randint(0, 10**6)}"
            column = {"name": f"id_{own}" if marked_field == "column" else "id", "type": "long", "nullable": True}
            comment = f"{dice.choice(WORDS)} {own}" if marked_field == "comment" else dice.choice(WORDS)
            table = {"name": name, "comment": comment, "columns": [column], "properties": {}}
            node.done("POST", f"{catalogs}/{catalog}/schemas/{space}/tables", table)
            paths[f"{catalog}.{space}.{name}"] = f"{catalogs}/{catalog}/schemas/{space}/tables/{name}"
            marks[f"{catalog}.{space}.{name}"] = own
    return paths, marks


def let(node: DriverNode, dice: random.Random, user: str, paths: Paths) -> None:
    """Give a user random grants, denials and objects in a lake."""
    node.done("POST", f"{API}/lake/users", {"name": user})
    for number in range(dice.choice((1, 2, 3, 5))):
        path = dice.choice(sorted(paths))
        kind, privileges = RULES[path.count(".")]
        condition = "deny" if number and dice.random() < 0.3 else "allow"
        grant(node, user, dice.choice(privileges), kind=kind, on=path, condition=condition)
    if dice.random() < 0.2:
        path = dice.choice(sorted(paths))
        kind = RULES[path.count(".")][0].lower()
        node.done("PUT", f"{API}/lake/owners/{kind}/{path}", {"name": user, "type": "USER"})


def questions(dice: random.Random, paths: Paths, marks: dict[str, str]) -> Iterator[str]:
    """Return queries of every kind; half of them are about objects that may be hidden from the user."""
    yield dice.choice(WORDS)[: dice.randint(2, 6)]
    yield f"{dice.choice(WORDS)} {dice.choice(WORDS)}"
    yield dice.choice(sorted(paths))
    own = dice.choice(sorted(marks.values()))
    yield own
    place = dice.randrange(len(own) - 1)
    yield f"{own[:place]}{own[place + 1]}{own[place]}{own[place + 2 :]}"  # misspelled
    word = dice.choice(WORDS)
    yield f"{word[:-1]} kind:{dice.choice(('table', 'namespace'))}"
    yield f"{word[:2]}{word[3:]} {dice.choice(WORDS)}"  # misspelled
    yield f"kind:{dice.choice(('table', 'namespace'))}"


def search(node: DriverNode, question: str, user: str) -> dict:
    """Search, with all hits and facets."""
    return node.done("GET", f"{OWN}/metalakes/lake/search?limit=200&facets=true&q={quote(question)}", user=user)


def check(node: DriverNode, seed: int) -> int:
    """Create a lake and a user, and compare the results of the user and the admin. Returns the number of hidden
    objects.
    """
    dice = random.Random(seed)
    catalog, user = f"c{seed}", f"u{seed}"
    paths, marks = create_lake(node, dice, catalog)
    let(node, dice, user, paths)
    if dice.random() < 0.7:
        index(node)
    visible = {path for path, address in paths.items() if node.get(address, user=user).status == 200}
    hidden = [word for path, word in marks.items() if path not in visible]
    above = {word for path, word in marks.items() if any(each.startswith(f"{path}.") for each in visible)}
    for question in questions(dice, paths, marks):
        answer, whole = search(node, question, user), search(node, question, "admin")
        hits = {".".join(hit["path"]) for hit in answer["hits"]}
        everything = {".".join(hit["path"]) for hit in whole["hits"]}
        for each in (answer, whole):
            assert (each["more"], each["bounded"], each["behind"]) == (False, False, 0)
        assert hits == everything & visible, (seed, question)
        counted = {each["value"]: each["count"] for each in answer["facets"] if each["key"] == "in"}
        assert counted == ({catalog: len(hits - {catalog})} if hits - {catalog} else {}), (seed, question)
        answer_text = json.dumps(answer)
        leaked = [word for word in hidden if word in answer_text and word not in above and word not in question]
        assert not leaked, (seed, question, leaked)
    return len(hidden)


@pytest.mark.parametrize("first", range(0, LAKES, EACH))
def test_search_results_omit_objects_hidden_from_the_user(tmp_path: Path, empty_database: Path, first: int) -> None:  # noqa: F811
    """Hits, counts and suggestions of a user are those of the admin, without the objects that the user may not load."""
    (tmp_path / empty_database.name).write_bytes(empty_database.read_bytes())
    with node_at(tmp_path) as node:
        hidden = sum(check(node, seed) for seed in range(first, first + EACH))

    assert hidden > EACH  # else the test would prove nothing
