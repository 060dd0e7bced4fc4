# SPDX-License-Identifier: Apache-2.0
"""Lance tables directly in a catalog: every command takes them as `catalog.table`, and rights can reach them alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import lancedb
import pyarrow as pa
import pytest

from limnos.cli.main import main
from limnos.client import Client, DeniedError
from tests.cli.test_docs import COMMANDS
from tests.integration.live import LiveServer

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore::ResourceWarning")]
ROWS = pa.table({"id": [1, 2]})
PATHS: Final = frozenset({"path", "source", "--on"})
"""The parameters of commands that name an object by its path."""
STEPS: Final = (
    ("show", "show lance.top"),
    ("head", "head lance.top --columns id"),
    ("protect", "protect lance.top"),
    ("unprotect", "unprotect lance.top"),
    ("tag add", "tag add root_tag lance.top"),
    ("tag list", "tag list lance.top"),
    ("tag remove", "tag remove root_tag lance.top"),
    ("policy add", "policy add root_policy lance.top"),
    ("policy list", "policy list lance.top"),
    ("policy remove", "policy remove root_policy lance.top"),
    ("grant", "grant select_table --on lance.top --to root_reader"),
    ("revoke", "revoke select_table --on lance.top --from root_reader"),
    ("owner set", "owner set lance.top admin"),
    ("owner show", "owner show lance.top"),
    ("set", "set lance.top --tag root_tag"),
    ("restriction show", "restriction show lance.top"),
    ("lineage up", "lineage up lance.top"),
    ("lineage down", "lineage down lance.top"),
    ("maintenance explain", "maintenance explain lance.top"),
    ("maintenance run", "maintenance run lance.top --kind expire"),
    ("access explain", "access explain table_read lance.top"),
    ("access holders", "access holders lance.top"),
    ("access who", "access who lance.top"),
    ("request access", "request access lance.top --preset reader"),
    ("access simulate", "access simulate grant select_table --on lance.top --to role:root_reader"),
    ("rename", "rename lance.top lance.moved"),
    ("delete", "delete lance.moved --yes"),
    ("trash list", "trash list lance.moved"),
    ("undrop", "undrop lance.moved"),
)
"""A command line for each command that takes a Lance table."""
ICEBERG: Final = {
    "reports": ("reports lance.other", "There is a Lance table"),
    "table check": ("table check lance.other", "There is a Lance table"),
    "table mend": ("table mend lance.other", "give catalog.namespace.table"),
    "snapshots": ("snapshots lance.other", "give catalog.namespace.table"),
    "restriction set": ("restriction set r lance.other --filter id>1", "contains Lance tables"),
    "restriction remove": ("restriction remove r lance.other", "has no restriction"),
}
"""Commands for Iceberg tables, whose refusal says what the Lance table is."""
NO_TABLES: Final = {
    "list",
    "tree",
    "files",
    "create dashboard",
    "create namespace",
    "create fileset",
    "create model",
    "access reach",
    "lance list",
    "lance describe",
}
"""Commands whose path is a container, a new object, or not an object of a server."""


@pytest.fixture(scope="module")
def client(server: LiveServer) -> Iterator[Client]:
    """The administrator's client of a server with two tables directly in the catalog `lance`."""
    remote = lancedb.connect("db://lance", api_key=server.token, host_override=f"{server.uri}/lance")
    for name in ("top", "other"):
        remote.create_table(name, ROWS)
    with Client(server.uri, token=server.token) as client:
        client.tags.create("root_tag")
        client.policies.create("root_policy", {"customRules": {"keep": 1}, "supportedObjectTypes": ["TABLE"]})
        client.roles.create("root_reader")
        yield client


def run(server: LiveServer, line: str) -> int:
    """Run a command as the administrator, and return its exit code."""
    return main((*line.split(), "--uri", server.uri, "--token", server.token))


def test_commands_with_a_path_are_all_known() -> None:
    """A new command with a path has to be added here, so that it takes tables at a catalog's root."""
    with_path = {
        words
        for words, command in COMMANDS.items()
        if {each.name.lower() for each in command.assemble_argument_collection(parse_docstring=True)} & PATHS
    }

    assert with_path == {words for words, _ in STEPS} | ICEBERG.keys() | NO_TABLES


def test_commands_take_a_table_as_catalog_and_name(server: LiveServer, client: Client) -> None:
    """Each command succeeds with the path `lance.top`, without `--kind`."""
    assert client.lance.load("lance.top").version == 1

    failed = [line for _, line in STEPS if run(server, line) != 0]

    assert failed == []


@pytest.mark.parametrize("line, advice", ICEBERG.values())
def test_commands_for_iceberg_tables_name_the_format(
    server: LiveServer, client: Client, line: str, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command for Iceberg tables alone says that the table is one of Lance."""
    assert client.lance.load("lance.other").version == 1

    assert run(server, line) != 0
    assert advice in capsys.readouterr().err


def test_privilege_on_a_table_reaches_it_alone(server: LiveServer, client: Client) -> None:
    """SELECT_TABLE on a table at a catalog's root, with USE_CATALOG, opens that table and no other. USE_SCHEMA of the
    whole catalog is not needed; where it is denied, the table stays closed.
    """
    client.users.add("root_ana")
    client.roles.create("root_alone")
    client.roles.grant_to_user("root_ana", ["root_alone"])
    client.roles.allow("root_alone", ["use_catalog"], on="lance", kind="catalog")
    secret = client.tokens.create(user="root_ana").token
    remote = lancedb.connect("db://lance", api_key=secret, host_override=f"{server.uri}/lance")
    with Client(server.uri, token=secret) as ana:
        with pytest.raises(DeniedError):
            ana.lance.load("lance.other")

        client.roles.allow("root_alone", ["select_table"], on="lance.other", kind="table")

        assert ana.lance.load("lance.other").version == 1
        assert remote.open_table("other").count_rows() == 2
        with pytest.raises(DeniedError):
            ana.lance.load("lance.moved")
        client.roles.allow("root_alone", ["use_schema"], on="lance", kind="catalog", deny=True)
        with pytest.raises(DeniedError):
            ana.lance.load("lance.other")
