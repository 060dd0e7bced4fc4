# SPDX-License-Identifier: Apache-2.0
"""A server that is killed while Spark runs a pipeline and restarted: the run waits, and the result is as without the
outage.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from limnos.client import Client
from limnos.pipeline.project import load
from limnos.pipeline.run.options import RunOptions
from limnos.spark import session
from tests.integration.live import serving
from tests.pipeline.run.relay import ANSWERED, Relay, RelayMoment
from tests.pipeline.run.test_kills import PIPELINE, answer, expected, published_snapshots

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

_ROWS = "add-snapshot"
MOMENTS = (
    RelayMoment(name="rows, answer lost", line=r"^POST .*/tables/odd", body=_ROWS, lost=ANSWERED),
    RelayMoment(name="publish, answer lost", line=r"^POST ", body="publish-run", lost=ANSWERED),
    RelayMoment(name="rows, never sent", line=r"^POST .*/tables/odd", body=_ROWS),
    RelayMoment(name="publish, never sent", line=r"^POST ", body="publish-run"),
    RelayMoment(name="a table looked at", line=r"^GET .*/tables/raw", nth=2),
    RelayMoment(name="a table made, answer lost", line=r"^POST .*/tables ", body='"odd"', lost=ANSWERED),
    RelayMoment(name="a branch begun, never sent", line=r"^POST .*/tables/total", body="set-snapshot-ref"),
    RelayMoment(
        name="a branch begun, answer lost", line=r"^POST .*/tables/total", body="set-snapshot-ref", lost=ANSWERED
    ),
    RelayMoment(name="a step recorded as done, never sent", line=r"^PUT .*odd", body="done"),
    RelayMoment(name="a step recorded as done, answer lost", line=r"^PUT .*odd", body="done", lost=ANSWERED),
)
CHOSEN = MOMENTS if os.environ.get("LIMNOS_TEST_FAULTS") == "all" else MOMENTS[:2]


@pytest.fixture
def relay(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Relay]:
    """A server behind the proxy, down for one to five seconds, by the moment's seed."""
    away_s = random.Random(request.node.name).uniform(1, 5)
    with serving(tmp_path / "data") as server:
        proxy = Relay(server, data=tmp_path / "data", away_s=away_s)
        try:
            yield proxy
        finally:
            proxy.close()


@pytest.fixture
def through(served_spark: SparkSession, relay: Relay) -> SparkSession:
    """A session of the running Spark whose catalogs are those of the proxied server."""
    assert served_spark is not None
    return session(relay.uri, token=relay.server.token, config={"spark.sql.session.timeZone": "UTC"})


@pytest.mark.parametrize("moment", CHOSEN, ids=lambda moment: moment.name)
def test_run_publishes_once_if_server_is_killed_at_any_request(
    relay: Relay, through: SparkSession, tmp_path: Path, moment: RelayMoment
) -> None:
    """If the server is killed at a request of the run and restarted after seconds, the run publishes once, with the
    rows of an undisturbed run.
    """
    file = tmp_path / "o.yaml"
    file.write_text(PIPELINE.replace("SPACE", "o"))
    with Client(relay.uri, token=relay.server.token) as client:
        client.namespaces.create("main.o")
        relay.moment = moment
        ended = load(file).run(through, options=RunOptions(lease_s=30))

        assert relay.struck.is_set(), "the moment was never reached"
        assert (ended.state, ended.exit_code) == ("published", 0), ended.message
        assert answer(through, "o") == expected(through)
        for name in ("raw", "odd", "total"):
            assert published_snapshots(client, f"main.o.{name}") == [ended.run]
