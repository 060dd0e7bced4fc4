# SPDX-License-Identifier: Apache-2.0
"""Spark on an object store with authorization, by credentials of one table and by signed requests, without keys of its
own.

Spark reads settings for S3 only at its start. So it runs in a separate process, which reads requests and writes answers
as lines.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import httpx2
import pytest

from limnos.client import Client
from tests.integration.live import LiveServer, serving
from tests.objects import BUCKET, ObjectStoreServer, authorized

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.heavy]
CATALOGS = ("vended", "signed")
SCRIPT = """
import json, sys
from limnos.spark import session

uri, *tokens = sys.argv[1:]
config = {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}
users = [session(uri, token=each, catalogs=("vended", "signed"), master="local[2]", s3=True, config=config) for each in tokens]
users[0].sparkContext.setLogLevel("OFF")
held = {}
for line in sys.stdin:
    user, statement, name = json.loads(line)
    try:
        if name and name not in held:
            held[name] = users[user].sql(statement)
        frame = held[name] if name else users[user].sql(statement)
        told = {"rows": [list(row) for row in frame.collect()]}
    except Exception as error:
        told = {"error": str(error)}
    print("told", json.dumps(told), flush=True)
users[0].stop()
"""
ADMIN, ANA = 0, 1


class Shell:
    """A Spark process that executes statements line by line, as one of its users."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process, self.log = process, log

    def ask(self, statement: str, *, user: int = ADMIN, dataframe: str = "") -> dict[str, object]:
        """Return the result of a statement, or its error. `dataframe` names a DataFrame that is evaluated again on
        the table as it was first loaded.
        """
        asks: IO[str] | None = self.process.stdin
        assert asks is not None
        asks.write(json.dumps([user, statement, dataframe]) + "\n")
        asks.flush()
        for line in self.process.stdout or ():
            if line.startswith("told "):
                response: dict[str, object] = json.loads(line.removeprefix("told "))
                return response
        raise AssertionError(self.log.read_text()[-3000:])

    def rows(self, statement: str, *, user: int = ADMIN, dataframe: str = "") -> object:
        """Return the rows of a statement, which must succeed."""
        response = self.ask(statement, user=user, dataframe=dataframe)
        assert "rows" in response, (statement, response)
        return response["rows"]


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStoreServer]:
    """The object store."""
    with authorized() as object_store:
        yield object_store


@pytest.fixture(scope="module")
def server(store: ObjectStoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server with two catalogs in the store: one vends credentials, one signs; ana may read the tables of both."""
    data = tmp_path_factory.mktemp("spark-s3") / "data"
    keys = {key: value for key, value in store.properties.items() if key != "s3-role-arn"}
    with (
        serving(data, "--allow-root", "s3://lake", "--allow-endpoint", store.uri) as running,
        Client(running.uri, token=running.token) as client,
    ):
        client.catalogs.create("vended", properties={**store.properties, "warehouse": "s3://lake/vended"})
        signing = {**keys, "warehouse": "s3://lake/signed", "s3.remote-signing-enabled": "true"}
        client.catalogs.create("signed", properties=signing)
        client.users.add("ana")
        client.roles.create("readers")
        for name in CATALOGS:
            client.roles.allow("readers", ["USE_CATALOG", "USE_SCHEMA", "SELECT_TABLE"], on=name, kind="catalog")
        client.roles.grant_to_user("ana", ["readers"])
        yield running


@pytest.fixture(scope="module")
def shell(server: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A Spark process without credentials in its environment."""
    with Client(server.uri, token=server.token) as client:
        ana = client.tokens.create(user="ana").token
    own = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    none = {
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/nonexistent",
        "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
    }
    log = tmp_path_factory.mktemp("spark-s3-shell") / "log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, server.uri, server.token, ana],
            env={**own, **none},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            yield Shell(process, log)
            process.stdin.close()  # type: ignore[union-attr]  # a pipe
            assert process.wait(timeout=300) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("catalog", CATALOGS)
def test_spark_works_with_server_authorized_store_access(shell: Shell, store: ObjectStoreServer, catalog: str) -> None:
    """Tables are created, written, altered and read, also by a reader, and each request to the store is authorized by
    this server.
    """
    shell.rows(f"CREATE NAMESPACE {catalog}.a")
    shell.rows(f"CREATE TABLE {catalog}.a.t (id BIGINT, text STRING) USING iceberg")
    shell.rows(f"INSERT INTO {catalog}.a.t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    shell.rows(f"ALTER TABLE {catalog}.a.t ADD COLUMN more INT")
    shell.rows(f"MERGE INTO {catalog}.a.t t USING (SELECT 2L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    shell.rows(f"UPDATE {catalog}.a.t SET more = 7 WHERE id = 3")

    assert shell.rows(f"SELECT id, more FROM {catalog}.a.t ORDER BY id", user=ANA) == [[1, None], [3, 7]]
    refused = shell.ask(f"INSERT INTO {catalog}.a.t VALUES (9, 'z', 0)", user=ANA)
    assert "error" in refused
    assert shell.rows(f"SELECT count(*) FROM {catalog}.a.t") == [[2]]
    own = {key for key in store.asked if key != "sts"}
    assert own >= ({"s3:GetObject", "s3:PutObject"} if catalog == "vended" else set())


def test_ctas_gets_credentials_before_the_table_exists(shell: Shell, store: ObjectStoreServer) -> None:
    """A table that is created with its rows in one step has credentials before it exists."""
    shell.rows("CREATE NAMESPACE vended.made")
    shell.rows("CREATE TABLE vended.made.t USING iceberg AS SELECT id FROM range(100)")

    assert shell.rows("SELECT count(*), sum(id) FROM vended.made.t") == [[100, 4950]]


@pytest.mark.parametrize("catalog", CATALOGS)
def test_data_path_in_another_tables_location_is_refused(
    shell: Shell, store: ObjectStoreServer, server: LiveServer, catalog: str
) -> None:
    """`write.data.path` cannot be set to the location of another table whose name has the same prefix; later writes go
    to the table's own location.
    """
    shell.rows(f"CREATE NAMESPACE {catalog}.beside")
    for name in ("t", "t2"):
        place = f"s3://{BUCKET}/{catalog}/beside/{name}"
        shell.rows(f"CREATE TABLE {catalog}.beside.{name} (id BIGINT) USING iceberg LOCATION '{place}'")
        shell.rows(f"INSERT INTO {catalog}.beside.{name} VALUES (1)")
    before = store.names(f"{catalog}/beside/t2/")
    place = f"s3://{BUCKET}/{catalog}/beside/t2/data"

    refused = shell.ask(f"ALTER TABLE {catalog}.beside.t SET TBLPROPERTIES ('write.data.path' = '{place}')")
    shell.rows(f"INSERT INTO {catalog}.beside.t VALUES (2)")

    assert "error" in refused, refused
    assert store.names(f"{catalog}/beside/t2/") == before
    assert sorted(shell.rows(f"SELECT id FROM {catalog}.beside.t")) == [[1], [2]]


LIFE_S = 66
"""The server vends no credentials that expire within a minute."""
RENEWED = 'limnos_requests_total{operation="load-credentials",protocol="iceberg",status="200"}'


def renewed(server: LiveServer) -> float:
    """Return the number of requests for renewed credentials."""
    lines = httpx2.get(f"{server.uri}/metrics", trust_env=False).text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(RENEWED))


def test_spark_renews_credentials(shell: Shell, store: ObjectStoreServer, server: LiveServer) -> None:
    """After the first credentials have expired, a table that Spark loaded once is still read, with credentials from the
    refresh route.
    """
    store.life_s = LIFE_S
    try:
        shell.rows("CREATE NAMESPACE vended.renewed")
        shell.rows("CREATE TABLE vended.renewed.t (id BIGINT) USING iceberg")
        shell.rows("INSERT INTO vended.renewed.t VALUES (1), (2)")
        asks = "SELECT id FROM vended.renewed.t WHERE id > 1"
        assert shell.rows(asks, dataframe="loaded once") == [[2]]
        before, sessions = renewed(server), len(store.sessions())
        time.sleep(LIFE_S + 1)

        assert shell.rows(asks, dataframe="loaded once") == [[2]]
        assert renewed(server) > before
        assert len(store.sessions()) > sessions
    finally:
        store.life_s = None
