# SPDX-License-Identifier: Apache-2.0
"""COPY TO by a real server and its engine: formats, order and partitions, masks, an object store, a killed engine."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bench.cpu import descendants
from limnos.client import Client
from limnos.client.values import NamedPrincipals
from tests.integration.live import LiveServer, serving
from tests.objects import ObjectStoreServer, authorized
from tests.rooms.sqlpp.engine.test_service import ask, rows

pytestmark = [
    pytest.mark.spark,
    pytest.mark.integration,
    pytest.mark.heavy,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
MADE = """
create dataverse shop; use shop;
create type Sale as { id: bigint, city: string?, at_: datetime? };
create dataset Sales(Sale) primary key id;
insert into Sales (select value {"id": i, "city": ["Rome", "Oslo", "Bern"][i % 3], "at_": datetime("2020-01-01T00:00:00") , "open": {"d": date("2020-01-02"), "n": i}}
  from range(1, 3000) i);
"""


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStoreServer]:
    """An object store."""
    with authorized() as object_store:
        yield object_store


@pytest.fixture(scope="module")
def server(store: ObjectStoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server with a dataset, a directory for exports, and filesets in an object store."""
    base = tmp_path_factory.mktemp("exports")
    (base / "out").mkdir()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LIMNOS__SQLPP__EXPORT_ROOTS", str(base / "out"))
        patched.setenv("LIMNOS__SQLPP__FILE_ROOTS", str(base / "out"))
        with (
            serving(base / "data", "--allow-root", "s3://lake", "--allow-endpoint", store.uri) as running,
            Client(running.uri, token=running.token) as client,
        ):
            properties = {key: value for key, value in store.properties.items() if key != "s3-role-arn"}
            client.catalogs.create(
                "files", type="fileset", provider="fileset", properties={**properties, "location": "s3://lake/files"}
            )
            post(running, "/api/metalakes/lake/catalogs/files/schemas", {"name": "raw"})
            client.filesets.create("files.raw.out")
            status, answer = ask(running, MADE)
            assert status == 200, answer
            yield running


def post(server: LiveServer, path: str, body: object) -> None:
    """Send a request of the administrator that creates an object."""
    request = urllib.request.Request(
        f"{server.uri}{path}",
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        answer.read()


def _out(server: LiveServer) -> Path:
    return server.data.parent / "out"


def test_each_export_format_is_loaded_again(server: LiveServer) -> None:
    """LOAD of the same server reads each format; ADM keeps every type, also of undeclared fields."""
    whole = rows(server, "select value s from shop.Sales s order by s.id", format="lossless-json")
    columns = "type ({id: bigint, city: string?, at_: datetime?})"
    for name, more, compression in (
        ("adm", "", "'compression': 'gzip'"),
        ("json", "", ""),
        ("csv", columns, "'header': true"),
        ("parquet", "", "'compression': 'zstd'"),
    ):
        what = "shop.Sales" if name != "csv" else "(select s.id, s.city, s.at_ from shop.Sales s) as x"
        settings = ", ".join(filter(None, [f"'format': '{name}'", compression, "'max-objects-per-file': 1000"]))
        rows(server, f"copy {what} to localfs path ('{_out(server)}/{name}') {more} with {{{settings}}}")
        assert len(list((_out(server) / name).iterdir())) == 3
        header = ", ('header'='true')" if name == "csv" else ""
        rows(
            server,
            f"use shop; create dataset Back_{name}(Sale) primary key id; load dataset Back_{name} using localfs"
            f" (('path'='localhost://{_out(server)}/{name}'), ('format'='{name}'){header})",
        )

    assert rows(server, "select value s from shop.Back_adm s order by s.id", format="lossless-json") == whole
    plain = rows(server, "select value s from shop.Sales s order by s.id")
    assert rows(server, "select value s from shop.Back_json s order by s.id") == plain
    assert rows(server, "select value s from shop.Back_parquet s order by s.id") == plain
    assert rows(server, "select value s.`at_` from shop.Back_csv s where s.id = 2999") == ["2020-01-01T00:00:00.000"]
    tables = [pq.read_table(path) for path in sorted((_out(server) / "parquet").iterdir())]
    assert sum(table.num_rows for table in tables) == 3000


def test_cli_results_in_adm_and_json_can_be_loaded(server: LiveServer) -> None:
    """`limnos sql --results adm` keeps every type; after JSON an UPDATE restores the types of undeclared fields."""
    whole = rows(server, "select value s from shop.Sales s order by s.id", format="lossless-json")
    for results in ("adm", "json-lines"):
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "limnos.cli.main",
                "sql",
                "--uri",
                server.uri,
                "--results",
                results,
                "-c",
                "select value s from shop.Sales s",
            ],
            env={**os.environ, "LIMNOS_TOKEN": server.token},
            capture_output=True,
            text=True,
            check=True,
        )
        (_out(server) / f"Sales.{results}").write_text(done.stdout)
        format_ = results.partition("-")[0]
        rows(
            server,
            f"use shop; create dataset Moved_{format_}(Sale) primary key id; load dataset Moved_{format_} using localfs"
            f" (('path'='localhost://{_out(server)}/Sales.{results}'), ('format'='{format_}'))",
        )

    query = "select value s from shop.{} s order by s.id"
    assert rows(server, query.format("Moved_adm"), format="lossless-json") == whole
    assert rows(server, query.format("Moved_json"), format="lossless-json") != whole
    rows(server, "update shop.Moved_json s set s.`open`.d = date(s.`open`.d) where is_string(s.`open`.d)")
    assert rows(server, query.format("Moved_json"), format="lossless-json") == whole


def test_partitioned_export_is_ordered_within_directories(server: LiveServer) -> None:
    """Each value has a directory, with objects in the order of OVER; the answer warns about other fields."""
    statement = (
        "copy (select s.id, case when s.id < 2990 then s.city end as city from shop.Sales s) as x to localfs"
        f" path ('{_out(server)}/parts', 'city=' || city) over (partition by x.city city order by x.id desc)"
        " with {'format': 'json', 'compression': 'gzip'}"
    )
    status, answer = ask(server, statement, **{"max-warnings": "5"})
    assert status == 200, answer

    assert {"Path expression produced a value of type 'null'" in each["msg"] for each in answer["warnings"]} == {True}
    partition_rows = {
        path.parent.name: [json.loads(line)["id"] for line in gzip.decompress(path.read_bytes()).splitlines()]
        for path in (_out(server) / "parts").rglob("part-*")
    }
    assert set(partition_rows) == {"city=Rome", "city=Oslo", "city=Bern"}
    assert partition_rows["city=Oslo"] == [i for i in range(2989, 0, -1) if i % 3 == 1]


def test_restricted_user_is_refused_to_export(server: LiveServer) -> None:
    """Filters and masks apply: COPY TO is refused to users whom a restriction of the table affects, and writes
    nothing.
    """
    with Client(server.uri, token=server.token) as client:
        client.users.add("ana")
        client.roles.create("readers")
        client.roles.allow("readers", ["USE_CATALOG", "USE_SCHEMA", "SELECT_TABLE"], on="main", kind="catalog")
        client.roles.grant_to_user("ana", ["readers"])
        client.restrictions.set(
            "r",
            "main.shop.Sales",
            kind="table",
            filter="city = 'Rome'",
            masks={"at_": "replace-with-null"},
            to=NamedPrincipals(users=("ana",)),
        )
        token = client.tokens.create(user="ana", name="t", expires_in_s=3600).token
    status, answer = ask(
        server, f"copy shop.Sales to localfs path ('{_out(server)}/ana') with {{'format': 'json'}}", token
    )

    assert (status, "restricted" in answer["errors"][0]["msg"]) == (403, True), answer
    assert not (_out(server) / "ana").exists()


def test_object_store_export_writes_success_marker_last(server: LiveServer, store: ObjectStoreServer) -> None:
    """COPY TO writes to an object store through a fileset. The success marker is written last, and a second export is
    refused.
    """
    statement = (
        "copy shop.Sales to fileset path ('day') with {'format': 'json', 'fileset': 'files.raw.out',"
        " 'max-objects-per-file': 1000}"
    )
    rows(server, statement)
    names = sorted(name.rpartition("/")[2] for name in store.names("files/") if "/day/" in name)

    assert [name.split("-")[:2] for name in names] == [["_SUCCESS"], *(["part", f"0000{n}"] for n in range(3))]
    assert len({name.partition("-")[2][6:] for name in names[1:]}) == 1
    status, answer = ask(server, statement)
    assert (status, answer["errors"][0]["msg"][:8]) == (400, "ASX0062:")


def test_killed_engine_leaves_no_export_directory(server: LiveServer) -> None:
    """If the engine is killed during COPY TO, the caller gets 503 and no directory remains; the next attempt works."""
    statement = (
        "copy (select a.id, b.id as other from shop.Sales a, shop.Sales b) as x"
        f" to localfs path ('{_out(server)}/killed') with {{'format': 'json'}}"
    )
    answers: list[int] = []
    thread = threading.Thread(target=lambda: answers.append(ask(server, statement)[0]))
    thread.start()
    hidden: list[Path] = []
    while not any(any(path.iterdir()) for path in hidden):
        time.sleep(0.05)
        assert thread.is_alive()
        hidden = list(_out(server).glob(".limnos-export-*"))
    (java,) = (each for each in descendants([server.pid]) if Path(f"/proc/{each}/comm").read_text() == "java\n")
    os.kill(java, signal.SIGKILL)
    thread.join(120)

    assert answers == [503]
    assert not (_out(server) / "killed").exists()
    while list(_out(server).glob(".limnos-export-*")):  # deleted after the answer
        time.sleep(0.05)
    rows(server, f"copy shop.Sales to localfs path ('{_out(server)}/killed') with {{'format': 'json'}}")
    assert len(list((_out(server) / "killed").iterdir())) == 1
