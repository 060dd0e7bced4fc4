# SPDX-License-Identifier: Apache-2.0
"""Drivers of clients in other languages: a program, built here, that receives schemas, rows and settings.

Job: express the verbs in Iceberg's terms, for `go` and `rust` alike. May import the driver's words, the witness's
schemas and the line protocol. It must not know the checks.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conformance.engines.driver import ABSENT, Absent, Driver, Levels, Place
from conformance.engines.drivers.pyiceberg_driver import schema_of
from conformance.engines.page import block
from conformance.engines.remote import Lines
from conformance.engines.rows import PLAIN, TYPED, Row

_PARTS = ("x", "label")
"""Fields of the structure in the table of all types."""


class Foreign(Driver):
    """A client with properties as settings, `name=value` per line."""

    def built(self) -> Path:
        """Return the program, built once."""
        raise Absent(ABSENT)

    def start(self, place: Place) -> None:
        super().start(place)
        self._program = Lines([str(self.built())], {}, place.work / "program.log")
        self._program.open(place.work)

    def stop(self) -> None:
        self._program.stop()

    def be(self, caller: str) -> None:
        place = self.place
        text = block(self.section, uri=place.uri, token=place.tokens[caller], catalog=place.warehouse)
        lines = (line.partition("=") for line in text.splitlines() if line)
        self._program.ask("open", {"properties": {name: value for name, _, value in lines}})

    def _of(self, verb: str, levels: Levels, name: str, **more: object) -> Any:  # noqa: ANN401 - what the verb gives
        return self._program.ask(verb, {"levels": levels, "name": name, **more})

    def namespace(self, levels: Levels) -> None:
        self._program.ask("namespace", {"levels": levels})

    def create(self, levels: Levels, name: str) -> None:
        self._of("create", levels, name, schema=_schema(PLAIN))

    def create_typed(self, levels: Levels, name: str) -> None:
        self._of("create", levels, name, schema=_schema(TYPED), day="at")

    def append(self, levels: Levels, name: str, rows: Sequence[Row]) -> None:
        self._of("append", levels, name, rows=[_object(row, PLAIN) for row in rows])

    def append_typed(self, levels: Levels, name: str, rows: Sequence[Row]) -> None:
        self._of("append", levels, name, rows=[_object(row, TYPED) for row in rows])

    def read(self, levels: Levels, name: str, columns: Sequence[str]) -> list[Row]:
        return _rows(self._of("read", levels, name, columns=columns), columns)

    def read_at(self, levels: Levels, name: str, snapshot: int) -> list[Row]:
        return _rows(self._of("read", levels, name, columns=list(PLAIN), snapshot=snapshot), list(PLAIN))

    def add_column(self, levels: Levels, name: str) -> None:
        self._of("add_column", levels, name)

    def rename_column(self, levels: Levels, name: str) -> None:
        self._of("rename_column", levels, name)

    def drop_column(self, levels: Levels, name: str) -> None:
        self._of("drop_column", levels, name)

    def rename(self, levels: Levels, name: str, new: str) -> None:
        self._of("rename", levels, name, new=new)

    def drop(self, levels: Levels, name: str) -> None:
        self._of("drop", levels, name)

    def delete(self, levels: Levels, name: str, row: int) -> None:
        self._of("delete", levels, name, row=row)

    def make_view(self, levels: Levels, name: str, table: str) -> None:
        self._of("make_view", levels, name, schema=_schema({"id": "long"}), sql=f"SELECT id FROM {table}")


def _schema(columns: dict[str, str]) -> object:
    return json.loads(schema_of(columns).model_dump_json())


def _object(row: Row, columns: dict[str, str]) -> dict[str, object]:
    """Convert a row to a JSON object, including structures."""
    cells = zip(columns.items(), row, strict=True)
    return {
        name: dict(zip(_PARTS, cell, strict=True)) if kind == "struct" and cell else cell  # type: ignore[call-overload]
        for (name, kind), cell in cells
    }


def _rows(objects: Sequence[dict[str, object]], columns: Sequence[str]) -> list[Row]:
    return [[_cell(each.get(name)) for name in columns] for each in objects]


def _cell(value: object) -> object:
    """Convert a value. A structure's fields are put in the order of the type, which JSON does not preserve."""
    return [value[name] for name in _PARTS] if isinstance(value, dict) else value
