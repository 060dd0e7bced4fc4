# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.system_tables`: system tables over a million objects: CPU, rows and decisions.

One server on SQLite, over a planted tree with a thousand users and a role for each namespace. `nodes` is read in eight
parts at the same time, and its ids are compared with those of the export. `effective_access` of random pairs of a user
and a table is compared with the decisions that the server explains. It exits with 1 if they differ.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import pyarrow as pa

from bench.cpu import TreeCpu
from bench.operations import PREFIX, TEMPLATES
from bench.search import Client
from bench.seed import TEMPLATE, Forest, open_filler
from bench.stores import Place, filled_place, running_server
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.stores import Server

EACH: Final = 1_000
"""The number of tables of a namespace."""
USERS: Final = 1_000
PARTS: Final = 8
TABLES_SAMPLED: Final = 100
USERS_SAMPLED: Final = 100
"""The users whose decisions are compared, for each sampled table."""
_LAKE: Final = "/api/limnos/v1/metalakes/lake"
_ACTIONS: Final = {"read": "table_scan", "write": "table_commit", "drop": "table_drop"}
"""The action that each level of access on a table means."""


def plant(place: Place, nodes: int) -> None:
    """Write a tree of about `nodes` tables, users, and for each namespace a role with a random user and rights."""
    with running_server(place, database_pid=None) as server:
        client = Client(server)
        client.ask("POST", f"{PREFIX}/namespaces", {"namespace": [TEMPLATE]})
        for body in TEMPLATES:
            client.ask("POST", f"{PREFIX}/namespaces/{TEMPLATE}/tables", body)
    forest = Forest(open_filler(place))
    dice = random.Random(7)
    ids = [forest.principal(f"user{number:04}") for number in range(USERS)]
    use = (forest.catalog_id, Kind.CATALOG, Privilege.USE_CATALOG, True)
    for number in range(max(1, nodes // EACH)):
        parent = forest.namespace(forest.catalog_id, f"space_{number:05}")
        rights = dice.sample((Privilege.SELECT_TABLE, Privilege.MODIFY_TABLE, Privilege.USE_SCHEMA), 2)
        rules = [(parent, Kind.NAMESPACE, right, dice.random() < 0.9) for right in rights]
        everywhere = (forest.catalog_id, Kind.CATALOG, Privilege.USE_SCHEMA, True)
        forest.role(f"role{number:05}", [use, everywhere, *rules], held_by=dice.choice(ids))
        for each in range(EACH):
            forest.bare_table(parent, f"flight_{number * EACH + each:07}")
    forest.close()


class Stopwatch:
    """The CPU of a server's processes and the wall time of steps, which it prints."""

    def __init__(self, server: Server) -> None:
        self._cpu = TreeCpu(server.pids)

    def step(self, title: str, began: float, before: int) -> None:
        """Print the line of a step."""
        used = (self._cpu.look() - before) / 1e9
        print(f"  {title:52} {time.perf_counter() - began:8.2f} s, {used:8.2f} s of CPU", flush=True)

    def begin(self) -> tuple[float, int]:
        """Return the times at the beginning of a step."""
        return time.perf_counter(), self._cpu.look()


def rows_of(client: Client, table: str, **query: str) -> pa.Table:
    """Read rows of a system table."""
    text = "&".join(f"{name}={quote(value)}" for name, value in query.items())
    return pa.ipc.open_stream(client.ask("GET", f"{_LAKE}/system-tables/{table}/rows?{text}")).read_all()


def exported_ids(client: Client) -> set[int]:
    """Return the ids of the nodes of the export."""
    kinds = ("metalake", "catalog", "namespace", "table", "entity")
    records: list[dict[str, Any]] = [
        json.loads(line) for line in client.ask("GET", f"{_LAKE}/export?format=json").splitlines()
    ]
    return {int(record[kind]["id"]) for record in records for kind in kinds if kind in record}


def read_in_parts(server: Server, *, columns: str | None) -> set[int]:
    """Read `nodes` in parts at the same time. Returns the ids."""
    scan = json.loads(Client(server).ask("GET", f"{_LAKE}/system-tables/nodes?parts={PARTS}"))
    query = {"revision": scan["revision"]} | ({} if columns is None else {"columns": columns})
    local = threading.local()

    def read(part: str) -> list[int]:
        local.client = getattr(local, "client", None) or Client(server)
        ids: list[int] = rows_of(local.client, "nodes", part=part, **query).column("id").to_pylist()
        return ids

    with ThreadPoolExecutor(PARTS) as pool:
        parts = list(pool.map(read, scan["parts"]))
    ids = {each for part in parts for each in part}
    if len(ids) != sum(map(len, parts)):
        raise SystemExit("a row is in two parts")
    return ids


def differing_decisions(client: Client, tables: Sequence[dict[str, Any]], dice: random.Random) -> tuple[int, int]:
    """Compare levels of access with explained decisions. Returns the numbers of samples and of differences."""
    samples = differences = 0
    for table in tables:
        rows = rows_of(client, "effective_access", where=json.dumps([["id", "=", table["id"]]])).to_pylist()
        levels = {row["user_name"]: set(row["levels"]) for row in rows}
        holders = [user for user in levels if user.startswith("user")]
        others = [f"user{number:04}" for number in dice.sample(range(USERS), USERS_SAMPLED)]
        for user in [*holders, *others][:USERS_SAMPLED]:
            level = dice.choice(sorted(_ACTIONS))
            body = {"action": _ACTIONS[level], "path": table["path"].split("."), "user": user}
            decision = json.loads(client.ask("POST", f"{_LAKE}/access/explain", body))["decision"]
            samples += 1
            if decision["allowed"] != (level in levels.get(user, set())):
                differences += 1
                print(f"  {user} {level} on {table['path']}: {sorted(levels.get(user, set()))}, {decision['message']}")
    return samples, differences


def measure(server: Server) -> bool:
    """Read, compare and print. Returns whether all comparisons agree."""
    client, watch, dice = Client(server), Stopwatch(server), random.Random(11)
    times = watch.begin()
    exported = exported_ids(client)
    watch.step(f"export of {len(exported):,} nodes", *times)
    for columns in ("id,path", None):
        times = watch.begin()
        ids = read_in_parts(server, columns=columns)
        watch.step(f"nodes in {PARTS} parts, {columns or 'all columns'}: {len(ids):,} rows", *times)
        if ids != exported:
            print(f"  {len(ids ^ exported)} ids differ from the export")
            return False
    client = Client(server)  # the server closes connections that are idle for long
    tables = rows_of(client, "nodes", columns="id,path", where=json.dumps([["kind", "=", "table"]])).to_pylist()
    chosen = [each for each in dice.sample(tables, min(TABLES_SAMPLED * 2, len(tables))) if "space_" in each["path"]]
    times = watch.begin()
    samples, differences = differing_decisions(client, chosen[:TABLES_SAMPLED], dice)
    watch.step(f"{samples:,} decisions compared, {differences} differ", *times)
    return not differences


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.system_tables", description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--data", type=Path, default=None, help="folder of the store; filled once and kept")
    return parser.parse_args(arguments)


def main() -> int:
    """Plant, measure and print."""
    arguments = options()
    what = f"{arguments.nodes:,} nodes"
    with (
        filled_place(arguments.data, lambda place: plant(place, arguments.nodes), what=what) as place,
        running_server(place, database_pid=None) as server,
    ):
        return 0 if measure(server) else 1


if __name__ == "__main__":
    sys.exit(main())
