# SPDX-License-Identifier: Apache-2.0
"""`python -m conformance.acceptance [write]`: each change of rights and names over each protocol, on one and two nodes.

Runs on both stores, prints the matrix, and compares it with docs/reference/acceptance.md; `write` writes that page. May
import this package.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from conformance.acceptance import matrix
from conformance.acceptance.world import world_of
from tests.backends import postgres_server

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.acceptance.matrix import Cell

STORES = ("SQLite", "PostgreSQL")
NODES = {1: "one node", 2: "two nodes"}


def found_all(folder: Path) -> dict[str, list[list[Cell]]]:
    """Run all cells. Returns the matrices by their titles."""
    matrices = {}
    with ExitStack() as stack:
        server = stack.enter_context(postgres_server())
        for store in STORES:
            for nodes, words in NODES.items():
                database = server.empty_database() if store == "PostgreSQL" else None
                place = folder / f"{store}-{nodes}"
                place.mkdir()
                with world_of(place, nodes=nodes, database=database) as world:
                    matrices[f"{store}, {words}"] = matrix.cells(world)
    return matrices


def main(words: Sequence[str]) -> int:
    """Run, print, and compare or write. Returns 0 if every cell is correct and equals the page."""
    if words not in ([], ["write"]):
        sys.stderr.write("say nothing, or `write`\n")
        return 2
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))  # a store is cut off
    with tempfile.TemporaryDirectory(prefix="limnos-acceptance-") as folder:
        matrices = found_all(Path(folder))
    text = matrix.written(matrix.PAGE.read_text(encoding="utf-8"), matrices)
    print(text.partition(matrix.MARK)[2])
    wrong = any(cell.wrong for rows in matrices.values() for row in rows for cell in row)
    if words and not wrong:
        matrix.PAGE.write_text(text, encoding="utf-8")
    elif matrix.PAGE.read_text(encoding="utf-8") != text:
        print(f"{matrix.PAGE.name} says otherwise")
        wrong = True
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
