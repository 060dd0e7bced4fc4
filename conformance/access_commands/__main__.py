# SPDX-License-Identifier: Apache-2.0
"""`conformance/run access-commands [--decisions N] [--seed N] [--store sqlite|postgres]`: do `access who`, `what`,
`diff`, `simulate`, `what --missing` and presets agree with the server's decisions?

Random lakes are made on each store until so many decisions on (principal, action, object) were compared. One node
decides, another process over the same store answers the commands. Prints each disagreement; the exit code is 1 if there
is one.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.access_commands.commands import Commands
from conformance.access_commands.comparison import Comparison
from conformance.access_commands.decisions import Decisions
from conformance.access_commands.lakes import RandomLake
from tests.backends import postgres_server
from tests.http.iceberg.wire import node_over
from tests.nodes.process import Process

if TYPE_CHECKING:
    from collections.abc import Iterator

STORES = ("sqlite", "postgres")


@contextmanager
def comparison_of(
    folder: Path, drawn: random.Random, *, users: int, database: str | None = None
) -> Iterator[Comparison]:
    """Make a random lake, decided by a node in this process; a server process answers the commands."""
    data = folder / "data"
    data.mkdir()
    with node_over(data, database=database, verify="never") as node:
        lake = RandomLake(node, drawn, users=users).build()
        process = Process(data, log=folder / "server.log", database=database)
        try:
            process.start()
            with closing(Commands(process.uri)) as commands:
                yield Comparison(lake, Decisions(lake), commands)
        finally:
            process.stop()


def compare(comparison: Comparison, *, changes: int, cases: int) -> None:
    """Compare every command over one lake."""
    table = comparison.table()
    comparison.compare_probes(table)
    comparison.compare_who(table)
    comparison.compare_what(table)
    comparison.compare_diff(table)
    comparison.compare_simulate(changes)
    comparison.compare_missing(cases)


def main(words: list[str]) -> int:
    """Compare random lakes on both stores. Returns 0 if everything agrees."""
    parser = argparse.ArgumentParser(prog="conformance/run access-commands", description=__doc__)
    parser.add_argument("--decisions", type=int, default=100_000, help="decisions on each store")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--users", type=int, default=24)
    parser.add_argument("--store", choices=STORES, action="append")
    options = parser.parse_args(words)
    wrong = 0
    with ExitStack() as stack:
        server = None
        for store in options.store or STORES:
            decided, seed, checks = 0, options.seed, Counter[str]()
            while decided < options.decisions:
                if store == "postgres" and server is None:
                    server = stack.enter_context(postgres_server())
                database = server.empty_database() if store == "postgres" and server is not None else None
                with (
                    tempfile.TemporaryDirectory(prefix="limnos-access-") as folder,
                    comparison_of(
                        Path(folder), random.Random(seed), users=options.users, database=database
                    ) as comparison,
                ):
                    compare(comparison, changes=8, cases=8)
                decided += comparison.decisions.count
                checks += comparison.checks
                wrong += len(comparison.wrong)
                for line in comparison.wrong:
                    print(f"{store}, seed {seed}: {line}", flush=True)
                seed += 1
            print(f"{store}: {decided} decisions, {dict(checks)}", flush=True)
    print(f"{wrong} disagreements")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
