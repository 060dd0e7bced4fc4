# SPDX-License-Identifier: Apache-2.0
"""Spark authenticates by its own `credential` setting and a service account's secret, and exchanges its tokens while it
runs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx2
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from limnos.client import Client
from tests.integration.live import LiveServer, serving

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

LIFE_S = 15
"""Iceberg's client requests the next token when a tenth of the lifetime remains: seconds, also on a slow machine."""
PATIENCE_S = 600
GIVEN = 'limnos_requests_total{operation="issue-token",protocol="iceberg",status="200"}'


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server that accepts only tokens, whose access tokens are valid for some seconds, and a service account `etl`
    that owns the catalog.
    """
    folder = tmp_path_factory.mktemp("credentials")
    settings = folder / "lake.toml"
    settings.write_text(f"[access]\nsession_s = {LIFE_S}\n")
    with serving(folder / "data", "--config", str(settings), authentication="token") as running:
        with Client(running.uri, token=running.token) as admin:
            admin.users.add("etl")
            admin.owners.set("main", "etl", kind="catalog")
        yield running


def count_issued_tokens(lake: LiveServer) -> float:
    """Return the number of tokens that the server has issued."""
    lines = httpx2.get(f"{lake.uri}/metrics", trust_env=False).text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(GIVEN))


def use(spark: SparkSession, lake: LiveServer, *, name: str, credential: str) -> SparkSession:
    """Return a session of the running Spark with the server as a catalog, configured as by a user."""
    mine = spark.newSession()
    prefix = f"spark.sql.catalog.{name}"
    options = {
        "type": "rest",
        "uri": f"{lake.uri}/iceberg",
        "warehouse": "main",
        "credential": credential,
        "oauth2-server-uri": f"{lake.uri}/iceberg/v1/oauth/tokens",
        "rest.auth.type": "oauth2",
        "cache-enabled": "false",
    }
    mine.conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
    for key, value in options.items():
        mine.conf.set(f"{prefix}.{key}", value)
    return mine


def test_spark_renews_its_expired_token(spark: SparkSession, lake: LiveServer) -> None:
    """Spark writes and reads. It exchanges its token in the background and works after the first one has expired; a
    wrong secret is refused.
    """
    with Client(lake.uri, token=lake.token) as admin:
        secret = admin.service_accounts.create_secret("etl").client_secret
    mine = use(spark, lake, name="etl_lake", credential=f"etl:{secret}")
    mine.sql("CREATE NAMESPACE etl_lake.sea")
    mine.sql("CREATE TABLE etl_lake.sea.t AS SELECT 1 AS id")

    began, first = time.monotonic(), count_issued_tokens(lake)
    while count_issued_tokens(lake) == first or time.monotonic() - began < LIFE_S:
        assert time.monotonic() - began < PATIENCE_S, "Spark never requested the next token"
        time.sleep(0.2)
    mine.sql("INSERT INTO etl_lake.sea.t VALUES (2)")

    assert [row.id for row in mine.sql("SELECT id FROM etl_lake.sea.t ORDER BY id").collect()] == [1, 2]
    with pytest.raises((PySparkException, Exception), match=r"(?i)unauthorized|invalid_client|not authorized"):
        use(spark, lake, name="wrong_lake", credential=f"etl:{secret}x").sql("SHOW NAMESPACES IN wrong_lake").collect()
