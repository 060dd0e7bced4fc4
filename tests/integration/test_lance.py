# SPDX-License-Identifier: Apache-2.0
"""Lance's own clients against a server with access control on: pylance, lancedb in both modes, and the generated
client.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import warnings
from pathlib import Path
from typing import Any

import lance
import lance_namespace_urllib3_client as generated
import lancedb
import pyarrow as pa
import pytest
from lance.namespace import RestNamespace
from lance_namespace import (
    CreateNamespaceRequest,
    DeclareTableRequest,
    DescribeTableRequest,
    DropNamespaceRequest,
    DropTableRequest,
    ListNamespacesRequest,
    ListTablesRequest,
    RenameTableRequest,
    TableExistsRequest,
)
from lance_namespace.errors import PermissionDeniedError, TableNotFoundError, UnauthenticatedError

from limnos.client import AsyncClient, Client, DeniedError
from tests.integration.live import LIMNOS, LiveServer

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
PAGE = Path(__file__).parents[2] / "docs" / "guides" / "lance.md"
ROWS = pa.table(
    {
        "id": [1, 2, 3],
        "text": ["a", "b", "c"],
        "vector": pa.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], pa.list_(pa.float32(), 2)),
    }
)


def rest(server: LiveServer, token: str | None = None) -> RestNamespace:
    """The namespace in Lance's native client."""
    return RestNamespace(**{"uri": f"{server.uri}/lance", "header.Authorization": f"Bearer {token or server.token}"})


@pytest.fixture
def deep(server: LiveServer, request: pytest.FixtureRequest) -> list[str]:
    """A namespace four deep, of the test's own."""
    name = re.sub(r"\W", "_", request.node.name)
    path = ["lance", name, "b", "c d"]
    for depth in range(2, len(path) + 1):
        rest(server).create_namespace(CreateNamespaceRequest(id=path[:depth], properties={"depth": str(depth)}))
    return path


def test_pylance_table_is_declared_written_and_dropped(server: LiveServer, deep: list[str]) -> None:
    """Four namespaces deep, a table is declared, written by path, opened, listed, renamed and dropped."""
    client, table = rest(server), [*deep, "t"]
    client.declare_table(DeclareTableRequest(id=table))
    assert client.describe_table(DescribeTableRequest(id=table)).is_only_declared

    lance.write_dataset(ROWS, namespace_client=client, table_id=table, mode="append")
    lance.write_dataset(ROWS, namespace_client=client, table_id=table, mode="append")

    description = client.describe_table(DescribeTableRequest(id=table))
    assert (description.version, description.is_only_declared) == (2, False)
    assert lance.dataset(namespace_client=client, table_id=table).count_rows() == 6
    assert lance.dataset(namespace_client=client, table_id=table, version=1).count_rows() == 3
    assert client.list_tables(ListTablesRequest(id=deep)).tables == ["t"]
    client.rename_table(RenameTableRequest(id=table, new_table_name="u"))
    assert client.list_tables(ListTablesRequest(id=deep)).tables == ["u"]
    client.drop_table(DropTableRequest(id=[*deep, "u"]))
    with pytest.raises(TableNotFoundError):
        client.describe_table(DescribeTableRequest(id=[*deep, "u"]))
    client.drop_namespace(DropNamespaceRequest(id=deep[:2], behavior="Cascade"))
    assert deep[1] not in client.list_namespaces(ListNamespacesRequest(id=["lance"])).namespaces


def test_lancedb_works_in_namespace_mode(server: LiveServer, deep: list[str]) -> None:
    """LanceDB creates, fills, searches, renames and drops a table through the namespace."""
    properties = {"uri": f"{server.uri}/lance", "header.Authorization": f"Bearer {server.token}"}
    db = lancedb.connect_namespace("rest", properties)
    table = db.create_table("t", ROWS, namespace_path=deep)
    table.add(ROWS)

    assert db.open_table("t", namespace_path=deep).count_rows() == 6
    assert [each["id"] for each in table.search([0.0, 1.0]).limit(2).to_list()] == [1, 1]
    assert db.create_table("t", ROWS, namespace_path=deep, exist_ok=True).count_rows() == 6
    assert list(db.list_tables(namespace_path=deep).tables) == ["t"]
    db.rename_table("t", "u", cur_namespace_path=deep, new_namespace_path=deep)
    db.drop_table("u", namespace_path=deep)
    assert list(db.list_tables(namespace_path=deep).tables) == []


def test_lancedb_works_as_a_remote_database(server: LiveServer, deep: list[str]) -> None:
    """With `db://lance`, names are relative to the catalog, and the schema has LanceDB's types."""
    lance.write_dataset(ROWS, namespace_client=rest(server), table_id=[*deep, "t"], mode="create")
    db = lancedb.connect("db://lance", api_key=server.token, host_override=f"{server.uri}/lance")
    inner = deep[1:]

    assert deep[1] in db.list_namespaces().namespaces
    assert list(db.list_tables(namespace_path=inner).tables) == ["t"]
    assert db.open_table("t", namespace_path=inner).schema == ROWS.schema
    db.create_namespace([deep[1], "more"])
    db.rename_table("t", "u", cur_namespace_path=inner, new_namespace_path=[deep[1], "more"])
    assert list(db.list_tables(namespace_path=[deep[1], "more"]).tables) == ["u"]
    db.drop_table("u", namespace_path=[deep[1], "more"])
    db.drop_namespace([deep[1], "more"])


def test_generated_client_calls_every_served_operation(server: LiveServer, deep: list[str]) -> None:
    """The client generated from the OpenAPI document calls each served operation, with ids in the path only."""
    api = generated.ApiClient(generated.Configuration(host=f"{server.uri}/lance"))
    api.set_default_header("Authorization", f"Bearer {server.token}")
    spaces, tables = generated.NamespaceApi(api), generated.TableApi(api)
    space, table = "::".join(deep), "::".join([*deep, "t"])
    by = {"delimiter": "::"}

    assert tables.declare_table(table, generated.DeclareTableRequest(properties={"k": "v"}), **by).properties == {
        "k": "v"
    }
    tables.table_exists(table, generated.TableExistsRequest(), **by)
    spaces.namespace_exists(space, generated.NamespaceExistsRequest(), **by)
    assert spaces.describe_namespace(space, generated.DescribeNamespaceRequest(), **by).properties == {"depth": "4"}
    assert tables.list_tables(space, **by).tables == ["t"]
    assert table in tables.list_all_tables(**by).tables
    deregistered = tables.deregister_table(table, generated.DeregisterTableRequest(), **by)
    assert deregistered.id == [*deep, "t"]
    lance.write_dataset(ROWS, deregistered.location)
    tables.register_table(table, generated.RegisterTableRequest(location=deregistered.location), **by)
    assert tables.describe_table(table, generated.DescribeTableRequest(), **by).version == 1
    tables.rename_table(table, generated.RenameTableRequest(new_table_name="u"), **by)
    tables.drop_table(f"{space}::u", **by)
    spaces.drop_namespace(space, generated.DropNamespaceRequest(), **by)
    with pytest.raises(generated.exceptions.NotFoundException):
        spaces.namespace_exists(space, generated.NamespaceExistsRequest(), **by)


def test_user_without_rights_is_refused_by_each_client(server: LiveServer, deep: list[str]) -> None:
    """A user without rights is refused by each client; the native client's error names the privilege. After the grant
    the table opens.
    """
    user = deep[1]
    table = [*deep, "t"]
    lance.write_dataset(ROWS, namespace_client=rest(server), table_id=table, mode="create")
    with Client(server.uri, token=server.token) as admin:
        admin.users.add(user)
        token = admin.tokens.create(user=user, name="t").token
        theirs = rest(server, token)

        with pytest.raises(PermissionDeniedError, match="SELECT_TABLE"):
            theirs.describe_table(DescribeTableRequest(id=table))
        with pytest.raises(PermissionDeniedError):
            theirs.create_namespace(CreateNamespaceRequest(id=["lance", f"{user}_2"]))
        assert theirs.list_namespaces(ListNamespacesRequest(id=[])).namespaces == []
        with pytest.raises(UnauthenticatedError):
            rest(server, "lim_1_wrong").list_namespaces(ListNamespacesRequest(id=[]))
        with pytest.raises(Exception, match=r"403|401|denied|Permission"):
            lancedb.connect("db://lance", api_key=token, host_override=f"{server.uri}/lance").open_table(
                "t", namespace_path=deep[1:]
            )

        admin.roles.create(user)
        admin.roles.allow(user, ["use_catalog", "use_schema", "select_table"], on="lance", kind="catalog")
        admin.roles.grant_to_user(user, [user])

        assert lance.dataset(namespace_client=theirs, table_id=table).count_rows() == 3
        with pytest.raises(PermissionDeniedError):
            theirs.drop_table(DropTableRequest(id=table))
        theirs.table_exists(TableExistsRequest(id=table))


def test_our_clients_open_tables(server: LiveServer, deep: list[str]) -> None:
    """Both clients return pylance's and LanceDB's objects, for the client's metalake and user."""
    name = deep[1]
    with Client(server.uri, token=server.token) as admin:
        admin.metalakes.create(name)
    with Client(server.uri, token=server.token, metalake=name) as metalake_client:
        place = str(server.data / "warehouse" / name)
        metalake_client.catalogs.create("vectors", provider="lakehouse-generic", properties={"location": place})
        metalake_client.lance.declare("vectors.t", properties={"managed_versioning": "true"})
        lance.write_dataset(
            ROWS, namespace_client=metalake_client.lance.namespace(), table_id=["vectors", "t"], mode="append"
        )
        metalake_client.lance.dataset("vectors.t").delete("id = 2")
        metalake_client.users.add("ana")

        assert (metalake_client.lance.load("vectors.t").managed, metalake_client.lance.load("vectors.t").version) == (
            True,
            2,
        )
        assert metalake_client.lance.dataset("vectors.t", version=1).count_rows() == 3
        assert metalake_client.lance.connect().open_table("t", namespace_path=["vectors"]).count_rows() == 2
    with Client(server.uri, user="ana", metalake=name) as ana:
        with pytest.raises(DeniedError, match="USE_CATALOG"):
            ana.lance.dataset("vectors.t")
        with pytest.raises(Exception, match="USE_CATALOG"):
            ana.lance.remote("vectors").open_table("t")

    async def awaited() -> list[int]:
        async with AsyncClient(server.uri, token=server.token, metalake=name) as client:
            near = await (await client.lance.connect()).open_table("t", namespace_path=["vectors"])
            far = await (await client.lance.remote("vectors")).open_table("t")
            opened = await client.lance.dataset("vectors.t")
            return [opened.count_rows(), await near.count_rows(), await far.count_rows()]

    assert asyncio.run(awaited()) == [2, 2, 2]


def test_cli_commands_support_lance_tables(server: LiveServer, deep: list[str]) -> None:
    """`ls`, `describe`, `mv` and `drop` support Lance tables, in namespaces and directly in the catalog."""
    place = [*deep, "t"]
    lance.write_dataset(ROWS, namespace_client=rest(server), table_id=place, mode="create")
    rest(server).declare_table(DeclareTableRequest(id=["lance", f"{deep[1]}_t"]))
    home, inner = f"lance.{deep[1]}", f"lance.{deep[1]}.b.`c d`"

    def limnos(*words: str) -> Any:  # noqa: ANN401 - whatever a command prints
        done = subprocess.run(
            [*LIMNOS, *words, "--uri", server.uri, "--output", "json"],
            check=False,
            env=env,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    env = {**os.environ, "LIMNOS_TOKEN": server.token}
    assert [(each["name"], each["kind"]) for each in limnos("ls", inner)] == [(f"{inner}.t", "table")]
    description = limnos("describe", f"{inner}.t")
    assert (description["format"], description["version"]) == ("lance", 1)
    assert description["columns"]["vector"] == "fixed_size_list[2]<float32>"
    limnos("mv", f"{inner}.t", f"{home}.u")
    assert limnos("describe", f"{home}_t")["version"] is None
    limnos("drop", f"{home}.u", "--yes")
    limnos("drop", f"{home}_t", "--yes")
    assert f"{home}_t" not in [each["name"] for each in limnos("ls", "lance")]


def test_cli_commands_on_lance_tables_need_privileges(server: LiveServer, deep: list[str]) -> None:
    """Each command on a Lance table is refused with the missing right named, works after the grant, and is refused
    after the revoke.
    """
    lance.write_dataset(ROWS, namespace_client=rest(server), table_id=[*deep, "t"], mode="create")
    home, user = f"lance.{deep[1]}.b.`c d`", "ida"
    with Client(server.uri, token=server.token) as admin:
        admin.users.add(user)
        admin.roles.create(user)
        admin.roles.grant_to_user(user, [user])
        admin.roles.allow(user, ["use_catalog", "use_schema"], on="lance", kind="catalog")
        tokens = {"admin": server.token, user: admin.tokens.create(user=user, name="t").token}

    def limnos(who: str, *words: str) -> str:
        """Return the output of a command: its result, or its error."""
        environment = {**os.environ, "LIMNOS_TOKEN": tokens[who]}
        command = [*LIMNOS, *words, "--uri", server.uri, "--output", "json"]
        done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
        assert (done.returncode == 0) == (not done.stderr), done.stderr
        return done.stdout or done.stderr

    def switch(verb: str, *words: str) -> None:
        """Grant or revoke as administrator."""
        assert "error" not in limnos(
            "admin", verb, *words, "--on", f"{home}.t", "--to" if verb == "grant" else "--from", user
        )

    assert f"{home}.t" not in limnos(user, "ls", home)
    assert "needs SELECT_TABLE or MODIFY_TABLE" in limnos(user, "describe", f"{home}.t")
    switch("grant", "select_table")
    assert f"{home}.t" in limnos(user, "ls", home)
    assert json.loads(limnos(user, "describe", f"{home}.t"))["version"] == 1
    for words in (("mv", f"{home}.t", f"{home}.u"), ("drop", f"{home}.t", "--yes")):
        assert '"forbidden"' in limnos(user, *words)
    switch("revoke", "select_table")
    assert "needs SELECT_TABLE or MODIFY_TABLE" in limnos(user, "describe", f"{home}.t")
    limnos("admin", "owner", "set", f"{home}.t", user)
    assert "error" not in limnos(user, "drop", f"{home}.t", "--yes")
    assert "not-found" in limnos("admin", "describe", f"{home}.t")


def test_guide_python_examples_run(server: LiveServer) -> None:
    """The Python examples of docs/guides/lance.md run. Its Spark and Gravitino examples run in the tests of these
    clients.
    """
    names: dict[str, object] = {"uri": server.uri, "token": server.token}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = PAGE.read_text(encoding="utf-8").partition("\n## Spark\n")[0]
        for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            exec(compile(block, str(PAGE), "exec"), names)
