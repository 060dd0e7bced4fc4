# SPDX-License-Identifier: Apache-2.0
"""Foreign processes that send lineage or use filesets, against a running server with access control on.

`python -m conformance.producers`: `dbt-ol` builds two models on DuckDB in tables of the server and sends its own
OpenLineage events, which must connect the tables. Trino's own listener reports statements. Gravitino's virtual file
system lists, reads and writes a fileset. Prints each check; the exit code is 1 if one fails.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

import duckdb

from conformance.engines.archives import wheels
from conformance.engines.checks import Checks
from conformance.engines.driver import Place
from conformance.engines.duck import attached
from conformance.gravitino.client import interpreter
from conformance.producers.relay import Relay, relay_before
from conformance.producers.trino import NAMESPACE, STATEMENTS, UNMAPPED, run_trino
from examples.demo.server import running_server
from limnos.client import Client

HERE = Path(__file__).parent
OUTPUT = HERE.parents[1] / "conformance-out"
EXTENSIONS = ("avro", "httpfs", "iceberg")
PROFILE = """
shop:
  target: dev
  outputs:
    dev:
      type: duckdb
      path: {work}/local.duckdb
      config_options: {{extension_directory: "{work}/extensions"}}
      extensions: [avro, httpfs, iceberg]
      secrets: [{{type: iceberg, name: caller, token: "{token}"}}]
      attach:
        - path: main
          alias: lake
          type: iceberg
          options:
            ENDPOINT: "{uri}/iceberg"
            SECRET: caller
            ACCESS_DELEGATION_MODE: none
            SUPPORT_NESTED_NAMESPACES: true
"""
FILES = """
import sys
from gravitino import gvfs

uri, token = sys.argv[1:]
options = {"auth_type": "basic", "basic_username": "admin", "basic_password": token}
lake = gvfs.GravitinoVirtualFileSystem(uri, "lake", options=options, skip_instance_cache=True)
root = "gvfs://fileset/files/landing/raw"
lake.makedirs(f"{root}/in", exist_ok=True)
with lake.open(f"{root}/in/a.txt", "wb") as file:
    file.write(b"hello")
lake.mv(f"{root}/in/a.txt", f"{root}/in/b.txt")
with lake.open(f"{root}/in/b.txt", "rb") as file:
    print(file.read().decode())
print(sorted(each.rsplit("/", 1)[-1] for each in lake.ls(f"{root}/in", detail=False)))
lake.rm(f"{root}/in/b.txt")
print(lake.exists(f"{root}/in/b.txt"))
"""


def run_dbt(client: Client, uri: str, token: str, work: Path) -> list[tuple[str, str]]:
    """Build the models with `dbt-ol`. Returns the edges of the last model's lineage, as names of tables."""
    client.metalakes.alter("lake", updates={"lineage.namespace.duckdb://*": "lake=main"})
    for name in ("raw", "curated"):
        client.namespaces.create(f"main.{name}")
    with attached(f"{uri}/iceberg", token) as duck:
        duck.execute("CREATE TABLE lake.raw.orders AS SELECT 'ann' AS customer, 20 AS amount UNION ALL SELECT 'bob', 5")
    target = work / "extensions" / f"v{duckdb.__version__}" / str(duckdb.sql("PRAGMA platform").fetchall()[0][0])
    target.mkdir(parents=True)
    for name in EXTENSIONS:
        source = (
            files(f"duckdb_extension_{name}") / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
        )
        shutil.copy(str(source), target)
    shutil.copytree(HERE / "dbt", work / "project")
    (work / "project" / "profiles.yml").write_text(PROFILE.format(work=work, uri=uri, token=token), encoding="utf-8")
    home = wheels("dbt", HERE / "dbt.txt")
    transport = {"type": "http", "url": uri, "auth": {"type": "api_key", "apiKey": token}}
    environment = {
        **os.environ,
        "PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(home),
        "OPENLINEAGE__TRANSPORT": json.dumps(transport),
        "DBT_PROFILES_DIR": str(work / "project"),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    }
    with (OUTPUT / "producers-dbt.log").open("wb") as log:
        command = [sys.executable, str(home / "bin" / "dbt-ol"), "run"]
        subprocess.run(command, cwd=work / "project", env=environment, stdout=log, stderr=log, check=True)
    return edges_above(client, "main.curated.best")


def edges_above(client: Client, path: str, *, column: str | None = None) -> list[tuple[str, str]]:
    """Return the edges of the lineage of a table or a column, as names, without those of filters and groups."""
    graph = client.lineage.up(path, column=column, depth=5)
    names = {each.id: ".".join((*(each.path or ()), *([each.column] if each.column else ()))) for each in graph.nodes}
    return sorted((names[edge.source], names[edge.target]) for edge in graph.edges if edge.direct)


def use_files(client: Client, uri: str, token: str) -> list[str]:
    """Use a fileset by Gravitino's virtual file system. Returns the lines that it printed."""
    client.catalogs.create("files", type="fileset", provider="fileset")
    client.namespaces.create("files.landing")
    client.filesets.create("files.landing.raw")
    command = [str(interpreter()), "-c", FILES, uri, token]
    with (OUTPUT / "producers-gvfs.log").open("wb") as log:
        printed = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, check=True, text=True).stdout
    return printed.splitlines()


def check_trino(client: Client, place: Place, relay: Relay, *, checks: Checks) -> None:
    """Check what the events of Trino's statements became: edges of tables and columns, and what was left out."""
    unmapped = "neither end is a table or view of this metalake: if it is one, give the metalake the property "
    unmapped += f"lineage.namespace.{NAMESPACE} = NAME=CATALOG, where NAME is what names in that namespace begin with"
    missing = "no table or view that you may see has this name or location"
    expected = dict(zip(STATEMENTS, ((number, []) for number in (0, 1, 0, 1, 0, 1, 1, 0)), strict=True))
    expected[UNMAPPED] = (0, [f"admin.sold.early: {unmapped}", f"system.runtime.nodes: {unmapped}"])
    expected[STATEMENTS[-1]] = (0, [f"admin.sold.items$snapshots: {missing}"])
    checks.expect("Trino: answers to its events", lambda: run_trino(client, place, relay), expected)
    tables = ["main.sold.items", "main.sold.sums", "main.sold.history", "main.sold.deep.copy"]
    edges = sorted(itertools.pairwise(tables))
    checks.expect("Trino: tables", lambda: edges_above(client, tables[-1]), edges)
    columns = [
        "main.sold.items.customer",
        "main.sold.sums.customer",
        "main.sold.history.name",
        "main.sold.deep.copy.name",
    ]
    edges = sorted(itertools.pairwise(columns))
    checks.expect("Trino: columns", lambda: edges_above(client, tables[-1], column="name"), edges)


def main() -> int:
    """Run and print."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    checks = Checks("producers")
    with (
        tempfile.TemporaryDirectory(prefix="limnos-producers-", dir="/tmp") as folder,
        running_server(Path(folder) / "data", log=OUTPUT / "producers-server.log") as server,
        relay_before(server.uri) as relay,
    ):
        token = (Path(folder) / "data" / "admin.token").read_text().strip()
        with Client(server.uri, token=token) as client:
            edges = [("main.curated.totals", "main.curated.best"), ("main.raw.orders", "main.curated.totals")]
            checks.expect("dbt-ol", lambda: run_dbt(client, server.uri, token, Path(folder)), edges)
            listed = ["hello", "['b.txt']", "False"]
            checks.expect("gvfs", lambda: use_files(client, server.uri, token), listed)
            place = Place(
                uri=f"{server.uri}/iceberg", warehouse="main", tokens={"admin": token}, work=Path(folder) / "trino"
            )
            check_trino(client, place, relay, checks=checks)
            (OUTPUT / "producers-trino.json").write_text(json.dumps(relay.kept, indent=1), encoding="utf-8")
    for check in checks.made:
        print(f"{check.name}: {'ok' if check.passed else check.told}")
    return int(not all(check.passed for check in checks.made))


if __name__ == "__main__":
    sys.exit(main())
