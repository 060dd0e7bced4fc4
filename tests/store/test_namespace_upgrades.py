# SPDX-License-Identifier: Apache-2.0
"""Implicit namespaces in stores of the previous schema, on both databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.store.backends.migrate import migrate
from limnos.store.backends.schema_revisions import head_revision
from tests.backends import Database
from tests.store.backends.test_migrate import revision_of

BEFORE = "0068"
NODES = (
    ("full", 3, 1, 0),
    ("hollow", 3, 1, 0),
    ("emptied", 3, 1, 0),
    ("t", 4, 101, 0),
    ("below", 3, 102, 0),
    ("dropped", 4, 103, 1),
)
"""Names, kinds, parents and marks of a drop of nodes whose ids are 101, 102 and so on."""
_NODE = (
    "INSERT INTO node (id, zone, parent_id, kind, name_space, name, format, implicit, created_by, created_at, revision,"
    " deleted, record, folded) VALUES (?, 1, ?, ?, 'n', ?, '', ?, 'a', 0, 1, ?, ?, ?)"
)


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.integration)])
def test_implicit_namespaces_with_objects_become_explicit(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The upgrade makes an implicit namespace with a table explicit; one with namespaces or dropped tables stays."""
    place = (
        str(tmp_path / "former.db") if kind == "sqlite" else request.getfixturevalue("postgres_server").empty_database()
    )
    former = Database(kind, place)
    migrate(former.address)
    revision_of(former, BEFORE)
    for number, (name, node_kind, parent, dropped) in enumerate(NODES, 101):
        is_implicit = parent == 1
        former.sql(_NODE, number, parent, node_kind, name, is_implicit, dropped * number, b"", name)

    assert migrate(former.address) == (BEFORE, head_revision())

    implicit = [name for (name,) in former.sql("SELECT name FROM node WHERE implicit ORDER BY name")]
    assert implicit == ["emptied", "hollow"]
