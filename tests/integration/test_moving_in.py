# SPDX-License-Identifier: Apache-2.0
"""`limnos migrate from` catalogs that store locations of metadata files, with real clients on both sides: PyIceberg's
catalogs in SQLite, PostgreSQL, a Hive metastore and Glue move into a real server.
"""

from __future__ import annotations

import json
import os
import shlex
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError

from limnos.cli.main import main
from tests.backends import PostgresServer
from tests.glue import GlueServer, glue_server
from tests.integration.live import LiveServer
from tests.metastores import HiveServer, hive_server

ROWS = pa.table({"order_id": [1, 2, 3]})
_NUMBERS = count(1)


@dataclass(kw_only=True)
class OldCatalog:
    """A catalog to move in: PyIceberg's client of it, and the words of the command."""

    kind: str
    uri: str
    warehouse: Path
    name: str
    properties: dict[str, str]
    flags: tuple[str, ...] = ()

    @cached_property
    def client(self) -> Catalog:
        """A client of the catalog."""
        return self.connect()

    def connect(self) -> Catalog:
        """Return a new client: PyIceberg's client of a metastore is of one thread."""
        return load_catalog(self.name, warehouse=f"file://{self.warehouse}", **self.properties)

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the command that name the catalog."""
        return "migrate", "from", self.kind, self.uri, *self.flags


class CommandResult(NamedTuple):
    """What a command printed: its exit code, the counts, its other lines by object, and its errors."""

    code: int
    counts: dict[str, int]
    lines: dict[str, dict[str, Any]]
    err: str


class MoveLab:
    """A catalog of the server to which tables come, and commands that move them."""

    def __init__(self, node: LiveServer, old: OldCatalog, *, capsys: pytest.CaptureFixture[str]) -> None:
        self.node = node
        self.old = old
        self.name = f"moved{next(_NUMBERS)}"
        self._capsys = capsys
        assert main(["create", "catalog", self.name]) == 0
        capsys.readouterr()

    def run(self, *flags: str) -> CommandResult:
        """Run the command with flags of a step."""
        code = main([*self.old.words, "--to", self.name, *flags])
        out, err = self._capsys.readouterr()
        *lines, last = [json.loads(line) for line in out.splitlines()] or [{}]
        return CommandResult(code, last.get("counts", {}), {".".join(each["path"]): each for each in lines}, err)

    def allow(self) -> None:
        """Run the command that a plan prints, which allows the locations of the tables."""
        plan = self.run("--plan")
        command = next(line for line in plan.err.splitlines() if line.startswith("  limnos set "))
        assert main(shlex.split(command)[1:]) == 0
        self._capsys.readouterr()

    @property
    def client(self) -> Catalog:
        """PyIceberg's client of the new place."""
        return load_catalog(
            self.name, type="rest", uri=f"{self.node.uri}/iceberg", warehouse=self.name, token=self.node.token
        )


@pytest.fixture(scope="session")
def locking_hive_server() -> Iterator[HiveServer]:
    """A metastore with locks, which commits take."""
    with hive_server(has_locks=True) as running:
        yield running


@pytest.fixture(scope="session")
def glue() -> Iterator[GlueServer]:
    """Glue, as moto serves it."""
    with glue_server() as running:
        yield running


@pytest.fixture(autouse=True)
def _environment(server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are sent as the administrator."""
    for name in [name for name in os.environ if name.upper().startswith("LIMNOS")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LIMNOS_URI", server.uri)
    monkeypatch.setenv("LIMNOS_TOKEN_FILE", str(server.data / "admin.token"))


@pytest.fixture(params=["sqlite", "postgresql", "hive", "glue"])
def old(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OldCatalog]:
    """An old catalog of each kind, with a namespace `shop` and a table `orders` of three rows."""
    catalog = _CATALOGS[request.param](request, tmp_path / "old", monkeypatch)
    with catalog.client as client:
        client.create_namespace("shop", {"team": "sales", "location": f"file://{catalog.warehouse}/shop.db"})
        client.create_table("shop.orders", schema=ROWS.schema).append(ROWS)
        yield catalog


def _sqlite(request: pytest.FixtureRequest, warehouse: Path, _patch: pytest.MonkeyPatch) -> OldCatalog:
    warehouse.mkdir()
    uri = f"sqlite:///{warehouse}/names.db"
    properties = {"type": "sql", "uri": uri}
    return OldCatalog(kind="jdbc-catalog", uri=uri, warehouse=warehouse, name="prod", properties=properties)


def _postgresql(request: pytest.FixtureRequest, warehouse: Path, _patch: pytest.MonkeyPatch) -> OldCatalog:
    postgres: PostgresServer = request.getfixturevalue("postgres_server")
    uri = postgres.empty_database()
    alchemy = uri.replace("postgresql://", "postgresql+psycopg://")
    properties = {"type": "sql", "uri": alchemy}
    with load_catalog("other", type="sql", uri=alchemy, warehouse=f"file://{warehouse}") as other:
        other.create_namespace("elsewhere")
    return OldCatalog(
        kind="jdbc-catalog",
        uri=uri,
        warehouse=warehouse,
        name="prod",
        properties=properties,
        flags=("--warehouse", "prod"),
    )


def _hive(request: pytest.FixtureRequest, warehouse: Path, _patch: pytest.MonkeyPatch) -> OldCatalog:
    metastore: HiveServer = request.getfixturevalue("locking_hive_server")
    with metastore.client() as client:  # of an earlier test
        for name in client.get_all_databases():
            for table in client.get_all_tables(name):
                client.drop_table(name, table, False)
            if name != "default":
                client.drop_database(name, False, True)
    uri = f"thrift://127.0.0.1:{metastore.bridge.port}"
    waits = {"lock-check-min-wait-time": "0.05", "lock-check-max-wait-time": "0.2", "lock-check-retries": "50"}
    properties = {"type": "hive", "uri": uri, **waits}
    return OldCatalog(kind="hive", uri=uri, warehouse=warehouse, name="hms", properties=properties)


def _glue(request: pytest.FixtureRequest, warehouse: Path, patch: pytest.MonkeyPatch) -> OldCatalog:
    server: GlueServer = request.getfixturevalue("glue")
    server.reset()
    for name, value in server.environment.items():
        patch.setenv(name, value)
    properties = {"type": "glue", "glue.endpoint": server.uri}
    return OldCatalog(kind="glue", uri=server.uri, warehouse=warehouse, name="aws", properties=properties)


_CATALOGS: dict[str, Callable[[pytest.FixtureRequest, Path, pytest.MonkeyPatch], OldCatalog]] = {
    "sqlite": _sqlite,
    "postgresql": _postgresql,
    "hive": _hive,
    "glue": _glue,
}


@pytest.fixture
def lab(server: LiveServer, old: OldCatalog, capsys: pytest.CaptureFixture[str]) -> MoveLab:
    """A new catalog for the tables of the old one."""
    return MoveLab(server, old, capsys=capsys)


def test_tables_come_with_their_rows_and_properties(lab: MoveLab) -> None:
    """A plan, a run, a second run and a check: PyIceberg reads the rows through the server, nothing comes twice, and
    a commit in the source makes the next run bring that table.
    """
    plan = lab.run("--plan")
    assert plan.counts["new"] == 1
    lab.allow()

    first, again = lab.run(), lab.run()
    lab.old.client.load_table("shop.orders").append(ROWS)
    behind, third, check = lab.run("--check"), lab.run(), lab.run("--check")

    assert (first.code, first.counts["new"]) == (0, 1), first
    assert (again.code, again.counts.get("same"), again.counts.get("new")) == (0, 1, None), again
    assert (behind.code, behind.lines["shop.orders"]["state"]) == (1, "behind")
    assert (third.counts.get("changed"), check.counts.get("same"), check.code) == (1, 1, 0), (third, check)
    assert lab.client.load_table("shop.orders").scan().to_arrow().num_rows == 6
    assert lab.client.load_namespace_properties("shop")["team"] == "sales"


def test_cut_over_ends_commits_of_the_old_catalog(lab: MoveLab) -> None:
    """After a cut-over the table that a writer has open there takes no commit, that of the server does, and a further
    cut-over changes nothing.
    """
    lab.allow()
    lab.run()
    opened = lab.old.client.load_table("shop.orders")

    done, again = lab.run("--cut-over", "rename"), lab.run("--cut-over", "rename")

    assert (done.code, done.counts["cut-over"]) == (0, 1), done
    assert (again.code, again.counts["cut-over"]) == (0, 1), again
    with pytest.raises((CommitFailedException, NoSuchTableError)):
        opened.append(ROWS)
    moved = lab.client.load_table("shop.orders")
    moved.append(ROWS)
    assert moved.properties["limnos.moved-to"].endswith(f"{lab.name}.shop.orders")
    assert lab.run("--check").counts == {"ahead": 1}


def test_mark_only_sets_the_property(lab: MoveLab) -> None:
    """`--cut-over mark` is a commit of the source's table, which the server has, too; both sides are the same."""
    lab.allow()
    lab.run()

    done = lab.run("--cut-over", "mark")

    assert (done.code, done.counts) == (0, {"marked": 1}), done
    assert lab.old.client.load_table("shop.orders").properties["limnos.moved-to"].endswith("shop.orders")
    assert lab.run("--check").counts == {"same": 1}


def test_cut_over_beside_writers_loses_no_commit(lab: MoveLab) -> None:
    """Two writers commit while tables are cut over: each acknowledged commit of the source is in the server."""
    names = [f"w{number}" for number in range(4)]
    for name in names:
        # The log of a hundred files, which is the default, is full before a run has compared the tables.
        properties = {"write.metadata.previous-versions-max": "10000"}
        lab.old.client.create_table(f"shop.{name}", schema=ROWS.schema, properties=properties)
    lab.allow()
    lab.run()
    acknowledged: dict[str, set[str]] = {name: set() for name in names}
    ended = threading.Event()

    def write(writer: int) -> None:
        number = 0
        with lab.old.connect() as client:
            while not ended.is_set():
                number += 1
                name = names[number % len(names)]
                try:
                    with client.load_table(f"shop.{name}").transaction() as change:
                        change.set_properties({f"k{writer}-{number}": "1"})
                except Exception:  # of a table that was cut over, or a commit that lost: not acknowledged
                    continue
                acknowledged[name].add(f"k{writer}-{number}")

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(40):
            if lab.run("--cut-over", "rename").counts.get("cut-over") == len(names) + 1:
                break
    finally:
        ended.set()
        for thread in threads:
            thread.join()

    last = lab.run("--cut-over", "rename")
    assert last.counts == {"cut-over": len(names) + 1}, last
    assert any(acknowledged.values())
    for name in names:
        assert acknowledged[name] <= set(lab.client.load_table(f"shop.{name}").properties)
