# SPDX-License-Identifier: Apache-2.0
"""Storage that does not answer: requests for its catalog fail in time, and other requests do not wait."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

from limnos.config.storage import StorageSection
from tests.http.driver import API, node_at
from tests.http.iceberg.wire import PREFIX, SCHEMA, error_of, make_table, set_properties, table_path


def test_stuck_object_store_does_not_block_other_catalogs(fresh: Callable[[str], Path]) -> None:
    """While an object store accepts connections and does not answer, other catalogs are served. Requests for its own
    catalog are 503 once it closes the connection.

    The deadline is too long to matter here, so that the machine's load has no effect: the store closes the connection
    after the other catalog was answered.
    """
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        storage = StorageSection(allowed_roots=("s3://b",), allowed_endpoints=(endpoint,), timeout_s=600.0)
        stuck = {
            "warehouse": "s3://b/w",
            "s3.endpoint": endpoint,
            "s3.region": "x",
            "s3.access-key-id": "k",
            "s3.secret-access-key": "s",
        }
        with node_at(fresh("data"), storage=storage) as node:
            body = {"name": "stuck", "type": "relational", "provider": "lakehouse-iceberg", "properties": stuck}
            node.done("POST", f"{API}/lake/catalogs", body)
            node.done("POST", "/iceberg/v1/lake.stuck/namespaces", {"namespace": ["a"]})
            make_table(node, "a", "t")
            large = {"updates": [set_properties(**{f"p{number}": "x" * 100 for number in range(1000)})]}

            async def ask() -> tuple[list[object], bool, list[int]]:
                waiting = [
                    asyncio.create_task(
                        node._ask(
                            "POST",
                            "/iceberg/v1/lake.stuck/namespaces/a/tables",
                            {"name": f"t{i}", "schema": SCHEMA},
                            "admin",
                            {},
                        )
                    )
                    for i in range(12)
                ]
                await asyncio.sleep(0)
                other = await node._ask("POST", table_path("a", "t"), large, "admin", {})
                before = not any(task.done() for task in waiting)
                silent.close()
                return await asyncio.gather(*waiting), before, [other.status]

            refused, before, others = node.runner.run(ask())
            left = node.get(f"/iceberg/v1/{PREFIX.replace('main', 'stuck')}/namespaces/a/tables").json()

    assert others == [200]
    assert before, "the other catalog waited for the stuck one"
    assert [error_of(answer)[:2] for answer in refused] == [(503, "ServiceUnavailableException")] * 12
    assert left["identifiers"] == []
