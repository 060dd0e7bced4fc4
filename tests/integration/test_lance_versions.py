# SPDX-License-Identifier: Apache-2.0
"""Lance's own clients on server-managed tables: every kind of commit, many processes, and commits that bypass the
server.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote
from urllib.request import Request, urlopen

import lance
import lance_namespace_urllib3_client as generated
import pyarrow as pa
import pytest
from lance.namespace import RestNamespace
from lance_namespace import CreateNamespaceRequest, DeclareTableRequest, ListTableVersionsRequest

from tests.integration.live import LiveServer

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
ROWS = pa.table({"id": [1, 2, 3]})
PROCESSES, APPENDS = (6, 10) if int(os.environ.get("LIMNOS_TEST_ROUNDS", "0")) >= 100 else (3, 4)
APPEND = """
import sys, lance, pyarrow as pa
from lance.namespace import RestNamespace
uri, token, mine, appends, *table = sys.argv[1:]
client = RestNamespace(**{"uri": uri, "header.Authorization": f"Bearer {token}"})
for turn in range(int(appends)):
    lance.write_dataset(pa.table({"id": [int(mine) * 1000 + turn]}), namespace_client=client, table_id=table, mode="append")
"""
"""The program of each of many processes."""


def rest(server: LiveServer) -> RestNamespace:
    """The namespace in Lance's native client."""
    return RestNamespace(**{"uri": f"{server.uri}/lance", "header.Authorization": f"Bearer {server.token}"})


@pytest.fixture
def path(server: LiveServer, request: pytest.FixtureRequest) -> list[str]:
    """A managed table of the test's own, three levels deep, without data."""
    space = ["lance", re.sub(r"\W", "_", request.node.name)]
    rest(server).create_namespace(CreateNamespaceRequest(id=space))
    declaration = rest(server).declare_table(
        DeclareTableRequest(id=[*space, "t"], properties={"managed_versioning": "true"})
    )
    assert declaration.managed_versioning
    return [*space, "t"]


def versions(server: LiveServer, path: list[str]) -> list[int]:
    """Return the versions that the server lists."""
    return [each.version for each in rest(server).list_table_versions(ListTableVersionsRequest(id=path)).versions]


def opened(server: LiveServer, path: list[str], version: int | None = None) -> lance.LanceDataset:
    """Return the table as a client opens it."""
    return lance.dataset(namespace_client=rest(server), table_id=path, version=version)


def test_every_kind_of_pylance_commit_is_a_server_version(server: LiveServer, path: list[str]) -> None:
    """Pylance appends, deletes, updates, merges, indexes, adds a column, restores and compacts; each commit is a
    version of the server.
    """
    for _ in range(2):
        lance.write_dataset(ROWS, namespace_client=rest(server), table_id=path, mode="append")
    table = opened(server, path)
    table.delete("id = 2")
    table.update({"id": "id + 10"}, where="id = 1")
    merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(pa.table({"id": [3, 4]}))
    table.create_scalar_index("id", "BTREE")
    table.add_columns({"twice": "id * 2"})
    assert versions(server, path) == list(range(1, table.version + 1))
    assert sorted(opened(server, path).to_table()["id"].to_pylist()) == [3, 3, 4, 11, 11]

    old = opened(server, path, version=2)
    old.restore()
    assert opened(server, path).count_rows() == 6
    opened(server, path).optimize.compact_files()

    assert len(opened(server, path).get_fragments()) == 1
    assert versions(server, path) == list(range(1, opened(server, path).version + 1))
    assert opened(server, path, version=1).count_rows() == 3


def test_branch_versions_are_listed_and_cleaned_up_ones_hidden(server: LiveServer, path: list[str]) -> None:
    """The server lists the versions of a branch that pylance creates, and no longer lists versions that a cleanup
    deleted.
    """
    for _ in range(3):
        lance.write_dataset(ROWS, namespace_client=rest(server), table_id=path, mode="append")
    table = opened(server, path)
    branch = table.create_branch("dev", 2)
    lance.write_dataset(ROWS, branch, mode="append")
    assert table.checkout_version(("dev", None)).count_rows() == 9
    branch_versions = rest(server).list_table_versions(ListTableVersionsRequest(id=path, branch="dev")).versions
    assert [each.version for each in branch_versions] == [2, 3]
    table.branches.delete("dev")
    table.create_branch("dev", 1)
    assert table.checkout_version(("dev", None)).count_rows() == 3
    table.branches.delete("dev")
    table.tags.create("first", 1)
    api = generated.ApiClient(generated.Configuration(host=f"{server.uri}/lance"))
    api.set_default_header("Authorization", f"Bearer {server.token}")
    tags = generated.TagApi(api).list_table_tags("$".join(path)).tags
    assert {name: tag.version for name, tag in tags.items()} == {"first": 1}

    table.tags.delete("first")
    opened(server, path).cleanup_old_versions(older_than=dt.timedelta(0), delete_unverified=True)

    assert versions(server, path) == [3]
    assert opened(server, path).count_rows() == 9


def test_rows_written_by_path_are_never_read(server: LiveServer, path: list[str]) -> None:
    """Rows that were written by path are not visible through the server, and the next commit through the server
    succeeds.
    """
    lance.write_dataset(ROWS, namespace_client=rest(server), table_id=path, mode="append")
    at = opened(server, path).uri
    for _ in range(2):
        lance.write_dataset(pa.table({"id": [99]}), at, mode="append")

    assert opened(server, path).count_rows() == 3
    lance.write_dataset(pa.table({"id": [99]}), at, mode="append")
    lance.write_dataset(ROWS, namespace_client=rest(server), table_id=path, mode="append")

    assert opened(server, path).to_table()["id"].to_pylist() == [1, 2, 3, 1, 2, 3]
    assert versions(server, path) == [1, 2]


def test_concurrent_appends_add_every_row_once(server: LiveServer, path: list[str]) -> None:
    """Processes that append to one table concurrently all succeed, and every row is added once.

    The table has a version before they begin: of several writers of the first version, Lance refuses all but one
    ("Dataset already exists").
    """
    lance.write_dataset(pa.table({"id": [-1]}), namespace_client=rest(server), table_id=path, mode="append")
    words = [sys.executable, "-c", APPEND, f"{server.uri}/lance", server.token]
    running = [subprocess.Popen([*words, str(mine), str(APPENDS), *path]) for mine in range(PROCESSES)]

    assert [each.wait(120) for each in running] == [0] * PROCESSES

    expected = [-1, *sorted(mine * 1000 + turn for mine in range(PROCESSES) for turn in range(APPENDS))]
    assert sorted(opened(server, path).to_table()["id"].to_pylist()) == expected
    assert versions(server, path) == list(range(1, len(expected) + 1))


def test_concurrent_server_inserts_each_create_a_version(server: LiveServer, path: list[str]) -> None:
    """Concurrent inserts by the server each create a version: a conflicting insert is repeated by the server."""
    at = f"{server.uri}/lance/v1/table/{quote('$'.join(path), safe='')}/insert"
    headers = {"authorization": f"Bearer {server.token}", "content-type": "application/vnd.apache.arrow.stream"}

    def insert(number: int) -> int:
        sink = pa.BufferOutputStream()
        rows = pa.table({"id": [number]})
        with pa.ipc.new_stream(sink, rows.schema) as stream:
            stream.write_table(rows)
        with urlopen(Request(at, sink.getvalue().to_pybytes(), headers, method="POST")) as answer:
            version: int = json.loads(answer.read())["version"]
            return version

    first = insert(0)
    with ThreadPoolExecutor(4) as threads:
        inserted_versions = list(threads.map(insert, range(1, 9)))

    assert sorted([first, *inserted_versions]) == list(range(1, 10))
    assert versions(server, path) == list(range(1, 10))
    assert sorted(opened(server, path).to_table()["id"].to_pylist()) == list(range(9))


def test_two_tables_are_committed_together(server: LiveServer, path: list[str], tmp_path: Path) -> None:
    """The generated client commits the staged versions of two tables atomically."""
    other = [*path[:-1], "other"]
    rest(server).declare_table(DeclareTableRequest(id=other, properties={"managed_versioning": "true"}))
    entries = []
    for table in (path, other):
        lance.write_dataset(ROWS, namespace_client=rest(server), table_id=table, mode="append")
        entries.append(_staged(server, table, tmp_path))
    api = generated.ApiClient(generated.Configuration(host=f"{server.uri}/lance"))
    api.set_default_header("Authorization", f"Bearer {server.token}")

    done = generated.MetadataApi(api).batch_create_table_versions(
        generated.BatchCreateTableVersionsRequest(entries=entries)
    )

    assert [each.version for each in done.versions] == [2, 2]
    assert [opened(server, table).count_rows() for table in (path, other)] == [6, 6]


def _staged(server: LiveServer, table: list[str], directory: Path) -> generated.CreateTableVersionEntry:
    """Create the next version of a table in a copy, and stage its manifest and files at the table's location."""
    at = Path(opened(server, table).uri.removeprefix("file://"))
    copy = directory / table[-1]
    subprocess.run(["cp", "-r", str(at), str(copy)], check=True)
    lance.write_dataset(ROWS, str(copy), mode="append")
    for each in ("data", "_transactions"):
        subprocess.run(["cp", "-rn", f"{copy}/{each}/.", f"{at}/{each}/"], check=True)
    name = f"{2**64 - 1 - 2:020d}.manifest"
    staged = at / "_versions" / f"{name}-by-hand"
    staged.write_bytes((copy / "_versions" / name).read_bytes())
    return generated.CreateTableVersionEntry(id=table, version=2, manifest_path=str(staged).lstrip("/"))
