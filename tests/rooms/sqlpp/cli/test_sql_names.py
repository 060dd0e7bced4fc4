# SPDX-License-Identifier: Apache-2.0
"""Names that `limnos sql` cannot find, with a real server: dataverses of the command line, datasets of another one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from limnos.client import Client
from limnos.rooms.sqlpp.cli.sql_names import hint_for_names
from tests.cli.conftest import CommandResult, Run
from tests.http.sockets import ServedNode

pytestmark = pytest.mark.slow
TABLES = """
    create type sales.t as {id: bigint}; create dataset sales.orders(sales.t) primary key id;
    create type sales.eu.t as {id: bigint}; create dataset sales.eu.orders(sales.eu.t) primary key id;
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedNode]:
    """A server with two tables, in a namespace and in its parent, and a user without rights."""
    node = ServedNode(tmp_path_factory.mktemp("served"), lane=True)
    with Client(f"http://127.0.0.1:{node.port}", user="admin") as client:
        client.users.add("ana")
        client.namespaces.create(("main", "sales", "eu"), parents=True)
        client.sqlpp.run(TABLES)
    yield node
    node.stop()


@pytest.fixture
def limnos(served: ServedNode, run: Run) -> Run:
    """Run a command line against the server, as the admin unless it names a user."""

    def call(*words: str) -> CommandResult:
        user = [] if "--user" in words else ["--user", "admin"]
        return run(*words, *user, "--uri", f"http://127.0.0.1:{served.port}", "--output", "table")

    return call


@pytest.mark.parametrize(
    "dataverse,hint",
    [
        ("sals", "limnos sql -c 'select value d.DataverseName from Metadata.`Dataverse` d' lists them"),
        ("main.sales", "'--dataverse sales'"),
        ("main.sales.eu", "'--dataverse sales.eu'"),
        ("main", "leave out --dataverse"),
    ],
)
def test_missing_dataverse_of_the_command_line_is_refused(limnos: Run, dataverse: str, hint: str) -> None:
    """A dataverse that is not there is not replaced by Default: the command ends with 3, and says what to type."""
    done = limnos("sql", "--dataverse", dataverse, "-c", "select 1 as a")

    assert (done.code, done.out) == (3, "")
    assert f"there is no dataverse {dataverse}" in done.err
    assert hint in done.err


@pytest.mark.parametrize("dataverse", ["sales", "sales.eu", "Default", "Metadata"])
def test_dataverse_of_the_command_line_is_used(limnos: Run, dataverse: str) -> None:
    """Statements run in a dataverse that is there; parents that `--parents` made, and built-in ones, are."""
    done = limnos("sql", "--dataverse", dataverse, "-c", "select 1 as a")

    assert (done.code, done.out.split()) == (0, ["a", "1"])


@pytest.mark.parametrize(
    "text,hint",
    [
        ("select * from orders o", "did you mean sales.orders or sales.eu.orders?"),
        ("select * from sales.orderz o", "did you mean sales.orders?"),
        ("select * from sals.orders o", "did you mean sales?"),
        ("select * from eu.orders o", "did you mean sales.eu?"),
        ("select * from nodes", "nodes is a table of the tree: limnos ask 'from nodes' reads it"),
        ("select * from main.sales.orders", "leave out main: limnos sql -c 'select * from sales.orders'"),
    ],
)
def test_missing_name_is_answered_by_a_near_one(limnos: Run, text: str, hint: str) -> None:
    """A dataset or dataverse that is not there is answered by what the user may have meant."""
    done = limnos("sql", "-c", text)

    assert done.code == 1
    assert hint in done.err


def test_path_in_another_catalog_leads_to_its_list() -> None:
    """A statement that names a table of another catalog is answered by the commands that list and show its tables."""
    message = "Cannot find dataverse with name lance.ml: lance is a catalog, and statements read only the catalog main"

    with Client("http://127.0.0.1:9") as client:
        hint = hint_for_names(client, message, catalog="main") or ""

    assert "'limnos list tables lance.ml' lists its tables" in hint
    assert "'limnos head lance.ml.TABLE' shows rows" in hint


def test_user_without_rights_gets_no_near_name(limnos: Run) -> None:
    """Hints name nothing that the user may not see."""
    done = limnos("sql", "-c", "select * from sales.orderz o", "--user", "ana")
    listed = limnos("sql", "-c", "select * from orders o", "--user", "ana")

    assert done.code != 0
    assert "did you mean" not in done.err + listed.err
