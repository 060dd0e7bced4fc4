# SPDX-License-Identifier: Apache-2.0
"""Metadata queries: they read only objects that can meet the conditions, in slices, with the caller's rights."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from limnos.app.node_builder import DATABASE_FILE
from limnos.rooms.sqlpp.language.metadata import METADATA_DATASETS
from limnos.rooms.sqlpp.language.offloaded_work import EVALUATE, SCANS
from limnos.rooms.sqlpp.services.execution import metadata as module
from limnos.rooms.sqlpp.services.requests.node_limits import SQLPP_OFFLOADER
from limnos.services.request import context
from limnos.services.request.offloaded_work import InlineOffloader
from limnos.store.objects.documents import documents_read
from limnos.store.objects.node_reads import live_nodes_read, span_read
from tests.http.driver import DriverNode, grant, node_at
from tests.http.iceberg import wire as iceberg
from tests.http.iceberg.wire import node_over
from tests.nodes.wire import GRAVITINO
from tests.rooms.sqlpp.http.wire import ask, refusal, rows, status_and_message

pytestmark = pytest.mark.slow

MANY = 100_001
NAMES = "select value d.DatasetName from Metadata.`Dataset` d where "


class Reads:
    """Recorded reads of the metadata: ids of objects by slice, listings, and offloaded work."""

    def __init__(self) -> None:
        self.slices: list[int] = []
        self.listings: list[int] = []
        self.offloader: list[str] = []
        self.turns = 0


class RecordingOffloader(InlineOffloader):
    """Runs offloaded work in this process, and records it."""

    def __init__(self, reads: Reads) -> None:
        self.reads = reads

    async def do(self, name: str, *parts: bytes, caller: str = "") -> list[bytes]:
        """Execute offloaded work."""
        self.reads.offloader.append(name)
        return await super().do(name, *parts, caller=caller)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[DriverNode]:
    """A node with 100,001 tables in `big` and three in `small`."""
    data = tmp_path_factory.mktemp("large")
    shutil.copy(empty_database, data)
    with node_at(data) as running:
        for dataverse in ("big", "small", "hidden"):
            iceberg.make_space(running, dataverse)
        for name in ("a", "b", "c"):
            iceberg.make_table(running, "small", name)
        iceberg.make_table(running, "hidden", "secret")
        iceberg.make_table(running, "big", "first")
        _fill(data / DATABASE_FILE)
        grant(running, "ana", "use_catalog", kind="CATALOG", on="main")
        grant(running, "ana", "use_schema select_table", kind="SCHEMA", on="main.small")
        grant(running, "ana", "select_table", kind="TABLE", on="main.small.b", condition="deny")
        yield running


def _fill(database: Path) -> None:
    """Insert many copies of the table `first` of `big` into the nodes table."""
    with closing(sqlite3.connect(database, timeout=30)) as connection, connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(node)")]
        overrides = {"id": "10000000 + at", "name": "'t' || at"}
        values = ", ".join(overrides.get(column, f"n.{column}") for column in columns)
        connection.execute(
            f"WITH RECURSIVE numbers (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM numbers WHERE at < {MANY - 1})"
            f" INSERT INTO node ({', '.join(columns)}) SELECT {values} FROM numbers, node n WHERE n.name = 'first'"
        )


def _id_of(node: DriverNode, name: str) -> int:
    """Return the id of a namespace."""
    with closing(sqlite3.connect(node.data / DATABASE_FILE)) as connection:
        ((node_id,),) = connection.execute("SELECT id FROM node WHERE name = ?", (name,))
    return int(node_id)


@pytest.fixture
def reads(large: DriverNode, monkeypatch: pytest.MonkeyPatch) -> Reads:
    """Return the reads from now on."""
    recorded_reads = Reads()
    turn = asyncio.sleep

    def nodes(ids: Sequence[int]) -> object:
        recorded_reads.slices.append(len(ids))
        return live_nodes_read(ids)

    def span(parent_id: int, *rest: object, **more: object) -> object:
        recorded_reads.listings.append(parent_id)
        return span_read(parent_id, *rest, **more)  # type: ignore[arg-type]

    async def sleep(seconds: float) -> None:
        recorded_reads.turns += 1
        await turn(seconds)

    monkeypatch.setattr(module, "live_nodes_read", nodes)
    monkeypatch.setattr("limnos.store.objects.node_reads.span_read", span)
    monkeypatch.setattr(module.asyncio, "sleep", sleep)
    SQLPP_OFFLOADER.put(large.built.services, RecordingOffloader(recorded_reads))
    return recorded_reads


@pytest.mark.parametrize(
    "condition, expected, read",
    [
        ("d.DataverseName = 'small'", ["a", "b", "c"], 3),
        ("'small' = d.DataverseName and d.DatasetType = 'INTERNAL'", ["a", "b", "c"], 3),
        ("d.DataverseName in ['small', 'hidden', 'nowhere', '@']", ["a", "b", "c", "secret"], 4),
        ("d.DataverseName = 'big' and d.DataverseName = 'small'", [], 0),
        ("d.DataverseName = 'small' and d.DataverseName = $x", ["a", "b", "c"], 3),
        ("d.DataverseName = 'big' and d.DatasetName in ['t77', 't100000', 'none']", ["t100000", "t77"], 0),
        ("d.DataverseName = 'small' and d.DatasetName = 'c'", ["c"], 0),
        ("d.DataverseName = 'Metadata' and d.DatasetName = 'Index'", ["Index"], 0),
    ],
)
def test_conditions_limit_the_objects_read(
    large: DriverNode, reads: Reads, condition: str, expected: list[str], read: int
) -> None:
    """With a condition on dataverses only their objects are read; with conditions on names only the objects of these
    names.
    """
    names = rows(large, f"{NAMES}{condition} order by d.DatasetName", **{"$x": "small"})

    assert names == expected
    assert sum(reads.slices) == read
    assert _id_of(large, "big") not in reads.listings
    assert reads.offloader == []


def test_function_conditions_are_evaluated_in_a_worker(large: DriverNode, reads: Reads) -> None:
    """A worker process evaluates conditions with functions, and only objects that can meet the result are read."""
    names = rows(large, f"{NAMES}d.DataverseName = lower('SMALL') and d.DatasetName = 'a'")

    assert names == ["a"]
    assert reads.slices == []
    assert reads.offloader == [SCANS, EVALUATE]


def test_full_read_runs_in_slices_between_other_requests(large: DriverNode, reads: Reads) -> None:
    """More than 100,000 objects are read in small slices, between which other requests run. A worker process builds the
    records.
    """
    counts = rows(large, "select value [count(*), count(d.DatasetId)] from Metadata.`Dataset` d")

    assert counts == [[MANY + 21, MANY + 21]]
    assert sum(reads.slices) == MANY + 4 + 3  # the namespaces as well
    assert max(reads.slices) <= 2 * module.SLICE
    assert reads.turns >= MANY // module.SLICE
    assert reads.offloader == [EVALUATE]


def test_a_limit_ends_the_reading(large: DriverNode, reads: Reads) -> None:
    """With LIMIT and without ORDER BY, reading stops after enough objects."""
    names = rows(large, "select value d.DatasetName from Metadata.`Dataset` d limit 10")

    assert len(names) == 10
    assert sum(reads.slices) <= 3 * module.SLICE


def test_oversized_query_is_refused_and_names_a_condition(
    large: DriverNode, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query that would collect too many objects is refused, and the message names a condition to add. With the
    condition, the query is answered.
    """
    monkeypatch.setattr(module, "BYTES_MAX", 1 << 20)

    status, message = refusal(large, "select value count(*) from Metadata.`Dataset` d")

    assert status == 400
    assert "more than 1 MiB" in message
    assert "d.DataverseName = 'a.b'" in message
    assert sum(reads.slices) < MANY // 2
    assert rows(large, f"{NAMES}d.DataverseName = 'small'") == ["a", "b", "c"]
    assert "d.DatasetName = 'x'" in refusal(large, f"{NAMES}d.DataverseName = 'big'")[1]


@pytest.mark.parametrize(
    "condition, expected",
    [
        ("d.DataverseName != 'Metadata'", ["a", "c"]),
        ("d.DataverseName in ['small', 'hidden', 'big']", ["a", "c"]),
        ("d.DataverseName in ['small', 'hidden'] and d.DatasetName in ['a', 'b', 'secret']", ["a"]),
    ],
)
def test_hidden_objects_are_in_no_result(large: DriverNode, reads: Reads, condition: str, expected: list[str]) -> None:
    """Objects that the caller may not see are in no result, whether read by name, by dataverse or in full."""
    assert rows(large, f"{NAMES}{condition} order by d.DatasetName", user="ana") == expected
    assert sum(reads.slices) <= len(expected) + 1  # and its dataverse
    names = rows(large, "select value d.DataverseName from Metadata.`Dataverse` d", user="ana")
    assert sorted(names) == ["Default", "Metadata", "small"]


def test_scans_of_one_statement_are_limited_separately(large: DriverNode, reads: Reads) -> None:
    """Two scans of one statement are limited separately; a join on an unconditioned field reads all objects."""
    text = (
        "select value [d.DatasetName, i.IndexName] from Metadata.`Dataset` d, Metadata.`Index` i"
        " where d.DataverseName = 'small' and i.DataverseName = 'hidden'"
    )

    assert rows(large, text) == []
    assert sum(reads.slices) == 3 + 1


def test_view_documents_are_read_only_if_used(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents of views are read only if the query uses the definition."""
    rows(node, "create dataverse a; create view a.v as select value 41; create view a.w as select value 42")
    read: list[int] = []

    def bodies(ids: Sequence[int]) -> object:
        read.extend(ids)
        return documents_read(ids)

    monkeypatch.setattr(module, "documents_read", bodies)

    assert rows(node, f"{NAMES}d.DatasetType = 'VIEW'") == ["v", "w"]
    assert read == []
    (view,) = rows(node, "select value d from Metadata.`Dataset` d where d.DataverseName = 'a' and d.DatasetName = 'w'")
    assert view["ViewDetails"] == {"Definition": "SELECT VALUE 42"}
    assert len(read) == 1


def test_get_object_fields_lists_declared_metadata_fields(shared: DriverNode) -> None:
    """`get_object_fields` lists the declared fields of a metadata dataset, also one that no record has."""
    names = rows(
        shared,
        "from Metadata.`Dataset` d, get_object_fields(d) f where f.`is-open` = false and d.DatasetName = 'Dataset' "
        "select value f.`field-name`",
    )

    assert {"DatasetName", "InternalDetails", "ExternalDetails"} <= set(names)
    assert "ViewDetails" not in names


PLANNED = (
    "select value d.DatasetName from Metadata.`Dataset` d",
    "select value d from Metadata.`Dataverse` d where d.DataverseName = 'a'",
    "select value r from dataset_resources('a', 'd') r",
)


@pytest.mark.parametrize("query", PLANNED)
def test_plan_of_a_forbidden_query_is_refused(tmp_path: Path, query: str) -> None:
    """A caller who may not run a metadata query gets neither its plan nor its compilation; the refusal is the same."""
    with node_over(tmp_path) as node:
        iceberg.make_space(node, "a")
        iceberg.make_table(node, "a", "d")
        requests = [
            lambda user: ask(node, query, user=user),
            lambda user: ask(node, f"explain {query}", user=user),
            lambda user: ask(node, query, user=user, compile_only=True),
        ]
        assert [each("admin").status for each in requests] == [200] * 3
        first, *others = [status_and_message(each("stranger")) for each in requests]
        assert others == [first] * 2

        node.done("PATCH", f"{GRAVITINO}/catalogs/main", {"inUse": False})

        first, *others = [status_and_message(each("admin")) for each in requests]
        assert others == [first] * 2


def test_many_dataverses_are_counted_by_a_node_that_knows_none(
    tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node reads the owners of many dataverses together, so their number does not exceed the reads of a request."""
    monkeypatch.setattr(context, "READS_MAX", 12)
    shutil.copy(empty_database, tmp_path)
    with node_at(tmp_path) as node:
        for number in range(20):
            iceberg.make_space(node, f"d{number}")
            iceberg.make_table(node, f"d{number}", "t")
    with node_at(tmp_path) as node:
        counts = rows(node, "select value count(*) from Metadata.`Dataset`")

    assert counts == [20 + len(METADATA_DATASETS)]
