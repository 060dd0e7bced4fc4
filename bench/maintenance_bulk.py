# SPDX-License-Identifier: Apache-2.0
"""Costs of many objects at once: registrations of tables, each in its own request, and an export of the tree.

May import the benchmark's lake, servers and clocks. The server has no route that registers many tables, and exports in
one piece. So these are the costs of the present routes. CPU of the server's processes.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.cpu import TreeCpu
from bench.figures import Figure
from bench.load import Generator, head_load
from bench.operations import PREFIX
from bench.search import Client
from bench.search_lake import LIKE, plant_crowd, template_bodies
from bench.seed import TEMPLATE
from bench.stores import Place, Server, running_server
from tests.http.iceberg.wire import local

if TYPE_CHECKING:
    from collections.abc import Sequence

_EXPORT: Final = "/api/limnos/v1/metalakes/lake/export?format=proto"
_SPACE: Final = "registered"
_MILLION: Final = 1_000_000


def measure_bulk(folder: Path, *, registered: int, exported: int) -> list[Figure]:
    """Measure registrations of prepared metadata files, HEAD of a table meanwhile, and an export.

    Args:
        folder: A directory for the store.
        registered: The number of tables to register.
        exported: The number of tables in the exported tree; the value is for a million.
    """
    place = Place(folder / "lake", None)
    with running_server(place, database_pid=None) as server:
        for path, body in template_bodies():
            Client(server).ask("POST", path, body)
        figures = _registrations(server, count=registered)
    plant_crowd(place, exported)
    with running_server(place, database_pid=None) as server:
        clock = TreeCpu(server.pids)
        before = clock.look()
        Client(server).ask("GET", _EXPORT)
        spent_s = (clock.look() - before) / 1e9
    scale = _MILLION / (exported + registered)
    title = f"export of a million objects in one piece, from {exported + registered:,}"
    return [*figures, Figure(title, spent_s * scale, "s", 25)]


def _registrations(server: Server, *, count: int) -> list[Figure]:
    """Return the CPU of a registration, and the latency of HEAD during registrations compared with an idle server."""
    client = Client(server)
    client.ask("POST", f"{PREFIX}/namespaces", {"namespace": [_SPACE]})
    files = _metadata_files(client, count)
    table = f"{PREFIX}/namespaces/{TEMPLATE}/tables/{LIKE}"
    load = head_load(server.host, server.port, token=server.admin_token, path=table)
    with Generator() as generator:
        idle, _ = generator.run(load, [])
        generator.warm(load)
        generator.go()
        _register(client, files[: count // 4])
        busy = generator.answered()
    rest = files[count // 4 :]
    clock = TreeCpu(server.pids)
    before = clock.look()
    _register(client, rest)
    spent_ms = (clock.look() - before) / 1e6
    return [
        Figure("registration of a table, one request each", spent_ms / len(rest), "ms", 0.35),
        Figure("  HEAD p99 beside registrations against idle", busy.p99_ms / idle.p99_ms, "times", 3),
    ]


def _register(client: Client, files: Sequence[Path]) -> None:
    for each in files:
        name = each.parent.parent.name
        body = {"name": name, "metadata-location": each.as_uri()}
        client.ask("POST", f"{PREFIX}/namespaces/{_SPACE}/register", body)


def _metadata_files(client: Client, count: int) -> list[Path]:
    """Copy the metadata file of a table for the given number of other tables, each with its own location. Returns their
    paths.
    """
    loaded: Any = json.loads(client.ask("GET", f"{PREFIX}/namespaces/{TEMPLATE}/tables/{LIKE}"))
    metadata = loaded["metadata"]
    root = local(metadata["location"]).parent / "prepared"
    paths = []
    for number in range(count):
        place = root / f"r{number:05}"
        path = place / "metadata" / f"00000-{uuid.uuid4()}.metadata.json"
        path.parent.mkdir(parents=True)
        own = {**metadata, "location": place.as_uri(), "table-uuid": str(uuid.uuid4())}
        path.write_text(json.dumps(own))
        paths.append(path)
    return paths
