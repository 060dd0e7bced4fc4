# SPDX-License-Identifier: Apache-2.0
"""Real clients behind a proxy that drops answers: each append is applied once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from limnos.spark import session
from tests.faults.cutter import Cutter, When
from tests.integration.live import LiveServer
from tests.integration.test_pyiceberg import ARROW, SCHEMA, connect

pytestmark = pytest.mark.heavy

APPENDS = 24
WAYS: tuple[When, ...] = ("before", "after", "twice", "busy")


@pytest.fixture
def cutter(server: LiveServer) -> Iterator[Cutter]:
    """The proxy in front of the server."""
    with Cutter(server.uri) as running:
        yield running


def is_commit(method: str, path: str) -> bool:
    """Return whether a request commits to a table."""
    return method == "POST" and "/tables/" in path and not path.endswith(("/metrics", "/tables/rename"))


def test_pyiceberg_appends_are_never_doubled(server: LiveServer, cutter: Cutter) -> None:
    """PyIceberg sends no idempotency keys. With an HTTP client that repeats lost requests, each append is applied once
    and none fails.
    """
    through = replace(server, uri=cutter.uri)
    with connect(through) as catalog:
        again = Retry(total=5, backoff_factor=0.01, allowed_methods=None, status_forcelist=[503])
        catalog._session.mount("http://", HTTPAdapter(max_retries=again))
        catalog.create_namespace("repeats")
        table = catalog.create_table("repeats.appended", SCHEMA)
        chance = random.Random(1)
        for number in range(APPENDS):
            cutter.cut(chance.choice(WAYS), matches=is_commit)
            table.append(pa.table({"id": [number], "city": ["x"]}, schema=ARROW))
        ids = table.refresh().scan().to_arrow()["id"].to_pylist()

        assert cutter.pending == 0
        assert sorted(ids) == list(range(APPENDS))
        assert len(table.snapshots()) == APPENDS


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_spark_appends_are_never_doubled(server: LiveServer, cutter: Cutter) -> None:
    """Spark sends idempotency keys. A repeated request is applied once; if Spark gives up, at most once.

    After any lost answer the table can be read: no file of a snapshot was deleted.
    """
    spark = session(cutter.uri, token=server.token)
    try:
        spark.sql("CREATE NAMESPACE main.spark_repeats")
        spark.sql("CREATE TABLE main.spark_repeats.t (id BIGINT)")
        ways: dict[int, When] = {}
        failed: set[int] = set()
        for number in range(8):
            ways[number] = WAYS[number % len(WAYS)]
            cutter.cut(ways[number], matches=is_commit)
            try:
                spark.sql(f"INSERT INTO main.spark_repeats.t VALUES ({number})")
            except Exception:
                failed.add(number)
        spark.sql("REFRESH TABLE main.spark_repeats.t")
        ids = sorted(row[0] for row in spark.sql("SELECT id FROM main.spark_repeats.t").collect())
    finally:
        spark.stop()

    assert cutter.pending == 0
    assert len(ids) == len(set(ids))
    assert all(number in ids for number, way in ways.items() if way != "before")
    assert all(number in ids for number in ways if number not in failed)
    assert not {number for number in failed if ways[number] in ("twice", "busy")}
    assert all(
        seen.key for seen in cutter.seen if is_commit(seen.method, seen.path) and not seen.path.endswith("/metrics")
    )
