# SPDX-License-Identifier: Apache-2.0
"""The snippets of the console's tab "Connect" run as they are shown, for users with and without restrictions."""

from __future__ import annotations

import html
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import quote, urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

import lancedb
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from conformance.engines.duck import attached
from conformance.engines.page import block
from limnos.client import Client
from limnos.client.values import NamedPrincipals
from limnos.spark.jars import ensure_runtime, installed_pyspark, runtime_for
from tests.integration.duckdb_client import EXTENSIONS
from tests.integration.live import LIMNOS, LiveServer, serving

pytestmark = pytest.mark.room("console")

TABLES = {"main": "raw.orders", "deep": "raw.caf é.or'ders"}
VECTORS = ["ra w", "vec-tors.1"]
"""Namespace and name of the Lance table in the catalog `lance`. LanceDB takes no other special characters in names."""
BOB = NamedPrincipals(users=("bob",))
ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "card": ["1234-5678", "8765-4321"]})
LOAD = """
import duckdb, importlib.resources as resources
_connect = duckdb.connect
def connect():
    connection = _connect()
    for name in {extensions!r}:
        folder = resources.files(f"duckdb_extension_{{name}}") / "extensions" / f"v{{duckdb.__version__}}"
        connection.load_extension(str(folder / f"{{name}}.duckdb_extension"))
    return connection
duckdb.connect = connect
"""
"""Loads DuckDB's pinned extensions, in place of the snippet's INSTALL, which downloads them."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A token-only server with the tables and their readers."""
    with snippet_server(tmp_path_factory.mktemp("snippets") / "data") as server:
        yield server


@contextmanager
def snippet_server(data: Path) -> Iterator[LiveServer]:
    """Run a token-only server with two catalogs, tables of two rows, the reader `ana`, and the restricted reader
    `bob`.
    """
    with serving(data, authentication="token") as server:
        with Client(server.uri, token=server.token) as admin:
            admin.catalogs.create("deep", type="relational", provider="lakehouse-iceberg")
            admin.roles.create("readers")
            for user in ("ana", "bob"):
                admin.users.add(user)
                admin.roles.grant_to_user(user, ["readers"])
            for catalog, table in TABLES.items():
                _make_table(admin, catalog, table.split("."))
                admin.roles.allow("readers", ["USE_CATALOG", "USE_SCHEMA", "SELECT_TABLE"], on=catalog, kind="catalog")
                admin.restrictions.set(
                    "r", [catalog, *table.split(".")], masks={"card": "show-last-4"}, to=BOB, kind="table"
                )
        yield server


def _make_table(admin: Client, catalog: str, path: list[str]) -> None:
    for end in range(1, len(path)):
        admin.namespaces.create([catalog, *path[:end]])
    load_catalog(catalog, **admin.iceberg_properties(catalog)).create_table(tuple(path), ROWS.schema).append(ROWS)


def snippets(server: LiveServer, token: str, catalog: str) -> dict[str, str]:
    """Return the snippets on the page of a catalog's table, as a user sees them."""
    with Client(server.uri, token=token) as client:
        code = client.logins.console_code().code
    browser = build_opener(HTTPCookieProcessor(CookieJar()))
    form = urlencode({"code": code, "next": ""}).encode()
    browser.open(Request(f"{server.uri}/console/enter", form, {"Origin": server.uri})).read()
    levels = VECTORS if catalog == "lance" else TABLES[catalog].split(".")
    path = "/".join(quote(part, safe="") for part in (catalog, *levels))
    page = browser.open(f"{server.uri}/console/o/table/lake/{path}?tab=connect").read().decode()
    blocks = re.findall(r'<pre id="snippet-(\w+)"[^>]*>(.*?)</pre>', page, re.DOTALL)
    return {name: html.unescape(text) for name, text in blocks}


def run(
    server: LiveServer, user: str, catalog: str, client: str, folder: Path, *, seen_by: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a snippet with a user's token, in an empty directory and HOME.

    The page is read with that token, or with another one, `seen_by`, for a user who cannot open it.
    """
    with Client(server.uri, token=server.token) as admin:
        token = admin.tokens.create(user=user).token
    text = snippets(server, seen_by or token, catalog)[client]
    if client in ("limnos", "sqlpp", "spark"):
        for name, words in (("limnos", LIMNOS), ("spark-sql", [str(Path(sys.executable).with_name("spark-sql"))])):
            program = folder / name
            program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            program.chmod(0o700)
        if client == "spark":
            runtime = runtime_for(installed_pyspark())
            package = f"--packages {runtime.group}:{runtime.name}:{runtime.version}"
            assert package in text
            text = text.replace(package, f"--jars {shlex.quote(str(ensure_runtime()))}")
        command = ["bash", "-c", text]
    else:
        start = LOAD.format(extensions=EXTENSIONS) if client == "duckdb" else ""
        command = [sys.executable, "-c", start + text.replace("INSTALL iceberg; LOAD iceberg", "SELECT 1")]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("LIMNOS")}
    variables |= {"LIMNOS_TOKEN": token, "HOME": str(folder), "PATH": f"{folder}:{os.environ['PATH']}"}
    return subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize("catalog", TABLES)
@pytest.mark.parametrize("client", ["pyiceberg", "duckdb", "limnos"])
def test_snippet_reads_the_table(lake: LiveServer, tmp_path: Path, catalog: str, client: str) -> None:
    """A snippet runs as shown for an unrestricted user: in the default catalog, whose name DuckDB reserves, and in
    another one with a nested namespace and quotes in the name.
    """
    done = run(lake, "ana", catalog, client, tmp_path)

    assert done.returncode == 0, done.stderr[-2000:]
    assert ("card" if client == "limnos" else "8765-4321") in done.stdout


@pytest.mark.parametrize("catalog", TABLES)
def test_pyiceberg_snippet_reads_masked_values(lake: LiveServer, tmp_path: Path, catalog: str) -> None:
    """For a restricted user PyIceberg's snippet reads the masked values without another setting: the server's
    configuration makes PyIceberg plan on the server.
    """
    done = run(lake, "bob", catalog, "pyiceberg", tmp_path)

    assert done.returncode == 0, done.stderr[-2000:]
    assert "xxxxx4321" in done.stdout
    assert "8765" not in done.stdout


def test_duckdb_names_the_setting_to_a_restricted_user(lake: LiveServer, tmp_path: Path) -> None:
    """DuckDB plans all scans itself: a restricted user's page has no snippet of it, and that of another user fails with
    the setting in its message.
    """
    done = run(lake, "bob", "main", "duckdb", tmp_path, seen_by=lake.token)
    with Client(lake.uri, token=lake.token) as admin:
        own = snippets(lake, admin.tokens.create(user="bob").token, "main")

    assert "pyiceberg" in own
    assert "duckdb" not in own
    assert done.returncode != 0
    assert "read-restricted-set-scan-planning-mode-to-server" in done.stderr


def test_trino_snippet_has_the_documented_settings(lake: LiveServer) -> None:
    """Trino's snippet has the settings of the guide, which conformance runs use, and a catalog's own name."""
    texts = snippets(lake, lake.token, "deep")
    settings, _, statement = texts["trino"].partition("\n\n")
    documented = block("Trino", uri=f"{lake.uri}/iceberg", token="${ENV:LIMNOS_TOKEN}", catalog="lake/deep")

    assert settings.splitlines() == documented.splitlines()
    assert statement.strip() == 'SELECT * FROM "deep"."raw.caf é"."or\'ders" LIMIT 10;'


def test_lancedb_snippet_reads_the_table(lake: LiveServer, tmp_path: Path) -> None:
    """LanceDB's snippet reads a Lance table for a user who may read it; another user is refused."""
    with Client(lake.uri, token=lake.token) as admin:
        admin.roles.create("searchers")
        admin.roles.allow("searchers", ["USE_CATALOG", "USE_SCHEMA", "SELECT_TABLE"], on="lance", kind="catalog")
        admin.roles.grant_to_user("ana", ["searchers"])
    db = lancedb.connect("db://lance", api_key=lake.token, host_override=f"{lake.uri}/lance")
    db.create_namespace(VECTORS[:1])
    rows = pa.table({"id": [1, 2], "vector": pa.array([[0.0, 1.0], [1.0, 0.0]], pa.list_(pa.float32(), 2))})
    db.create_table(VECTORS[1], rows, namespace_path=VECTORS[:1])

    done = run(lake, "ana", "lance", "lancedb", tmp_path)
    description = run(lake, "ana", "lance", "limnos", tmp_path)
    refused = run(lake, "bob", "lance", "lancedb", tmp_path, seen_by=lake.token)

    assert done.returncode == 0, done.stderr[-2000:]
    assert "'id': 2" in done.stdout
    assert "vector" in description.stdout, description.stderr
    assert refused.returncode != 0
    assert "USE_CATALOG" in refused.stderr


def test_clients_say_that_their_token_was_revoked(lake: LiveServer) -> None:
    """A token that is revoked during a session of a client ends it with an error that says so."""
    with Client(lake.uri, token=lake.token) as admin:
        token = admin.tokens.create(user="ana")
        iceberg = load_catalog("deep", type="rest", uri=f"{lake.uri}/iceberg", warehouse="deep", token=token.token)
        table = iceberg.load_table(tuple(TABLES["deep"].split(".")))
        lance = lancedb.connect("db://lance", api_key=token.token, host_override=f"{lake.uri}/lance")
        own = Client(lake.uri, token=token.token)
        with own, attached(f"{lake.uri}/iceberg", token.token, catalog="deep") as engine:
            engine.execute("SHOW ALL TABLES").fetchall()
            own.catalogs.list()
            assert admin.tokens.revoke(token.id)

            for call in (
                table.refresh,
                lance.list_namespaces,
                own.catalogs.list,
                lambda: engine.execute('SELECT * FROM lake."raw.caf é"."or\'ders"').fetchall(),
            ):
                with pytest.raises(Exception, match="The token was revoked: sign in again"):
                    call()
