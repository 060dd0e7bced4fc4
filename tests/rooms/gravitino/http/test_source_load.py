# SPDX-License-Identifier: Apache-2.0
"""Connector sources with thousands of tables, many concurrent callers, no answers, and invalid answers: real servers,
with counted calls.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
import sqlalchemy as sa
from hive_metastore.ttypes import FieldSchema, SerDeInfo, StorageDescriptor, Table

from limnos.config.storage import SourcesSection
from limnos.rooms.connectors.sources import iceberg_rest
from limnos.sources.catalogs import metastore_connections
from tests.backends import PostgresServer
from tests.bridges import Bridge, bridge_to
from tests.http.driver import API, DriverAnswer, DriverNode, grant, node_at
from tests.http.iceberg import wire
from tests.http.iceberg.federated import MAIN, far_at, new_table
from tests.mariadbs import PASSWORD, USER, MariaServer
from tests.metastores import HiveServer
from tests.rooms.gravitino.http.source_catalogs import listed
from tests.scripted_server import ScriptedAnswer, scripted

pytestmark = [pytest.mark.integration, pytest.mark.heavy]

MANY, CROWD = int(os.environ.get("LIMNOS_TEST_FAR_TABLES", "500")), 64
SHOWN = f"{API}/lake/catalogs/shown"
NAMES = [f"t{at:04}" for at in range(MANY)]
FEW = (NAMES[7], NAMES[-1])
_THRIFT = re.compile(rb"\x80\x01\x00\x01\x00\x00\x00.([a-z_]+)", re.DOTALL)


class LargeSource(NamedTuple):
    """A node with a catalog `shown` of a source with many tables in one schema, and a connection to the source."""

    node: DriverNode
    bridge: Bridge
    schema: str
    calls: Callable[[LargeSource], Counter[str]]
    """The requests to the source since the last call."""
    most: int
    """The maximum number of requests for a load, without those for a connection."""

    @property
    def tables(self) -> str:
        """Return the URL of the list of tables."""
        return f"{SHOWN}/schemas/{self.schema}/tables"

    async def crowd(self) -> list[DriverAnswer]:
        """Let many callers load one table each, concurrently."""
        names = NAMES[:: MANY // CROWD][:CROWD]
        return await asyncio.gather(*(self.node.answer("GET", f"{self.tables}/{name}") for name in names))


def _create_catalog(node: DriverNode, provider: str, **properties: str) -> None:
    body = {"name": "shown", "type": "relational", "provider": provider, "properties": properties}
    node.done("POST", f"{API}/lake/catalogs", body)


def _sources(bridge: Bridge) -> SourcesSection:
    return SourcesSection(allowed_addresses=(f"127.0.0.1:{bridge.port}",), timeout_s=60.0)


@contextmanager
def _statements(dialect: str) -> Iterator[Callable[[LargeSource], Counter[str]]]:
    """Count the statements sent to databases of a kind."""
    statement_counts: Counter[str] = Counter()

    def hear(connection: sa.Connection, _cursor: object, statement: str, *_: object) -> None:
        if connection.dialect.name == dialect:
            statement_counts[statement] += 1

    def take_counts(_source: LargeSource) -> Counter[str]:
        counts = Counter(statement_counts)
        statement_counts.clear()
        return counts

    sa.event.listen(sa.Engine, "before_cursor_execute", hear)
    try:
        yield take_counts
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", hear)


@contextmanager
def _postgresql(request: pytest.FixtureRequest, folder: Path) -> Iterator[LargeSource]:
    server: PostgresServer = request.getfixturevalue("postgres_server")
    database = server.empty_database()
    with psycopg.connect(database, autocommit=True) as connection:
        name, user = connection.info.dbname, connection.info.user
        connection.execute("CREATE SCHEMA sales")
        connection.execute("SELECT set_config('client_min_messages', 'warning', false)")
        connection.execute(
            f"DO $$ BEGIN FOR n IN 0..{MANY - 1} LOOP EXECUTE format('CREATE TABLE sales.t%s (id bigint)',"
            " lpad(n::text, 4, '0')); END LOOP; END $$"
        )
    with (
        bridge_to(database) as bridge,
        node_at(folder, sources=_sources(bridge)) as node,
        _statements("postgresql") as calls,
    ):
        _create_catalog(
            node,
            "jdbc-postgresql",
            **{
                "jdbc-url": f"jdbc:postgresql://127.0.0.1:{bridge.port}/{name}",
                "jdbc-user": user,
                "jdbc-password": "word",
            },
        )
        yield LargeSource(node=node, bridge=bridge, schema="sales", calls=calls, most=8)


@contextmanager
def _mysql(request: pytest.FixtureRequest, folder: Path) -> Iterator[LargeSource]:
    server: MariaServer = request.getfixturevalue("maria_server")
    server.sql(
        "CREATE DATABASE many", "USE many", *(f"CREATE TABLE {name} (id BIGINT) ENGINE=MEMORY" for name in NAMES)
    )
    with node_at(folder, sources=_sources(server.bridge)) as node, _statements("mysql") as calls:
        _create_catalog(
            node,
            "jdbc-mysql",
            **{
                "jdbc-url": f"jdbc:mysql://127.0.0.1:{server.bridge.port}",
                "jdbc-user": USER,
                "jdbc-password": PASSWORD,
            },
        )
        yield LargeSource(node=node, bridge=server.bridge, schema="many", calls=calls, most=5)


def _request_counter(pattern: re.Pattern[bytes]) -> Callable[[LargeSource], Counter[str]]:
    def take_counts(source: LargeSource) -> Counter[str]:
        received_bytes, source.bridge.heard = source.bridge.heard, bytearray()
        return Counter(each[1].decode() for each in pattern.finditer(bytes(received_bytes or b"")))

    return take_counts


@contextmanager
def _hive(request: pytest.FixtureRequest, folder: Path) -> Iterator[LargeSource]:
    server: HiveServer = request.getfixturevalue("hive_server")
    with node_at(folder, sources=_sources(server.bridge)) as node:
        _create_catalog(node, "hive", **{"metastore.uris": f"thrift://127.0.0.1:{server.bridge.port}"})
        node.done("POST", f"{SHOWN}/schemas", {"name": "many"})
        storage = StorageDescriptor(
            cols=[FieldSchema("id", "bigint", None)],
            numBuckets=-1,
            parameters={},
            bucketCols=[],
            sortCols=[],
            serdeInfo=SerDeInfo(parameters={}),
        )
        with server.client() as client:
            for name in NAMES:
                client.create_table(
                    Table(
                        tableName=name,
                        dbName="many",
                        sd=storage,
                        partitionKeys=[],
                        parameters={"EXTERNAL": "TRUE"},
                        tableType="EXTERNAL_TABLE",
                    )
                )
        yield LargeSource(node=node, bridge=server.bridge, schema="many", calls=_request_counter(_THRIFT), most=2)


@contextmanager
def _iceberg(_request: pytest.FixtureRequest, folder: Path) -> Iterator[LargeSource]:
    away = folder / "away"
    with wire.node_over(away) as source:
        source.done("POST", f"{MAIN}/namespaces", {"namespace": ["many"]})
        for name in NAMES:
            source.done("POST", f"{MAIN}/namespaces/many/tables", new_table(name))
    with far_at(folder / "near", away, timeout_s=60.0) as far:
        _create_catalog(far.node, "iceberg-rest", **far.properties)
        requests = re.compile(rb"(?:GET|HEAD|POST) (/[^ ]*) HTTP/1\.1")
        yield LargeSource(node=far.node, bridge=far.bridge, schema="many", calls=_request_counter(requests), most=1)


KINDS = {"jdbc-postgresql": _postgresql, "jdbc-mysql": _mysql, "hive": _hive, "iceberg-rest": _iceberg}


@pytest.fixture(scope="module", params=KINDS)
def large_source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LargeSource]:
    """A source of each kind with two thousand tables, to which the node is already connected."""
    with KINDS[request.param](request, tmp_path_factory.mktemp("many")) as connected_source:
        assert connected_source.node.get(f"{connected_source.tables}/t0000").status == 200
        grant(connected_source.node, "bea", "use_catalog use_schema", kind="CATALOG", on="shown")
        for name in FEW:
            grant(
                connected_source.node, "bea", "select_table", kind="TABLE", on=f"shown.{connected_source.schema}.{name}"
            )
        yield connected_source


def test_table_lists_need_few_calls_to_the_source(large_source: LargeSource) -> None:
    """A list has all tables for a user of all, and two for a user of two. The two lists need at most twelve calls to
    the source.
    """
    large_source.calls(large_source)

    assert listed(large_source.node, large_source.tables) == NAMES
    assert listed(large_source.node, large_source.tables, user="bea") == list(FEW)
    assert large_source.calls(large_source).total() <= 2 * 6


def test_concurrent_loads_do_not_list_all_names(large_source: LargeSource) -> None:
    """64 concurrent callers each load a table with as many calls as a single caller, and without listing all names."""
    large_source.node.runner.run(large_source.crowd())  # the connections exist now
    large_source.calls(large_source)

    answers = large_source.node.runner.run(large_source.crowd())

    assert [each.status for each in answers] == [200] * CROWD
    assert {each.json()["table"]["name"] for each in answers} == set(NAMES[:: MANY // CROWD][:CROWD])
    request_counts = large_source.calls(large_source)
    assert 0 < request_counts.total() <= CROWD * (large_source.most + 1), request_counts


def test_silent_source_does_not_block_other_catalogs(large_source: LargeSource) -> None:
    """While many callers wait for a source that does not answer, a table of another catalog is loaded."""
    node = large_source.node
    main = "/iceberg/v1/lake.main/namespaces"
    node.done("POST", main, {"namespace": ["here"]})
    node.done("POST", f"{main}/here/tables", new_table("t"))

    async def silent() -> tuple[list[int], bool]:
        crowd = asyncio.ensure_future(large_source.crowd())
        await asyncio.sleep(0)
        statuses = [(await node.answer("HEAD", f"{main}/here/tables/t")).status for _ in range(100)]
        waited = not crowd.done()
        crowd.cancel()
        with suppress(asyncio.CancelledError):
            await crowd
        return statuses, waited

    large_source.bridge.silent = True
    try:
        statuses, waited = node.runner.run(silent())
    finally:
        large_source.bridge.silent = False
        large_source.bridge.cut()
        large_source.bridge.mend()
    assert (statuses, waited) == ([204] * 100, True)


def test_hundred_thousand_names_are_listed(fresh: Callable[[str], Path]) -> None:
    """A hundred thousand names are listed, from one page and from a hundred pages of the source."""
    many = 100_000
    with scripted() as source:
        rows = [{"namespace": ["a"], "name": f"t{at}"} for at in range(many)]
        source.answers["GET /v1/config"] = ScriptedAnswer(body={})
        source.answers["GET /v1/namespaces/a/tables"] = ScriptedAnswer(body={"identifiers": rows})
        tokens = [*(f"p{at}" for at in range(99)), None]
        source.answers["GET /v1/namespaces/b/tables"] = [
            ScriptedAnswer(
                body={
                    "identifiers": [{"namespace": ["b"], "name": f"t{page}.{at}"} for at in range(1000)],
                    "next-page-token": token,
                }
            )
            for page, token in enumerate(tokens)
        ]
        sources = SourcesSection(allowed_addresses=(f"127.0.0.1:{source.port}",), timeout_s=60.0)
        with node_at(fresh("lies"), sources=sources) as node:
            _create_catalog(node, "iceberg-rest", uri=f"http://127.0.0.1:{source.port}")

            assert len(listed(node, f"{SHOWN}/schemas/a/tables")) == many
            assert len(listed(node, f"{SHOWN}/schemas/b/tables")) == many
            assert len(source.targets()) == 1 + 100


@pytest.mark.parametrize("pages", [1, 2, 3])
def test_more_names_than_the_limit_are_refused(
    fresh: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    """A source that lists more names than the limit, on one page or on several, is refused with 502. As many names as
    the limit are listed, and no page after the one that exceeds the limit is requested.
    """
    monkeypatch.setattr(iceberg_rest, "_NAMES_MAX", 6)
    with scripted() as source:
        source.answers["GET /v1/config"] = ScriptedAnswer(body={})
        for schema, more in (("within", 0), ("beyond", 1)):
            names = [
                [{"namespace": [schema], "name": f"t{page}.{at}"} for at in range(6 // pages)] for page in range(pages)
            ]
            names[-1] += [{"namespace": [schema], "name": "more"}] * more
            names += [[]] * more  # a page that is not requested
            tokens = [*(f"p{page}" for page in range(1, len(names))), None]
            source.answers[f"GET /v1/namespaces/{schema}/tables"] = [
                ScriptedAnswer(body={"identifiers": rows, "next-page-token": token})
                for rows, token in zip(names, tokens, strict=True)
            ]
        sources = SourcesSection(allowed_addresses=(f"127.0.0.1:{source.port}",), timeout_s=60.0)
        with node_at(fresh("lies"), sources=sources) as node:
            _create_catalog(node, "iceberg-rest", uri=f"http://127.0.0.1:{source.port}")
            within = listed(node, f"{SHOWN}/schemas/within/tables")

            beyond = node.get(f"{SHOWN}/schemas/beyond/tables")

            assert len(within) == 6
            assert (beyond.status, beyond["code"]) == (502, 1007), beyond.body
            assert len([each for each in source.targets() if "/beyond/" in each]) == pages


def _says(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """Serve one fixed answer on each connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                with client, suppress(OSError):
                    client.recv(65536)
                    answer(client)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


_BEGUN = (
    struct.pack(">I", 0x80010002)
    + struct.pack(">I", 17)
    + b"get_all_databases"
    + struct.pack(">I", 0)
    + b"\x0f\x00\x00\x0b"
)
"""A Thrift reply whose result is a list of strings."""


def _claims(client: socket.socket) -> None:
    client.sendall(_BEGUN + struct.pack(">I", 0x7FFFFFFF))


def _floods(client: socket.socket) -> None:
    client.sendall(_BEGUN + struct.pack(">I", 900_000))
    piece = (struct.pack(">I", 1 << 16) + bytes(1 << 16)) * 16
    while True:
        client.sendall(piece)


def _babbles(client: socket.socket) -> None:
    client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


@pytest.mark.parametrize("answer", [_claims, _floods, _babbles])
def test_malformed_metastore_answer_returns_502(
    fresh: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, answer: Callable[[socket.socket], None]
) -> None:
    """A metastore's answer with an impossible length, an endless name, or another protocol is refused with 502 as
    malformed.
    """
    monkeypatch.setattr(metastore_connections, "ANSWER_BYTES_MAX", 8 << 20)
    with contextmanager(_says)(answer) as port:
        sources = SourcesSection(allowed_addresses=(f"127.0.0.1:{port}",), timeout_s=60.0)
        with node_at(fresh("lies"), sources=sources) as node:
            _create_catalog(node, "hive", **{"metastore.uris": f"thrift://127.0.0.1:{port}"})

            response = node.get(f"{SHOWN}/schemas")

    assert (response.status, response["code"]) == (502, 1007)
