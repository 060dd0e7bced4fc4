"""iceberg-rust: a program in Rust, built here. It supports only the local disk."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from conformance.engines.driver import ABSENT, Absent, Levels
from conformance.engines.foreign import Foreign
from conformance.kit.jars import cache_directory

_SOURCE = Path(__file__).parents[1] / "rust"
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
    }

    def built(self) -> Path:
        target = cache_directory() / "rust"
        environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
        subprocess.run(["cargo", "build", "--locked", "--quiet"], cwd=_SOURCE, env=environment, check=True)
        return target / "debug" / "engine"

    def rename_column(self, levels: Levels, name: str) -> None:
        raise Absent(ABSENT)

    def delete(self, levels: Levels, name: str, row: int) -> None:
        raise Absent(ABSENT)

    def make_view(self, levels: Levels, name: str, table: str) -> None:
        raise Absent(ABSENT)
