# SPDX-License-Identifier: Apache-2.0
"""Measurements of a Lance table before and after its maintenance: fragments, recall and time of searches, and versions.

May import the tests' nodes, Lance's library and numpy. A node in this process over a SQLite store, with its worker
processes. The time of a search is this process's CPU, over the table's own files. A search reads the rows that an index
misses one by one, so its recall is that of the index only after a refresh.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

import lance
import numpy as np
import pyarrow as pa

from bench.figures import Figure
from bench.maintenance_node import task_context
from limnos.rooms.maintenance.services.lance.assessing import LancePosition
from limnos.rooms.maintenance.services.lance.task import lance_run
from tests.http.iceberg import wire
from tests.rooms.lance.http.wire import declare, make_space
from tests.rooms.maintenance.services.histories import DAY_MS, add_policy, set_clock

LENGTH: Final = 64
ROWS_FIRST: Final = 20_000
ROWS_MORE: Final = 20
SEARCHES: Final = 50
NEAREST: Final = 10
POLICIES: Final[dict[str, dict[str, object]]] = {
    "system_iceberg_table_maintenance": {},
    "system_iceberg_snapshot_expiration": {"olderThanDays": 2, "retainLast": 1},
}


class LanceFigures(NamedTuple):
    """The state of a table, as a reader finds it."""

    fragments: int
    versions: int
    missing_rows: int
    recall: float
    search_ms: float
    scan_ms: float


def measure_lance(folder: Path, *, fragments: int) -> list[Figure]:
    """Measure a table of the given number of fragments, whose index covers the first one, before and after a round."""
    folder.mkdir(mode=0o700)
    with wire.node_over(folder) as node:
        make_space(node, "lance", "s")
        location = str(declare(node, "lance", "s", "t")["location"]).removeprefix("file://")
        vectors = _fill(location, fragments=fragments)
        dataset = lance.dataset(location)
        tags = {"first": 2, "middle": fragments // 2}
        for name, version in tags.items():
            dataset.tags.create(name, version)
        expected = {name: lance.dataset(location, version=name).count_rows() for name in tags}
        before = _look(location, vectors)
        for name, content in POLICIES.items():
            add_policy(node, name, name, dict(content), on="lance", kind="catalog")
        set_clock(node, time.time_ns() // 1_000_000 + 20 * DAY_MS)
        node.runner.run(lance_run(task_context(node), LancePosition()))
        at = node.done("GET", "/api/limnos/v1/metalakes/lake/catalogs/lance/maintenance/operations")
        after = _look(location, vectors)
        retained_rows = {name: lance.dataset(location, version=name).to_table().num_rows for name in tags}
        dataset = lance.dataset(location)
        dataset.create_index("vector", "IVF_PQ", name="v", replace=True, num_partitions=16, num_sub_vectors=16)
        renewed = _look(location, vectors)
    for each in reversed(at["operations"]):
        print(f"{each['kind']}: {each['state']}, {each['result']}")
    print(f"before: {before}\nafter: {after}\nwith an index that was trained anew: {renewed}")
    lost = sum(retained_rows[name] != expected[name] for name in tags)
    return [
        Figure(f"Lance, {fragments} fragments: fragments after maintenance", after.fragments, "", 2),
        Figure("  rows that the index misses", after.missing_rows, "", 0),
        Figure("  recall of a new index against the refreshed one", renewed.recall / after.recall, "times", 1.05),
        Figure("  CPU of a search against before", after.search_ms / before.search_ms, "times", 1),
        Figure("  CPU of a scan against before", after.scan_ms / before.scan_ms, "times", 1),
        Figure("  versions left, of which two have tags", after.versions, "", 3),
        Figure("  tagged versions that cannot be read", lost, "", 0),
    ]


def _fill(location: str, *, fragments: int) -> Any:  # noqa: ANN401 - an array of numpy
    """Write the rows: many with an index, then few at a time. Returns all vectors."""
    random = np.random.default_rng(1)
    parts = [_vectors(random, ROWS_FIRST)]
    dataset = lance.write_dataset(_rows(parts[0], first=0), location, mode="create")
    dataset.create_index("vector", "IVF_PQ", name="v", num_partitions=16, num_sub_vectors=16)
    first = ROWS_FIRST
    for _ in range(fragments - 1):
        parts.append(_vectors(random, ROWS_MORE))
        lance.write_dataset(_rows(parts[-1], first=first), location, mode="append")
        first += ROWS_MORE
    return np.concatenate(parts)


def _vectors(random: np.random.Generator, count: int) -> Any:  # noqa: ANN401 - an array of numpy
    """Return vectors around a hundred centers, distributed like embeddings."""
    centres = np.random.default_rng(7).random((100, LENGTH), dtype=np.float32)
    noise = random.normal(0, 0.05, (count, LENGTH)).astype(np.float32)
    return centres[random.integers(0, 100, count)] + noise


def _rows(vectors: Any, *, first: int) -> pa.Table:  # noqa: ANN401 - an array of numpy
    ids = pa.array(range(first, first + len(vectors)), pa.int64())
    return pa.table({"id": ids, "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), LENGTH)})


def _look(location: str, vectors: Any) -> LanceFigures:  # noqa: ANN401 - an array of numpy
    dataset = lance.dataset(location)
    query_numbers = np.random.default_rng(3).integers(0, len(vectors), SEARCHES)
    hits, spent = 0, []
    for number in query_numbers:
        vector = vectors[number] + np.float32(0.01)
        exact = set(np.argsort(((vectors - vector) ** 2).sum(axis=1))[:NEAREST].tolist())
        nearest: dict[str, Any] = {"column": "vector", "q": vector, "k": NEAREST, "nprobes": 8, "refine_factor": 20}
        began = time.process_time()
        nearest_rows = dataset.to_table(columns=["id"], nearest=nearest)
        spent.append((time.process_time() - began) * 1000)
        hits += len(exact & set(nearest_rows["id"].to_pylist()))
    began = time.process_time()
    dataset.to_table(columns=["id"])
    scan_ms = (time.process_time() - began) * 1000
    missing = sum(dataset.count_rows() - each.num_rows_indexed for each in dataset.describe_indices())
    return LanceFigures(
        fragments=len(dataset.get_fragments()),
        versions=len(dataset.versions()),
        missing_rows=missing,
        recall=hits / (SEARCHES * NEAREST),
        search_ms=statistics.median(spent),
        scan_ms=scan_ms,
    )
