# SPDX-License-Identifier: Apache-2.0
"""POST unregister: the table is removed and its files stay, to be registered again later. Commits to it are refused
afterwards.
"""

from __future__ import annotations

from tests.http.driver import API, DriverNode, grant
from tests.http.iceberg.wire import (
    at_once,
    commit,
    error_of,
    files_of,
    make_table,
    metadata_of,
    set_properties,
    space_path,
    table_path,
)


def test_unregister_returns_last_metadata_and_keeps_files(lake: DriverNode) -> None:
    """The answer has the last metadata and its location. The table is 404, its files stay, and the trash is empty."""
    make_table(lake, "a", "t")
    last = commit(lake, "a", "t", updates=[set_properties(k="v")])
    files = files_of(lake)
    answer = lake.post(f"{table_path('a', 't')}/unregister")

    assert (answer.status, answer.json()) == (200, last.json())
    assert lake.get(table_path("a", "t")).status == 404
    assert lake.post(f"{table_path('a', 't')}/unregister").status == 404
    assert files_of(lake) == files
    assert lake.get("/api/limnos/v1/metalakes/lake/catalogs/main/trash").json()["trash"] == []


def test_later_commits_fail(lake: DriverNode) -> None:
    """A commit after the unregister is 404. A concurrent commit is either part of the returned metadata or fails."""
    for turn in range(8):
        make_table(lake, "a", f"t{turn}")
        body = {"requirements": [], "updates": [set_properties(k="v")]}
        path = table_path("a", f"t{turn}")
        wrote, unregistered = at_once(lake, ("POST", path, body), ("POST", f"{path}/unregister", None))

        assert unregistered.status == 200
        assert (wrote.status == 200) == ("k" in unregistered.json()["metadata"]["properties"]), wrote.body
        assert error_of(lake.post(path, body))[:2] == (404, "NoSuchTableException")


def test_unregistered_table_can_be_registered_in_another_catalog(lake: DriverNode) -> None:
    """Another user can register an unregistered table in another catalog immediately. It is the same table."""
    make_table(lake, "a", "t")
    before = metadata_of(lake, "a", "t")
    unregistered = lake.post(f"{table_path('a', 't')}/unregister").json()
    grant(lake, "ana", "use_catalog use_schema create_table", kind="CATALOG", on="main")
    body = {"name": "mine", "metadata-location": unregistered["metadata-location"]}
    answer = lake.ask("POST", f"{space_path('a')}/register", body, user="ana")

    assert answer.status == 200, answer.body
    assert answer.json()["metadata"] == before
    assert lake.get(f"{API}/lake/owners/TABLE/main.a.mine").json()["owner"]["name"] == "ana"
