# SPDX-License-Identifier: Apache-2.0
"""The console's snippets for Spark and SQL++ run as they are shown, for users with and without restrictions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from limnos.spark.jars import cache_directory
from limnos.spark.java import find_java
from tests.integration.live import LiveServer
from tests.integration.test_console_snippets import TABLES, run, snippet_server

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.heavy, pytest.mark.room("console")]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A token-only server with the tables and their readers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(find_java(cache=cache_directory()).home))
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("SPARK_HOME", str(Path(pyspark.__file__).parent))
        with snippet_server(tmp_path_factory.mktemp("snippets") / "data") as server:
            yield server


@pytest.mark.parametrize("catalog", TABLES)
def test_spark_snippet_reads_the_table(lake: LiveServer, tmp_path: Path, catalog: str) -> None:
    """Spark's snippet reads all rows for an unrestricted user, and visible rows with masked values for a restricted
    one, without another setting.
    """
    done = {user: run(lake, user, catalog, "spark", tmp_path) for user in ("ana", "bob")}

    assert {user: each.returncode for user, each in done.items()} == {"ana": 0, "bob": 0}, done["bob"].stderr[-2000:]
    assert "8765-4321" in done["ana"].stdout
    assert "xxxxx4321" in done["bob"].stdout
    assert "8765" not in done["bob"].stdout + done["bob"].stderr


def test_sqlpp_snippet_reads_the_table(lake: LiveServer, tmp_path: Path) -> None:
    """The snippet for SQL++ reads the table for an unrestricted user; a restricted one, whose page has none, is refused
    with the reason.
    """
    done, refused = (run(lake, user, "main", "sqlpp", tmp_path, seen_by=lake.token) for user in ("ana", "bob"))

    assert done.returncode == 0, done.stderr[-2000:]
    assert "8765-4321" in done.stdout
    assert refused.returncode != 0
    assert "restrict" in refused.stderr
    assert "8765" not in refused.stdout + refused.stderr
