# SPDX-License-Identifier: Apache-2.0
"""Spark's SQL, in which Spark itself and compatible engines spell the verbs."""

from __future__ import annotations

from conformance.engines.driver import Levels, SqlDriver


class SparkSql(SqlDriver):
    """An engine that speaks Spark's SQL."""

    mark = "`"
    dialect = "spark"
    types = {  # noqa: RUF012
        "long": "BIGINT",
        "string": "STRING",
        "decimal": "DECIMAL(12, 2)",
        "date": "DATE",
        "timestamp": "TIMESTAMP_NTZ",
        "timestamptz": "TIMESTAMP",
        "list": "ARRAY<STRING>",
        "struct": "STRUCT<x: BIGINT, label: STRING>",
    }

    def space(self, levels: Levels) -> str:
        return ".".join([self.catalog, *map(self.quoted, levels)])

    def namespace(self, levels: Levels) -> None:
        self.ask(f"CREATE NAMESPACE {self.space(levels)}")

    def layout(self, *, typed: bool) -> str:
        if not typed:
            return " USING iceberg"
        return " USING iceberg PARTITIONED BY (days(`at`)) TBLPROPERTIES ('write.delete.mode'='merge-on-read')"

    def literal(self, value: object, kind: str) -> str:
        if isinstance(value, str) and kind == "string":
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        return super().literal(value, kind)

    def list_of(self, items: list[str]) -> str:
        return f"CAST(array({', '.join(items)}) AS ARRAY<STRING>)"

    def struct_of(self, x: str, label: str) -> str:
        return f"named_struct('x', CAST({x} AS BIGINT), 'label', {label})"
