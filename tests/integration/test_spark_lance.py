# SPDX-License-Identifier: Apache-2.0
"""Lance tables in Spark itself: written, read, queried in SQL, joined with an Iceberg table, and refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from limnos.client import Client
from limnos.spark import session, table
from tests.integration.live import LiveServer

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
PAGE = Path(__file__).parents[2] / "docs" / "guides" / "lance-spark.md"
SHORT = PAGE.with_name("lance.md")
DOCS = "lance.search.docs"


def test_lance_guide_examples_run_and_need_a_grant(spark: SparkSession, server: LiveServer) -> None:
    """The examples of docs/guides/lance-spark.md and docs/guides/lance.md run; filters are pushed down to the table; a
    user is refused before a grant and allowed after it.
    """
    names: dict[str, Any] = {"uri": server.uri, "token": server.token}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)
    section = SHORT.read_text(encoding="utf-8").partition("\n## Spark\n")[2].partition("\n## ")[0]
    (block,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    exec(compile(block, str(SHORT), "exec"), {"uri": server.uri, "token": server.token})
    spark, docs = names["spark"], names["docs"]
    assert [tuple(row) for row in names["joined"]] == [("seven", "t7")]

    picked = names["found"].where("id >= 98 AND text <> 't99' AND vector[0] > 3")
    plan = picked._jdf.queryExecution().optimizedPlan().toString()
    assert [row.text for row in picked.collect()] == ["t98"]
    assert plan.startswith("Filter (vector"), plan
    assert "text" not in plan.partition("\n")[0]
    assert table(spark, "main.search.names", columns=["name"]).columns == ["name"]

    with Client(server.uri, token=server.token) as admin:
        assert admin.lance.load(DOCS).version == 2
        admin.users.add("lea")
        lea = session(server.uri, user="lea")
        with pytest.raises(PySparkException, match="SELECT_TABLE"):
            table(lea, DOCS)
        assert spark.table("docs").where("id = 1").count() == 1
        with pytest.raises(PySparkException, match="no column more: leave it out"):
            docs.selectExpr("id AS more").write.format("limnos.lance").mode("append").save(DOCS)
        admin.roles.create("search")
        admin.roles.allow("search", ["use_catalog", "use_schema", "select_table"], on="lance", kind="catalog")
        admin.roles.grant_to_user("lea", ["search"])
        assert table(lea, DOCS, columns=["id"], version=2).where("id < 3").count() == 3
