# SPDX-License-Identifier: Apache-2.0
"""`python -m conformance.installs [EXTRAS…]`: install the wheel with each extra alone in a clean environment, and do
what the extra is for.

May import the standard library, this folder and the tests' fake object stores. EXTRAS are as in `pip install`,
separated by commas (`server,s3`; `base` for none, `client` for the wheel of `limnos-client`); by default all. Packages
come from uv's cache. Takes about ten minutes on two cores.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from conformance.installs.world import Place, Unmet, build_client_wheel, build_wheel, constraints
from tests.adls import PLACE as ADLS
from tests.adls import adls
from tests.backends import postgres_server
from tests.gcs import gcs
from tests.objects import objects

PIPELINE = """
pipeline: shop
catalog: main
sources:
  orders:
    files: orders.csv
    schema: id bigint, amount double
    options: {header: true}
steps:
  raw.orders:
    load: orders
    expect: [amount > 0]
"""


def expect(output: object, *words: str) -> None:
    """Check that an output contains some words. Raises Unmet."""
    text = output if isinstance(output, str) else json.dumps(output)
    for word in words:
        if word not in text:
            raise Unmet(f"'{word}' is not in: {text[-2000:]}")


def base(place: Place, _stack: ExitStack) -> str:
    """The client and the command line, and hints for commands that need an extra."""
    expect(place.run("--version"), "limnos ")
    expect(place.run("server", "config"), "database.url")
    hint = place.run("server", "start", code=1)
    expect(hint, "pip install 'limnos[server]'")
    expect(place.run("spark", "jars", code=1), "pip install 'limnos[spark]'")
    expect(place.run("demo", code=1), "pip install 'limnos[server,spark,demo")
    expect(place.run("ls", "--uri", "http://127.0.0.1:9", code=6), "unavailable")
    place.python("from limnos.client import Client; Client('http://127.0.0.1:9').close()")
    return "version, config, hints, client"


def client(place: Place, _stack: ExitStack) -> str:
    """The client and the command line of `limnos-client`, and what it says of commands that need more."""
    expect(place.run("--version"), "limnos ")
    words = ("limnos-client has the command line and the client alone", "pip uninstall -y limnos-client && pip install")
    expect(place.run("server", "config"), "database.url")
    for command in ("server start", "demo", "spark jars", "pipeline check x.yaml"):
        expect(place.run(*command.split(), code=1), *words)
    expect(place.run("ls", "--uri", "http://127.0.0.1:9", code=6), "unavailable")
    place.python("from limnos.client import Client; Client('http://127.0.0.1:9').close()")
    return "version, config, hints, client"


def server(place: Place, _stack: ExitStack) -> str:
    """A server on SQLite, with every protocol, backup and restore; the error for settings that need another package
    names it.
    """
    expect(place.run("server", "check", "--data", "data", "--listen", "127.0.0.1:0"), "[]")
    with place.server() as running:
        running.run("create", "namespace", "main.b")
        expect(running.run("ls", "main"), "main.b")
        running.make_table()
        expect(running.run("describe", "main.a.t"), "long")
        expect(running.run("sql", "--command", "select value 1 + 1"), "2")
        expect(running.run("storage", "check", "main"), "passed")
        expect(running.run("sql", "--command", "select value count(*) from a.t", code=6), "pip install 'limnos[spark]'")
        expect(running.run("export", "lake", "--format", "json"), "main", "trailer")
        expect(place.run("server", "backup", "copy", "--data", "data"), "complete")
    expect(place.run("server", "restore", "copy", "--data", "data"), "is the store")
    expect(place.run("server", "janitor", "--dry-run", "--data", "data"), "")
    wants = place.run("server", "check", "--database", "postgresql://ana@127.0.0.1:9/x", "--data", "data", code=1)
    expect(wants, "psycopg", "pip install 'limnos[postgres]'")
    expect(
        place.run("server", "start", "--warehouse", "s3://b/w", "--data", "other", code=1), "pip install 'limnos[s3]'"
    )
    return "check, start, Iceberg, Gravitino, SQL++, export, backup, restore, janitor, hints"


def postgres_store(place: Place, stack: ExitStack) -> str:
    """A server over PostgreSQL."""
    url = stack.enter_context(postgres_server()).empty_database()
    expect(place.run("server", "migrate", "--database", url, "--data", "data"), "schema")
    with place.server("--database", url) as running:
        running.make_table()
        expect(running.run("ls", "main"), "main.a")
    expect(place.run("server", "check", "--database", url, "--data", "data", "--listen", "127.0.0.1:0"), "[]")
    return "migrate, start, table, check"


def s3(place: Place, stack: ExitStack) -> str:
    """Tables on S3."""
    store = stack.enter_context(objects())
    flags = ("--allow-root", "s3://lake", "--allow-endpoint", store.uri)
    with place.server(*flags) as running:
        status, body = running.make_catalog(
            "cloud", provider="lakehouse-iceberg", warehouse="s3://lake/w", **store.properties
        )
        expect([status, body], "200")
        location = running.make_table("cloud")
    expect(location, "s3://lake/w")
    return f"table at {location[:20]}…"


def google(place: Place, stack: ExitStack) -> str:
    """Tables on Google's store."""
    store = stack.enter_context(gcs())
    with place.server("--allow-root", "gs://lake", "--allow-endpoint", store.uri) as running:
        status, body = running.make_catalog(
            "cloud", provider="lakehouse-iceberg", warehouse="gs://lake/w", **store.properties
        )
        expect([status, body], "200")
        location = running.make_table("cloud")
    expect(location, "gs://lake/w")
    return f"table at {location[:20]}…"


def azure(place: Place, stack: ExitStack) -> str:
    """Tables on Azure's store: the extra has all needed packages, so the store's refusal is not about a missing one."""
    store = stack.enter_context(adls(place.work))
    with place.server("--allow-root", ADLS, "--allow-endpoint", f"https://{store.host}") as running:
        _, body = running.make_catalog("cloud", provider="lakehouse-iceberg", warehouse=f"{ADLS}/w", **store.by_key)
    if "not installed" in json.dumps(body):
        raise Unmet(json.dumps(body))
    place.python("import adlfs, azure.identity, azure.storage.filedatalake, limnos.sources.adls")
    return "catalog, signatures' libraries"


def connector(provider: str, kind: str, **properties: str) -> Callable[[Place, ExitStack], str]:
    """A catalog of an unreachable external system: its library is installed, so that the connection fails."""

    def job(place: Place, _stack: ExitStack) -> str:
        with place.server("--allow-source", "127.0.0.1:9") as running:
            status, body = running.make_catalog("outside", provider=provider, kind=kind, **properties)
            expect([status, body], "200")
            answer = running.ask("GET", "/api/metalakes/lake/catalogs/outside/schemas")
            if kind == "messaging":
                answer = running.ask("GET", "/api/metalakes/lake/catalogs/outside/schemas/default/topics")
        if "not installed" in json.dumps(answer) or answer[0] not in {502, 503}:
            raise Unmet(f"the connection is not what fails: {answer}")
        return f"catalog, and {answer[0]} of a system that is away"

    return job


def audit(place: Place, _stack: ExitStack) -> str:
    """Audit records as Parquet."""
    with place.server() as running:
        running.make_table()
        running.run("audit", "export", str(running.data / "warehouse" / "audit"))
    place.python("from limnos.formats.audit_files import file_of; assert file_of([])[:4] == b'PAR1'")
    return "export, a Parquet file"


def lance(place: Place, _stack: ExitStack) -> str:
    """Lance tables, with a server and without."""
    write = "import lance, pyarrow as pa, sys; lance.write_dataset(pa.table({'x': [1, 2]}), sys.argv[1])"
    place.python(write, str(place.work / "dir" / "t.lance"))
    expect(place.run("lance", "ls", "dir"), "t")
    expect(place.run("lance", "describe", "dir", "t"), "int64")
    with place.server() as running:
        place.python(write, str(running.data / "warehouse" / "lance" / "u.lance"))
        request_body = {"location": f"file://{running.data}/warehouse/lance/own/v.lance"}
        running.ask("POST", "/lance/v1/namespace/lance$s/create", {})
        status, body = running.ask("POST", "/lance/v1/table/lance$s$v/declare", request_body | {"location": None})
        expect([status, body], "200")
        expect(running.run("describe", "lance.s.v"), "location")
    return "ls, describe, declare"


def pipelines(place: Place, _stack: ExitStack) -> str:
    """Pipelines are checked without Spark."""
    _write_pipeline(place)
    expect(place.run("pipeline", "schema"), "pipeline")
    expect(place.run("pipeline", "check", "shop.yaml", "--offline"), "raw.orders")
    expect(place.run("pipeline", "run", "shop.yaml", code=1), "pip install 'limnos[spark]'")
    return "schema, check, hint"


def spark(place: Place, _stack: ExitStack) -> str:
    """A pipeline's file, and Spark alone."""
    _write_pipeline(place)
    expect(place.run("spark", "jars"), "iceberg")
    expect(place.run("pipeline", "check", "shop.yaml", "--offline"), "raw.orders")
    place.python(
        "import limnos.spark, limnos.pipeline.run.command, limnos.rooms.sqlpp.engine.process, limnos.pipeline.engine.launch"
    )
    return "jars, check, imports"


def spark_server(place: Place, _stack: ExitStack) -> str:
    """The beginning of docs/start/pipelines.md: a pipeline that runs, and SQL++ over its table."""
    _write_pipeline(place)
    with place.server() as running:
        place.run("pipeline", "run", "shop.yaml", *running.flags)
        expect(running.run("ls", "main.raw"), "orders")
        expect(running.run("sql", "--command", "select value count(*) from `raw`.orders"), "2")
    return "pipeline run, SQL++ over data"


def connect(place: Place, _stack: ExitStack) -> str:
    """Spark Connect's client."""
    place.python(
        "import pyspark.sql.connect.session, grpc, grpc_status, zstandard, limnos.spark, limnos.pipeline.run.command"
    )
    return "client"


def demo(place: Place, _stack: ExitStack) -> str:
    """The demo of the wheel, from beginning to end."""
    expect(place.run("demo", "demo"), "report")
    return "whole"


def _write_pipeline(place: Place) -> None:
    (place.work / "orders.csv").write_text("id,amount\n1,12.5\n2,7.0\n", encoding="utf-8")
    (place.work / "shop.yaml").write_text(PIPELINE, encoding="utf-8")


CLIENT = "client"
JDBC = {"jdbc-user": "u", "jdbc-password": "planted"}
JOBS: dict[str, Callable[[Place, ExitStack], str]] = {
    "": base,
    CLIENT: client,
    "server": server,
    "server,postgres": postgres_store,
    "server,s3": s3,
    "server,gcs": google,
    "server,adls": azure,
    "server,kafka": connector("kafka", "messaging", **{"bootstrap.servers": "127.0.0.1:9"}),
    "server,mysql": connector("jdbc-mysql", "relational", **{"jdbc-url": "jdbc:mysql://127.0.0.1:9", **JDBC}),
    "server,hive": connector("hive", "relational", **{"metastore.uris": "thrift://127.0.0.1:9"}),
    "server,audit": audit,
    "server,lance": lance,
    "pipelines": pipelines,
    "spark": spark,
    "server,spark": spark_server,
    "connect": connect,
    "server,spark,demo": demo,
}
"""For the extras of an environment, the functions that test it."""


def main(arguments: list[str]) -> int:
    """Test the given environments, or all; prints a line for each, and returns 0 if each serves its purpose."""
    environments = ["" if each == "base" else each for each in arguments] or list(JOBS)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="limnos-installs-") as folder:
        wheel, versions = build_wheel(Path(folder)), constraints(Path(folder))
        for name in environments:
            place = Path(folder) / (name or "base").replace(",", "-")
            own = build_client_wheel(Path(folder) / "client-wheel") if name == CLIENT else wheel
            failed += not _tried(place, own, versions=versions, name=name)
    print(f"{len(environments) - failed} of {len(environments)} installs do what they are for")
    return 1 if failed else 0


def _tried(folder: Path, wheel: Path, *, versions: Path, name: str) -> bool:
    began = time.monotonic()
    try:
        place = Place.make(folder, wheel=wheel, versions=versions, extras="" if name == CLIENT else name)
        with ExitStack() as stack:
            done = JOBS[name](place, stack)
    except Exception as error:
        if not isinstance(error, Unmet):
            traceback.print_exc()
        print(f"{name or 'base':18} FAILED  {error}", flush=True)
        return False
    print(f"{name or 'base':18} works   {done} ({time.monotonic() - began:.0f} s)", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
