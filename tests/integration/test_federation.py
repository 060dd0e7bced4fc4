# SPDX-License-Identifier: Apache-2.0
"""A catalog of one server shown by another: PyIceberg and DuckDB as clients, and the commands of the documentation."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import ForbiddenError, NoSuchTableError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from limnos.client import Client
from tests.integration.duckdb_client import attached
from tests.integration.live import LIMNOS, LiveServer, serving

pytestmark = pytest.mark.room("connectors")

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "connectors.md"
SCHEMA = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "city", StringType(), required=False))
ARROW = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("city", pa.string())])
ROWS = pa.Table.from_pylist([{"id": 1, "city": "Oslo"}, {"id": 2, "city": "Rome"}], schema=ARROW)


class Pair(NamedTuple):
    """A server, and the server whose catalog it shows as `far`."""

    near: LiveServer
    away: LiveServer
    made: str
    """The output of the page's commands."""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Both servers; the catalog is created by the commands of the documentation."""
    base = tmp_path_factory.mktemp("federation")
    with serving(base / "away") as away:
        source = load_catalog("away", type="rest", uri=f"{away.uri}/iceberg", warehouse="main", token=away.token)
        source.create_namespace(("sales",))
        source.create_table(("sales", "orders"), SCHEMA).append(ROWS)
        source.close()
        address = away.uri.removeprefix("http://")
        start, make = _commands(address, away.token)
        assert start[:3] == ["limnos", "server", "start"]
        with serving(base / "near", *start[3:]) as near:
            yield Pair(near, away, "".join(_run(near, each) for each in make))


def _commands(address: str, token: str) -> tuple[list[str], list[list[str]]]:
    """Return the commands of the documentation's section on Iceberg REST, with addresses and token inserted."""
    part = PAGE.read_text(encoding="utf-8").partition("\n## Iceberg REST\n")[2].partition("\n## ")[0]
    text = part.replace("other.example.com:8181", address).replace("SECRET", token)
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    first, *more = [shlex.split(line) for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return first, more


def _run(server: LiveServer, command: list[str]) -> str:
    assert command[0] == "limnos"
    environment = {**os.environ, "LIMNOS_URI": server.uri, "LIMNOS_TOKEN": server.token}
    done = subprocess.run(
        [*LIMNOS, *command[1:]], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _catalog(server: LiveServer, token: str) -> Catalog:
    return load_catalog("near", type="rest", uri=f"{server.uri}/iceberg", warehouse="far", token=token)


def test_documented_commands_list_the_objects_of_the_source(pair: Pair) -> None:
    """The created catalog lists the source's namespace and table, and the commands print no part of its secret."""
    assert "sales" in pair.made
    assert "orders" in pair.made
    assert pair.away.token not in pair.made


def test_pyiceberg_reads_and_writes_through_the_catalog(pair: Pair) -> None:
    """Rows are read and written through the catalog. A user is refused without the privilege, and immediately after a
    revoke.
    """
    with Client(pair.near.uri, token=pair.near.token) as client:
        client.users.add("bea")
        token = client.tokens.create(user="bea").token
        client.roles.create("readers")
        client.roles.allow("readers", ["use_catalog", "use_schema"], on="far", kind="catalog")
        client.roles.allow("readers", ["select_table"], on="far.sales.orders", kind="table")
        client.roles.grant_to_user("bea", ["readers"])
    admin, bea = _catalog(pair.near, pair.near.token), _catalog(pair.near, token)
    try:
        admin.create_namespace(("a", "b"))
        created_table = admin.create_table(("a", "b", "t"), SCHEMA)
        created_table.append(ROWS)
        created_table.append(ROWS)
        assert admin.load_table(("a", "b", "t")).scan().to_arrow().num_rows == 4
        assert admin.list_namespaces(("a",)) == [("a", "b")]
        admin.rename_table(("a", "b", "t"), ("sales", "u"))
        with pytest.raises(NoSuchTableError):
            admin.load_table(("a", "b", "t"))
        assert bea.load_table(("sales", "orders")).scan().to_arrow().num_rows == 2
        assert bea.list_tables(("sales",)) == [("sales", "orders")]
        for wrong in (lambda: bea.load_table(("sales", "u")), lambda: bea.load_table(("sales", "orders")).append(ROWS)):
            with pytest.raises(ForbiddenError):
                wrong()
        with Client(pair.near.uri, token=pair.near.token) as client:
            client.roles.revoke_from_user("bea", ["readers"])
        with pytest.raises(ForbiddenError):
            bea.load_table(("sales", "orders"))
    finally:
        admin.close()
        bea.close()


def test_duckdb_reads_through_the_catalog(pair: Pair) -> None:
    """DuckDB attaches the catalog like any other and reads it."""
    with attached(pair.near, catalog="far") as duck:
        assert duck.sql("SELECT id, city FROM lake.sales.orders ORDER BY id").fetchall() == [(1, "Oslo"), (2, "Rome")]
