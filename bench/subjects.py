# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.subjects`: the CPU cost of reading a user with many roles, on a cache miss and after an unrelated
change.

It prints and judges nothing. In process, over its own SQLite file, on the event loop's thread. The targets are 60 ms on
a cache miss and 5 ms after a change of access that is not the user's own, for 5,000 roles. The longest time without
yielding is printed, too.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.measure import prepare
from bench.seed import Forest, Shape, open_filler
from bench.stores import Place
from limnos.access.authentication import Credential
from limnos.app.node_builder import build
from limnos.app.serving import settle_memory
from limnos.config import load
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.services.identity.users import principal_add
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

if TYPE_CHECKING:
    from limnos.app.node_builder import ServerNode

ROLES: Final = 5_000
USER: Final = "holder"
MAIN: Final = RequestScope("lake", "main")


def plant(place: Place, *, roles: int, rules: int) -> None:
    """Create a user with a number of roles and rules, each on its own namespace."""
    forest = Forest(open_filler(place))
    holder = forest.principal(USER)
    spaces = [forest.namespace(forest.catalog_id, f"of{number}") for number in range(roles)]
    for number in range(roles):
        objects = [spaces[(number + more) % roles] for more in range(rules)]
        forest.role(
            f"role{number}", [(each, Kind.NAMESPACE, Privilege.USE_SCHEMA, True) for each in objects], held_by=holder
        )
    forest.close()


class Turns:
    """The longest time for which other tasks could not run."""

    def __init__(self) -> None:
        self.longest_ns = 0

    async def look(self) -> None:
        """Run whenever the event loop is free."""
        before = time.thread_time_ns()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time_ns()
            self.longest_ns = max(self.longest_ns, now - before)
            before = now


async def measured(built: ServerNode) -> tuple[float, float]:
    """Read the user's subject once. Returns CPU ms on this thread, and the longest time without yielding."""
    ctx = Context(built.services, Credential(user=USER), "bench")
    turns = Turns()
    looking = asyncio.create_task(turns.look())
    await asyncio.sleep(0)
    gc.collect()
    turns.longest_ns, began = 0, time.thread_time_ns()
    await ctx.read(MAIN, lambda request_view: request_view.subject)
    used = time.thread_time_ns() - began
    looking.cancel()
    return used / 1e6, turns.longest_ns / 1e6


async def measure_all(built: ServerNode, rounds: int) -> None:
    """Print the best of some rounds of each case."""
    settle_memory()
    admin = Context(built.services, Credential(user="admin"), "bench")
    cold, warm = [], []
    for number in range(rounds):
        built.services.view.reset(built.services.view.epoch)
        await admin.read(MAIN, lambda request_view: request_view.subject)
        cold.append(await measured(built))
        await principal_add(admin, metalake="lake", kind=Kind.USER, name=f"another{number}")
        warm.append(await measured(built))
    for word, costs in (("nothing cached", cold), ("after another's change", warm)):
        best = min(costs)
        print(f"{word}: {best[0]:.1f} ms of CPU, {best[1]:.1f} ms in one piece at most")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.subjects", description=__doc__)
    parser.add_argument("--roles", type=int, default=ROLES)
    parser.add_argument("--rules", type=int, default=2, help="of each role")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="limnos-bench-", ignore_cleanup_errors=True) as folder:
        place = Place(Path(folder) / "sqlite", None)
        prepare(place, Shape(1_000), database_pid=None)
        plant(place, roles=options.roles, rules=options.rules)
        with asyncio.Runner() as runner:
            built = build(
                load(
                    flags={"server.data": str(place.data), "access.authentication": "simple"}, file=None, environ={}
                ).settings
            )
            try:
                runner.run(measure_all(built, options.rounds))
            finally:
                runner.run(built.close())


if __name__ == "__main__":
    main()
