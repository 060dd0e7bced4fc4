# SPDX-License-Identifier: Apache-2.0
"""`catalog disable | enable`, with a real server: what a disabled catalog refuses, and what its refusal says; answers
to commands about objects that are not there.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from limnos.client import Client
from tests.cli.conftest import CommandResult, Run
from tests.http.sockets import ServedNode

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedNode]:
    """A server with a user without rights."""
    node = ServedNode(tmp_path_factory.mktemp("served"), lane=True)
    with Client(f"http://127.0.0.1:{node.port}", user="admin") as client:
        client.users.add("ana")
    yield node
    node.stop()


@pytest.fixture
def limnos(served: ServedNode, run: Run) -> Run:
    """Run a command line against the server, as the admin unless it names a user."""

    def call(*words: str) -> CommandResult:
        user = [] if "--user" in words else ["--user", "admin"]
        return run(*words, *user, "--uri", f"http://127.0.0.1:{served.port}")

    return call


def test_disabled_catalog_refuses_requests_until_it_is_enabled(limnos: Run) -> None:
    """A disabled catalog answers nothing, says how it is enabled, and can be deleted; an enabled one says how it is
    disabled first.
    """
    limnos("create", "catalog", "finance")
    limnos("create", "namespace", "finance.raw")

    disabled = limnos("catalog", "disable", "finance")
    refused = limnos("list", "finance", "--output", "table")
    enabled = limnos("enable", "catalog", "finance")
    listed = limnos("list", "finance")
    deleted = limnos("delete", "catalog", "finance", "--output", "table")

    assert disabled.result == {"catalog": "finance", "enabled": False}
    assert (refused.code, enabled.result) == (4, {"catalog": "finance", "enabled": True})
    assert "limnos catalog enable finance" in refused.err
    assert [each["name"] for each in listed.result] == ["finance.raw"]  # type: ignore[attr-defined]
    assert "limnos catalog disable finance" in deleted.err


def test_catalog_is_disabled_by_users_with_the_right_only(limnos: Run) -> None:
    """A user without rights cannot disable a catalog; a path in a catalog is not disabled instead of the catalog."""
    denied = limnos("catalog", "disable", "main", "--user", "ana")
    path = limnos("catalog", "disable", "main.raw", "--output", "table")
    listed = limnos("list", "main")

    assert (denied.code, path.code, listed.code) == (4, 2, 0)
    assert "'limnos catalog disable main'" in path.err


def test_head_of_a_namespace_explains_the_path_of_a_table(limnos: Run) -> None:
    """`head` of a namespace, and of a path with slashes, says how a table's path is written."""
    limnos("create", "namespace", "main.raw")

    namespace = limnos("head", "main.raw", "--output", "table")
    slashes = limnos("head", "main/raw/t", "--output", "table")

    assert "'limnos list main.raw' lists its tables" in namespace.err
    assert "'limnos head main.raw.t'" in slashes.err
    assert "?table" not in namespace.err + slashes.err


@pytest.mark.room("exchange")
def test_export_of_a_table_is_refused_with_the_commands_for_metalakes_and_rows(limnos: Run) -> None:
    """An export of a table's path fails with the commands for metalakes and rows."""
    done = limnos("export", "main.raw.t", "--output", "table")

    assert (done.code, done.out) == (3, "")
    assert "'limnos export lake > main.raw.t' writes a metalake to this file" in done.err
    assert "limnos sql --results csv -c 'SELECT VALUE s FROM `raw`.t AS s;' prints the rows of a table" in done.err


def test_audit_columns_are_those_of_the_table_in_json_too(limnos: Run) -> None:
    """`--columns` takes the columns of the table and the keys of JSON, in both formats."""
    limnos("create", "tag", "red")

    rows = limnos("audit", "--columns", "did,path,operation,user", "--limit", "1", "--output", "json").result
    table = limnos("audit", "--columns", "did,operation", "--limit", "1", "--output", "csv").out

    assert rows[0] == {"did": "create", "path": "red", "operation": rows[0]["operation"], "user": "admin"}  # type: ignore[index]
    assert rows[0]["operation"]  # type: ignore[index]
    assert table.splitlines()[1].startswith("create,")


@pytest.mark.room("search")
def test_search_without_results_names_unknown_filters_and_places(limnos: Run) -> None:
    """A search that finds nothing says which filter there is not, and where to look for the place of `in`."""
    colour = limnos("find", "orders", "colour:red", "--output", "table")
    kind = limnos("find", "type:table", "column:none", "view:none", "--output", "table")
    place = limnos("find", "orders", "in:main.rew", "--output", "table")

    assert "'colour:' is no filter" in colour.err
    assert "next:" not in colour.err
    assert "next: 'limnos find kind:table none kind:view none'" in kind.err
    assert "'limnos list main'" in place.err


def test_missing_role_is_not_to_be_created_by_its_reader(limnos: Run) -> None:
    """`show role` of a missing role lists the roles, and does not advise to create it; `grant` does."""
    missing = limnos("show", "role", "absent", "--output", "table")
    unknown = limnos("grant", "role", "absent", "--to", "ana", "--output", "table")

    assert missing.code == 3
    assert ("create it first" in missing.err, "create it first" in unknown.err) == (False, True)
    assert "'limnos list roles" in missing.err


@pytest.mark.parametrize(
    "statement,hint",
    [
        ("select * from main.raw.t;", "leave out main. raw is a reserved word"),
        ("select * from raw.t;", "write it in back-quotes: `raw`"),
    ],
)
def test_statement_that_is_no_sqlpp_has_the_hints_of_the_worksheet(limnos: Run, statement: str, hint: str) -> None:
    """A syntax error about the catalog's name or a reserved word says how the name is written."""
    done = limnos("sql", "-c", statement, "--output", "table")

    assert done.code == 1
    assert hint in done.err
