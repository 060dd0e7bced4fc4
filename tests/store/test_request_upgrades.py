# SPDX-License-Identifier: Apache-2.0
"""Requests for access in stores of the previous schema, on both databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.store.backends.migrate import head_revision, migrate
from tests.backends import Database
from tests.store.backends.test_migrate import revision_of

BEFORE = "0067"
_REQUEST = (
    "INSERT INTO access_request (metalake_id, user_id, kind, path, preset, asked_at)"
    ' VALUES (1, ?, 4, \'["main","a","t"]\', \'reader\', 5)'
)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.integration)])
def former(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """A store of the previous schema with an open request."""
    if request.param == "sqlite":
        database = Database("sqlite", str(tmp_path / "former.db"))
    else:
        database = Database("postgres", request.getfixturevalue("postgres_server").empty_database())
    migrate(database.address)
    revision_of(database, BEFORE)
    database.sql(_REQUEST, 7)
    return database


def test_open_requests_stay_open(former: Database) -> None:
    """After the upgrade a request has its fields and an empty reason, and there are no answers."""
    assert migrate(former.address) == (BEFORE, head_revision())

    columns = "user_id, kind, preset, asked_at, reason"
    assert former.sql(f"SELECT {columns} FROM access_request") == [(7, 4, "reader", 5, "")]
    assert former.sql("SELECT count(*) FROM access_answer") == [(0,)]


def test_downgrade_leaves_open_requests_alone(former: Database) -> None:
    """After a downgrade the open requests are as before; answered ones are no open ones. A second upgrade works, and a
    node of the previous release may write requests meanwhile.
    """
    migrate(former.address)
    former.sql(_REQUEST, 8)
    former.sql("UPDATE access_request SET reason = 'r' WHERE user_id = 8")
    former.sql(
        "INSERT INTO access_answer VALUES (1, 9, 4, '[\"main\",\"a\",\"t\"]', 'reader', 5, 'r', 'declined', 'dora', 6, 'n')"
    )

    revision_of(former, BEFORE)

    assert former.sql("SELECT * FROM access_request ORDER BY user_id") == [
        (1, user, 4, '["main","a","t"]', "reader", 5) for user in (7, 8)
    ]
    assert migrate(former.address) == (BEFORE, head_revision())
    assert former.sql("SELECT user_id, reason FROM access_request ORDER BY user_id") == [(7, ""), (8, "")]
