# SPDX-License-Identifier: Apache-2.0
"""iceberg-rust: a program in Rust, built here. It supports only the local disk."""

from __future__ import annotations

from pathlib import Path

from conformance.engines.driver import ABSENT, RESTRICTED, Absent, Levels
from conformance.engines.foreign import Foreign
from conformance.engines.programs import rust_program
from limnos.model.restrictions import CLOSED_TO

_WITHOUT = ("rename column", "update", "delete", "merge", "make a view", "types: delete")


class Engine(Foreign):
    """iceberg-rust."""

    title = "iceberg-rust 0.10.1"
    section = "iceberg-rust"
    limits = {  # noqa: RUF012
        **dict.fromkeys(_WITHOUT, ABSENT),
        "names: slash": "NamespaceNotFound",  # sent unencoded
        "add column": "Column size not found in table",  # it reads with the schema of the last snapshot
        "read another's view": "TableNotFound",
        RESTRICTED: CLOSED_TO,
        "reads chdb": "Cannot create partition with name: 'at'",  # chDB names a day's partition field like its column
    }

    def built(self) -> Path:
        return rust_program("engine")

    def rename_column(self, levels: Levels, name: str) -> None:
        raise Absent(ABSENT)

    def delete(self, levels: Levels, name: str, row: int) -> None:
        raise Absent(ABSENT)

    def make_view(self, levels: Levels, name: str, table: str) -> None:
        raise Absent(ABSENT)
