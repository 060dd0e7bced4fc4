# SPDX-License-Identifier: Apache-2.0
"""Files of restricted readers that the tasks of a Spark cluster write."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.client import Client
from tests.integration.live import serving
from tests.integration.maintenance_executors import WITHIN_S, wait_for, working
from tests.integration.test_restricted_executors import FILES, ExecutedShop
from tests.spark.cluster import cluster

pytestmark = [
    pytest.mark.room("maintenance"),
    pytest.mark.heavy,
    pytest.mark.spark,
    pytest.mark.integration,
]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[ExecutedShop]:
    """The table, on a server that lets executors write more than two spans."""
    settings = {"LIMNOS__ACCESS__ENABLED": "true", "LIMNOS__PLANNING__EXECUTOR_SPANS": "2"}
    with serving(tmp_path / "data", env=settings) as server:
        shop = ExecutedShop(server)
        yield shop
        shop.close()


@pytest.mark.parametrize("python", [sys.executable, "/usr/bin/env"])
def test_masked_reader_gets_files_of_spark_tasks(
    shop: ExecutedShop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python: str
) -> None:
    """PyIceberg shows a restricted user what a model expects, from files that tasks of a cluster wrote. If the workers'
    Python cannot, the executor's own process writes them. The server writes none.
    """
    monkeypatch.setenv("PYSPARK_PYTHON", python)
    place = tmp_path / "cluster"
    place.mkdir()
    flags = ("--conf", "spark.driver.host=127.0.0.1", "--executor-wait", str(WITHIN_S))
    with cluster(place, workers=1, cores=2) as spark_cluster:
        with working(shop.server, "--master", spark_cluster.master, *flags, idle=300) as executor:
            shop.await_executor()
            rows = shop.await_rows()
            wait_for(lambda: ("restricted-files", "done") in shop.operations())
            executor.process.terminate()
            _, errors = executor.process.communicate()
        logs = "".join(each.read_text(errors="replace") for each in place.rglob("std*"))

    assert rows == shop.expected()
    assert shop.server_rewrites() == 0
    assert len(shop.files()) == FILES
    assert ("write no files for restricted users" in errors) is (python != sys.executable), errors
    assert "lim_" not in logs


def test_confined_executor_of_the_server_writes_files(tmp_path: Path) -> None:
    """The server's own executor, which opens the directories of tables alone, writes the files after an executor has
    asked for operations.
    """
    settings = {
        "LIMNOS__ACCESS__ENABLED": "true",
        "LIMNOS__PLANNING__EXECUTOR_SPANS": "2",
        "LIMNOS__MAINTENANCE__EXECUTOR": "local",
        "LIMNOS__MAINTENANCE__EXECUTOR_MASTER": "local[2]",
    }
    with serving(tmp_path / "data", env=settings) as server, Client(server.uri, token=server.token) as admin:
        shop = ExecutedShop(server)
        assert admin.maintenance.lease("another", limit=1).operations == ()
        rows = shop.await_rows()
        operations, rewrites = shop.operations(), shop.server_rewrites()
        shop.close()

    assert rows == shop.expected()
    assert (rewrites, operations[0][0]) == (0, "restricted-files")
