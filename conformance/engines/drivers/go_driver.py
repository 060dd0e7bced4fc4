# SPDX-License-Identifier: Apache-2.0
"""iceberg-go: a program in Go, built here."""

from __future__ import annotations

from pathlib import Path

from conformance.engines.driver import ABSENT, RESTRICTED
from conformance.engines.foreign import Foreign
from conformance.engines.programs import go_program
from limnos.model.restrictions import CLOSED_TO


class Engine(Foreign):
    """iceberg-go."""

    title = "iceberg-go 0.7.0"
    section = "iceberg-go"
    limits = {  # noqa: RUF012
        "names: slash": "invalid identifier component",
        "reads duckdb": "only parquet format is implemented, got parquet",  # DuckDB writes the format in lower case
        "reads sail": "record names do not match",  # of the structs in Sail's manifests
        "reads chdb": "manifest file's 'content' metadata is missing",  # chDB writes no such key
        "read its view": "Table does not exist",
        "read another's view": "Table does not exist",
        "update": ABSENT,
        "merge": ABSENT,
        RESTRICTED: CLOSED_TO,
    }

    def built(self) -> Path:
        return go_program("engine-go")
