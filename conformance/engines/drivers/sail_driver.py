# SPDX-License-Identifier: Apache-2.0
"""Sail: a Spark Connect server in this process, used by Spark's own client."""

from __future__ import annotations

import importlib.metadata
import os
import re
from typing import Any

from conformance.engines.driver import RESTRICTED, Place
from conformance.engines.drivers.spark_sql import SparkSql
from conformance.engines.page import block
from conformance.engines.rows import Row


class Engine(SparkSql):
    """Sail."""

    title = f"Sail {importlib.metadata.version('pysail')}"
    section = "Sail"
    limits = {  # noqa: RUF012
        "a service account's secret": "no way for it to sign in by a credential",
        "namespace four deep": "invalid argument: table reference",
        "names: Unicode": "%E6%97%A5%E6%9C%AC-%C3%BC/metadata/",  # it opens the file under the percent-encoded name
        **dict.fromkeys(
            ("rename table", "add column", "rename column", "drop column"), "unsupported ALTER TABLE operation"
        ),
        **dict.fromkeys(("a reader may not write", "what is closed to a reader"), "status code 403 Forbidden"),
        "a wrong credential": "status code 401 Unauthorized",
        **dict.fromkeys(
            (RESTRICTED, "a restricted reader may not append", "a restricted reader may not delete"),
            "requires server-side scan planning, which is not implemented yet",
        ),
    }

    def start(self, place: Place) -> None:
        super().start(place)
        self._servers: list[Any] = []

    def be(self, caller: str) -> None:
        """Start a server for each caller, because it reads its catalogs from the environment when it starts."""
        from pysail.spark import SparkConnectServer
        from pyspark.sql.connect.session import SparkSession

        place = self.place
        settings = block("Sail", uri=place.uri, token=place.tokens[caller], catalog=place.warehouse)
        os.environ.update(re.findall(r"^export (\w+)='?([^'\n]*)'?$", settings, flags=re.MULTILINE))
        server = SparkConnectServer("127.0.0.1", 0)
        server.start(background=True)
        self._servers.append(server)
        host, port = server.listening_address
        self.spark = SparkSession.builder.remote(f"sc://{host}:{port}").create()
        self.spark.conf.set("spark.sql.session.timeZone", "UTC")

    def layout(self, *, typed: bool) -> str:
        """Omit the properties of merge-on-read: Sail writes equality deletes only, and none for lists."""
        return super().layout(typed=typed).partition(" TBLPROPERTIES")[0]

    def ask(self, text: str) -> list[Row]:
        table = self.spark.sql(text).toArrow()
        return [list(row.values()) for row in table.to_pylist()]
