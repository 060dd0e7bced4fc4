# SPDX-License-Identifier: Apache-2.0
"""Flink 1.20 with Iceberg's runtime, by SQL: a small Java program runs statements in a table environment.

The compatibility kit's compiler compiles it. A database of Flink has one level; deeper namespaces are reached by a
catalog with a base namespace.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from conformance.engines.archives import FLINK, compiler, flink_path
from conformance.engines.driver import Levels, Place, SqlDriver
from conformance.engines.page import block
from conformance.engines.remote import Lines
from conformance.engines.rows import Row
from conformance.kit.jars import cache_directory
from limnos.spark.java import find_java

_SOURCE = Path(__file__).parents[1] / "java" / "Statements.java"
_OPENED = ("java.lang", "java.util", "java.net", "java.nio", "java.time")


class Engine(SqlDriver):
    """Flink."""

    line = FLINK
    title = "Flink 1.20.3"
    section = "Flink"
    mark = "`"
    limits = {  # noqa: RUF012
        "names: dot": "Table does not exist: a.b",  # the dots separate levels
        "update": "SupportsRowLevelUpdate",
        "delete": "SupportsRowLevelDelete",
        "merge": "Unsupported query: MERGE",
        "make a view": "table should be resolved",
        "read another's view": "Object 'others' not found",
        "types: create, partitioned by day": "SQL parse failed",  # partitions must be columns
        "types: delete": "SupportsRowLevelDelete",
    }
    types = {  # noqa: RUF012
        "long": "BIGINT",
        "string": "STRING",
        "decimal": "DECIMAL(12, 2)",
        "date": "DATE",
        "timestamp": "TIMESTAMP(6)",
        "timestamptz": "TIMESTAMP_LTZ(6)",
        "list": "ARRAY<STRING>",
        "struct": "ROW<x BIGINT, label STRING>",
    }

    def start(self, place: Place) -> None:
        super().start(place)
        self._caller = ""
        self._catalogs: set[str] = set()
        java = find_java(cache=cache_directory()).home / "bin" / "java"
        path = flink_path(self.line)
        classes = _compiled(java, path, place.work / "classes")
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
        command = [str(java), "-Xmx1g", "-XX:+UseSerialGC", *opened]
        place_of_classes = os.pathsep.join(map(str, (classes, *path)))
        self._process = Lines([*command, "-cp", place_of_classes, "Statements"], {}, place.work / "flink.log")
        self._process.open(place.work)

    def stop(self) -> None:
        self._process.stop()

    def ask(self, text: str) -> list[Row]:
        return self._process.ask("ask", text)  # type: ignore[no-any-return]

    def be(self, caller: str) -> None:
        self._caller = caller
        self.catalog = self._attached(())

    def _attached(self, base: Levels) -> str:
        """Return the catalog of a caller with a base namespace, created on first use."""
        name = ".".join((self._caller, *base))
        if name not in self._catalogs:
            place = self.place
            section = "Flink on S3" if place.is_remote else "Flink"
            text = block(section, uri=place.uri, token=place.tokens[self._caller], catalog=place.warehouse)
            text = text.replace("CATALOG lake", f"CATALOG {self.quoted(name)}")
            self.ask(text[:-1] + f", 'base-namespace'='{'.'.join(base)}')" if base else text)
            self._catalogs.add(name)
        return self.quoted(name)

    def space(self, levels: Levels) -> str:
        return f"{self._attached(levels[:-1])}.{self.quoted(levels[-1])}"

    def namespace(self, levels: Levels) -> None:
        self.ask(f"CREATE DATABASE {self.space(levels)}")

    def moment(self, text: str, kind: str) -> str:
        return f"CAST(TIMESTAMP '{text}' AS {self.types[kind]})"

    def list_of(self, items: list[str]) -> str:
        return super().list_of(items) if items else f"CAST(ARRAY_REMOVE(ARRAY[''], '') AS {self.types['list']})"

    def read_at(self, levels: Levels, name: str, snapshot: int) -> list[Row]:
        return self.ask(f"SELECT id, city FROM {self.table(levels, name)} /*+ OPTIONS('snapshot-id'='{snapshot}') */")

    def add_column(self, levels: Levels, name: str) -> None:
        self.ask(f"ALTER TABLE {self.table(levels, name)} ADD size INT")

    def rename_column(self, levels: Levels, name: str) -> None:
        self.ask(f"ALTER TABLE {self.table(levels, name)} RENAME city TO town")

    def drop_column(self, levels: Levels, name: str) -> None:
        self.ask(f"ALTER TABLE {self.table(levels, name)} DROP city")


def _compiled(java: Path, path: Sequence[Path], classes: Path) -> Path:
    command = [str(java), "-jar", str(compiler()), "-source", "17", "-target", "17", "-proc:none", "-nowarn"]
    subprocess.run([*command, "-cp", os.pathsep.join(map(str, path)), "-d", str(classes), str(_SOURCE)], check=True)
    return classes
