# SPDX-License-Identifier: Apache-2.0
"""A changed bit in a stored metadata document: every protocol reports damage, and other objects are served."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from limnos.app.node_builder import DATABASE_FILE
from tests.http.driver import API, OWN, DriverAnswer, DriverNode, node_at
from tests.http.iceberg.wire import make_table, set_properties, table_path

_FLIP = "UPDATE document SET body = CAST(substr(body, 1, 40) || ? || substr(body, 42) AS blob) WHERE node_id = ?"


@pytest.fixture
def damaged(fresh: Callable[[str], Path]) -> Iterator[DriverNode]:
    """A node with tables `a.t`, of whose document a bit was changed while no node ran, and `a.other`."""
    data = fresh("damaged")
    with node_at(data) as node:
        make_table(node, "a", "t")
        make_table(node, "a", "other")
    with closing(sqlite3.connect(data / DATABASE_FILE)) as file, file:
        (node_id, byte) = file.execute(
            "SELECT d.node_id, substr(d.body, 41, 1) FROM document d JOIN node n ON n.id = d.node_id WHERE n.name = 't'"
        ).fetchone()
        file.execute(_FLIP, (bytes([byte[0] ^ 1]), node_id))
    with node_at(data) as node:
        yield node


def test_every_protocol_reports_the_damage(damaged: DriverNode) -> None:
    """Requests that need the document are 500 and say so, again and again; a commit is not an unknown state."""
    requests: list[tuple[str, str, object]] = [
        ("GET", table_path("a", "t"), None),
        ("GET", f"{API}/lake/catalogs/main/schemas/a/tables/t", None),
        ("POST", table_path("a", "t"), {"updates": [set_properties(k="v")]}),
        ("POST", f"{table_path('a', 't')}/plan", {}),
    ]

    answers = [damaged.ask(*request) for request in requests * 2]

    assert [answer.status for answer in answers] == [500] * len(answers)
    assert [answer.body for answer in answers if not names_damage(answer)] == []
    assert b"CommitStateUnknown" not in answers[2].body


def names_damage(answer: DriverAnswer) -> bool:
    """Return whether an answer says that the metadata is damaged, and what an operator does."""
    return b"is damaged" in answer.body and b"limnos server check" in answer.body


def test_other_objects_are_served(damaged: DriverNode) -> None:
    """Lists and other tables need no damaged document."""
    assert damaged.get(table_path("a", "other")).status == 200
    assert [
        each["name"] for each in damaged.get(f"{API}/lake/catalogs/main/schemas/a/tables").json()["identifiers"]
    ] == [
        "other",
        "t",
    ]


@pytest.mark.room("exchange")
def test_export_does_not_copy_the_damage(damaged: DriverNode, node: DriverNode) -> None:
    """An export ends at the damaged document, without the trailer that completes it."""
    address = f"{OWN}/metalakes/lake/export?format=json"

    assert b'"trailer"' in node.get(address).body
    assert b'"trailer"' not in damaged.get(address).body
