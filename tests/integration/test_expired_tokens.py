# SPDX-License-Identifier: Apache-2.0
"""Credentials that expire in the middle of a session of each client: what it says, and which clients renew them.

Spark, Trino and the other engines: `conformance/run engines --expired`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import lancedb
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from conformance.gravitino.client import interpreter
from limnos.client import Client
from tests.integration.duckdb_client import attached
from tests.integration.live import LIMNOS, LiveServer, serving

SCRIPT = Path(__file__).with_name("expired_tokens_script.py")
LIFETIME_S = 12
SESSION_S = 4
EXPIRED = "The token has expired: sign in again, or ask an administrator for a new one ('limnos create token')"
PASSWORD = "correct horse battery"
ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A token-only server with one table, whose sessions have short tokens."""
    folder = tmp_path_factory.mktemp("expired")
    settings = {"LIMNOS__ACCESS__SESSION_S": str(SESSION_S)}
    with serving(folder / "data", "--allow-root", str(folder), env=settings, authentication="token") as server:
        with Client(server.uri, token=server.token) as admin:
            admin.namespaces.create("main.raw")
            admin.users.add("etl")
            admin.roles.create("readers")
            admin.roles.allow("readers", ["USE_CATALOG", "USE_SCHEMA", "SELECT_TABLE"], on="main", kind="catalog")
            admin.roles.grant_to_user("etl", ["readers"])
            iceberg = load_catalog("main", **admin.iceberg_properties("main"))
        iceberg.create_table(("raw", "t"), ROWS.schema).append(ROWS)
        yield server


def run(
    server: LiveServer, folder: Path, *words: str, text: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command of the command line, with a home directory and a text as standard input."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("LIMNOS")}
    own |= {"HOME": str(folder), "LIMNOS_URI": server.uri, **variables}
    return subprocess.run(
        [*LIMNOS, *words], env=own, cwd=folder, input=text, capture_output=True, text=True, check=False, timeout=60
    )


def outlive(began: float, lifetime_s: int) -> None:
    """Wait until a credential that was issued at the given monotonic time has expired."""
    time.sleep(max(0.0, began + lifetime_s + 1 - time.monotonic()))


def test_clients_say_that_their_token_has_expired(lake: LiveServer, tmp_path: Path) -> None:
    """PyIceberg, LanceDB, DuckDB, the Python client and the command line work until a token expires. Then each one's
    error is the server's sentence, which says what to do; the command line ends with the code for credentials.
    """
    with Client(lake.uri, token=lake.token) as admin:
        began = time.monotonic()
        token = admin.tokens.create(expires_in_s=LIFETIME_S).token
    iceberg = load_catalog("main", type="rest", uri=f"{lake.uri}/iceberg", warehouse="main", token=token)
    lance = lancedb.connect("db://lance", api_key=token, host_override=f"{lake.uri}/lance")
    with (
        Client(lake.uri, token=token) as own,
        attached(lake, secret=f"TYPE iceberg, TOKEN '{token}'") as engine,
    ):
        calls: list[Callable[[], object]] = [
            lambda: iceberg.load_table(("raw", "t")).scan().to_arrow().num_rows,
            lance.list_namespaces,
            own.catalogs.list,
            lambda: engine.execute("SELECT count(*) FROM lake.raw.t").fetchall(),
        ]
        for call in calls:
            call()
        outlive(began, LIFETIME_S)

        for call in calls:
            with pytest.raises(Exception, match=re.escape(EXPIRED)):
                call()
    done = run(lake, tmp_path, "list", "main", LIMNOS_TOKEN=token)

    assert EXPIRED in done.stderr
    assert "limnos login" in done.stderr
    assert done.returncode == 4


def test_clients_renew_the_token_of_a_secret(lake: LiveServer) -> None:
    """With a service account's secret PyIceberg and DuckDB go on after the end of their first token."""
    with Client(lake.uri, token=lake.token) as admin:
        secret = admin.service_accounts.create_secret("etl").client_secret
    address = f"{lake.uri}/iceberg/v1/oauth/tokens"
    iceberg = load_catalog(
        "main",
        type="rest",
        uri=f"{lake.uri}/iceberg",
        warehouse="main",
        credential=f"etl:{secret}",
        **{"oauth2-server-uri": address},
    )
    options = f"TYPE iceberg, CLIENT_ID 'etl', CLIENT_SECRET '{secret}', OAUTH2_SERVER_URI '{address}'"
    with attached(lake, secret=options) as engine:
        began = time.monotonic()
        for _ in range(2):
            assert iceberg.load_table(("raw", "t")).scan().to_arrow().num_rows == ROWS.num_rows
            assert engine.execute("SELECT count(*) FROM lake.raw.t").fetchall() == [(ROWS.num_rows,)]
            outlive(began, SESSION_S)


def test_command_line_renews_its_session(lake: LiveServer, tmp_path: Path) -> None:
    """After `limnos login` with a password, commands go on after the end of the first token."""
    with Client(lake.uri, token=lake.token) as admin:
        admin.users.add("ana")
        admin.roles.grant_to_user("ana", ["readers"])
        admin.logins.set_password("ana", PASSWORD)
    began = time.monotonic()
    signed_in = run(lake, tmp_path, "login", "ana", text=PASSWORD)
    assert signed_in.returncode == 0, signed_in.stderr
    outlive(began, SESSION_S)

    done = run(lake, tmp_path, "list", "main.raw")

    assert "main.raw.t" in done.stdout, done.stderr


@pytest.fixture(scope="module")
def gravitino(lake: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The result of every step of the script with Gravitino's client."""
    folder = tmp_path_factory.mktemp("gravitino")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GRAVITINO_"))}
    location = f"file://{lake.data.parent}/files"
    done = subprocess.run(
        [str(interpreter()), "-W", "ignore", str(SCRIPT), lake.uri, lake.token, location, str(LIFETIME_S)],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    steps: dict[str, object] = json.loads(done.stdout)
    return steps


@pytest.mark.parametrize("client", ["basic", "oauth", "gvfs-basic", "gvfs-oauth"])
def test_gravitinos_clients_say_that_their_token_has_expired(gravitino: dict[str, object], client: str) -> None:
    """Gravitino's client and its virtual file system, by Basic and by OAuth, work until the token expires, and then
    show the server's sentence.
    """
    assert gravitino[f"{client} before"] in (True, 0), gravitino
    assert EXPIRED in str(gravitino[f"{client} after"])
