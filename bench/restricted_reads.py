# SPDX-License-Identifier: Apache-2.0
"""Costs of a masked reader of a large table. `python -m bench.restricted_reads --gb 8`.

Plants a table of data files of more than 512 MiB, in a temporary directory. The first restricted user reads until all
files are written; a second one with the same restrictions reads after that. Both see what a computation over the
planted file expects, with PyIceberg and, with `--spark`, with Spark. CPU and memory of the server's processes, and wall
time. With `--executor local[2]` an executor of maintenance writes the files, on this Spark master; then the server
writes those of another mask by itself, for comparison.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

import httpx2
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.exceptions import ServiceUnavailableError
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, LongType, NestedField, StringType

from bench.figures import Figure
from bench.maintenance_spark import watched
from limnos.client import Client
from tests.integration.live import serving
from tests.integration.maintenance_executors import working
from tests.integration.test_pyiceberg import basic, connect

if TYPE_CHECKING:
    from pyiceberg.catalog.rest import RestCatalog

    from tests.integration.live import LiveServer

FILE_BYTES: Final = 600 << 20
"""The size of each planted data file, in bytes; above the former limit of 512 MiB."""
GROUP_ROWS: Final = 200_000
QUOTA: Final = 256 << 30
QUIET_S: Final = 3_600.0
"""The seconds without work after which the executor ends."""
SCHEMA: Final = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "city", StringType()),
    NestedField(3, "card", StringType()),
    NestedField(4, "amount", DoubleType()),
    NestedField(5, "note", StringType()),
)
CITIES: Final = ("Rome", "Oslo", "Lima", "Bonn")
HIDDEN: Final = "Oslo"


class Sums(NamedTuple):
    """What a reader sees: the number of rows, the sum of ids and of the last digits of cards, and the largest number of
    digits of a card that is visible before them.
    """

    rows: int
    ids: int
    digits: int
    visible: int


def plant(file: Path) -> Sums:
    """Write a data file, and return what a restricted user sees of it."""
    number = rows = ids = digits = 0
    with pq.ParquetWriter(file, SCHEMA.as_arrow(), compression="zstd") as writer:
        while not file.exists() or file.stat().st_size < FILE_BYTES:
            group = _group(number)
            writer.write_table(group, row_group_size=GROUP_ROWS)
            seen = group.filter(pc.not_equal(group.column("city"), HIDDEN))
            rows += seen.num_rows
            ids += pc.sum(seen.column("id")).as_py()
            digits += _last_digits(seen.column("card"))
            number += GROUP_ROWS
    return Sums(rows, ids, digits, 0)


def _group(first: int) -> pa.Table:
    """Return a row group with random cities, cards and notes; `first` is its first id."""
    noise = os.urandom(16 * GROUP_ROWS).hex()
    notes = pa.array([noise[at : at + 32] for at in range(0, len(noise), 32)])
    numbers = pa.Array.from_buffers(pa.uint64(), 2 * GROUP_ROWS, [None, pa.py_buffer(os.urandom(16 * GROUP_ROWS))])
    halves = [pc.utf8_slice_codeunits(pc.utf8_lpad(numbers.cast(pa.string()), 20, "0"), 12, 20)]
    left, right = halves[0][:GROUP_ROWS], halves[0][GROUP_ROWS:]
    kind = pc.bit_wise_and(numbers[:GROUP_ROWS], pa.scalar(3, pa.uint64()))
    return pa.table(
        [
            pa.array(range(first, first + GROUP_ROWS), pa.int64()),
            pa.array(CITIES).take(kind),
            pc.binary_join_element_wise(left, right, "-"),
            pc.divide(numbers[GROUP_ROWS:].cast(pa.float64(), safe=False), 1e9),
            notes,
        ],
        schema=SCHEMA.as_arrow(),
    )


def _last_digits(cards: pa.ChunkedArray) -> int:
    """Return the sum of the last four digits of cards."""
    return int(pc.sum(pc.utf8_slice_codeunits(cards, -4).cast(pa.int64())).as_py() or 0)


def make_table(server: LiveServer, *, files: int) -> tuple[Sums, int]:
    """Create the table of a number of equal files, the users and the restriction. Returns what is visible, and the size
    of the files in bytes.
    """
    owner = connect(server)
    owner.create_namespace("shop")
    table = owner.create_table("shop.cards", SCHEMA)
    place = Path(urlsplit(table.location()).path) / "data"
    place.mkdir(parents=True, exist_ok=True)
    first = place / "0.parquet"
    sums = plant(first)
    paths = [first, *(place / f"{number}.parquet" for number in range(1, files))]
    for each in paths[1:]:
        shutil.copyfile(first, each)
    count = pq.read_metadata(first).num_rows
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        for each in paths:
            append.append_data_file(_data_file(each, rows=count))
    _restrict(server)
    return Sums(sums.rows * files, sums.ids * files, sums.digits * files, 0), first.stat().st_size * files


def _data_file(path: Path, *, rows: int) -> DataFile:
    from pyiceberg.manifest import DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path.as_uri(),
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=rows,
        file_size_in_bytes=path.stat().st_size,
        column_sizes={},
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds={},
        upper_bounds={},
        split_offsets=None,
        sort_order_id=None,
        key_metadata=None,
        equality_ids=None,
    )
    file.spec_id = 0
    return file


def _restrict(server: LiveServer) -> None:
    """Create two users who may read the table, and a restriction for all users but its owner."""
    names = ("use_catalog", "use_schema", "select_table")
    privileges = [{"name": name, "condition": "allow"} for name in names]
    securables = [{"fullName": "main", "type": "catalog", "privileges": privileges}]
    reader = {"name": "reader", "properties": {}, "securableObjects": securables}
    requests: list[tuple[str, str, object]] = [("POST", "/api/metalakes/lake/roles", reader)]
    for user in ("ann", "bob"):
        requests.append(("POST", "/api/metalakes/lake/users", {"name": user}))
        requests.append(("PUT", f"/api/metalakes/lake/permissions/users/{user}/grant", {"roleNames": ["reader"]}))
    _send(server, [*requests, _restriction("show-last-4")])


def _restriction(mask: str) -> tuple[str, str, object]:
    """Return the request that sets the restriction, with a mask of the cards."""
    city = {"type": "not-eq", "term": "city", "value": HIDDEN}
    path = "/api/limnos/v1/metalakes/lake/objects/TABLE/main.shop.cards/restrictions/r"
    return "PUT", path, {"filter": city, "masks": {"card": mask}}


def _send(server: LiveServer, requests: list[tuple[str, str, object]]) -> None:
    """Send requests as the admin."""
    headers = {"Authorization": f"Bearer {server.token}"}
    with httpx2.Client(base_url=server.uri, headers=headers, timeout=120) as http:
        for method, where, body in requests:
            answer = http.request(method, where, json=body)
            assert answer.status_code == 200, answer.text


def await_files(server: LiveServer, user: str) -> float:
    """Plan a scan until its files are written. Returns the seconds."""
    began = time.monotonic()
    while True:
        catalog: RestCatalog = connect(server, **{**basic(user), "scan-planning-mode": "server"})
        try:
            list(catalog.load_table("shop.cards").scan().plan_files())
        except ServiceUnavailableError as error:
            print(f"{time.monotonic() - began:6.0f} s: {error}", file=sys.stderr)
            time.sleep(2)
        else:
            return time.monotonic() - began


def read_with_pyiceberg(server: LiveServer, user: str) -> Sums:
    """Return what a user sees with PyIceberg."""
    catalog: RestCatalog = connect(server, **{**basic(user), "scan-planning-mode": "server"})
    rows = ids = digits = visible = 0
    for batch in catalog.load_table("shop.cards").scan(selected_fields=("id", "card")).to_arrow_batch_reader():
        rows += batch.num_rows
        ids += pc.sum(batch.column("id")).as_py() or 0
        digits += _last_digits(batch.column("card"))
        before = pc.utf8_slice_codeunits(batch.column("card"), 0, -4)
        visible = max(visible, pc.max(pc.count_substring_regex(before, "[0-9]")).as_py() or 0)
    return Sums(rows, ids, digits, visible)


def read_with_spark(server: LiveServer, user: str) -> Sums:
    """Return what a user sees with Spark."""
    from limnos.spark import session

    spark = session(server.uri, user=user, catalogs=["main"], master="local[2]", config={"spark.driver.memory": "2g"})
    digits = "sum(CAST(right(card, 4) AS bigint))"
    visible = "max(length(regexp_replace(left(card, length(card) - 4), '[^0-9]', '')))"
    row = spark.sql(f"SELECT count(*), sum(id), {digits}, {visible} FROM main.shop.cards").collect()[0]
    spark.stop()
    return Sums(*row)


def rewritten(folder: Path) -> tuple[int, int]:
    """Return the number and the size in bytes of the rewritten files."""
    files = list(folder.rglob("restricted-reads/**/*.parquet"))
    return len(files), sum(each.stat().st_size for each in files)


def await_executor(server: LiveServer) -> None:
    """Wait until an executor has asked the server for operations."""
    with Client(server.uri, token=server.token) as admin:
        while not admin.maintenance.status("main").executor_active:
            time.sleep(0.2)


def measure(folder: Path, *, gb: float, workers: int, spark: bool, executor: str | None) -> list[Figure]:
    """Measure two restricted readers of a table of about `gb` gigabytes, with `workers` processes for their files, or
    with an executor on a Spark master.
    """
    limits = ("RESTRICTED_BYTES_PER_READER", "RESTRICTED_BYTES_PER_TABLE")
    settings = {f"LIMNOS__PLANNING__{each}": str(QUOTA) for each in limits}
    settings |= {"LIMNOS__PLANNING__WORKERS_MAX": str(workers), "LIMNOS__ACCESS__ENABLED": "true"}
    settings |= {"LIMNOS__PLANNING__EXECUTOR_SPANS": "4"}  # so that a small table is measured, too
    with serving(folder / "data", env=settings) as server, ExitStack() as stack:
        expected, size = make_table(server, files=max(1, round(gb * 1e9 / FILE_BYTES)))
        assert server.pid is not None
        others: list[Figure] = []
        if executor is not None:
            process = stack.enter_context(working(server, "--master", executor, idle=QUIET_S)).process
            await_executor(server)
            with watched(process.pid) as writing, watched(server.pid) as first:
                first_s = await_files(server, "ann")
            others = [
                Figure("  CPU of the executor a GB of the table", writing.cpu_s / (size / 1e9), "s", 120),
                Figure("  peak memory of the executor", writing.rss_mb, "MiB", 1e6),
            ]
        else:
            with watched(server.pid) as first:
                first_s = await_files(server, "ann")
        count, written = rewritten(folder)
        with watched(server.pid) as second:
            second_s = await_files(server, "bob")
        more = rewritten(folder)[0] - count
        results = [read_with_pyiceberg(server, user) for user in ("ann", "bob")]
        results += [read_with_spark(server, "bob")] if spark else []
        if executor is not None:
            stack.close()  # ends the executor
            _send(server, [_restriction("show-first-4")])
            with watched(server.pid) as own:
                await_files(server, "ann")
            others.append(Figure("  CPU of the server a GB without the executor", own.cpu_s / (size / 1e9), "s", 120))
    wrong = sum(each != expected for each in results)
    return [
        Figure("size of the table", size / 1e9, "GB", 1e3),
        Figure("first reader: until the files are written", first_s, "s", 1e6),
        Figure("  CPU of the server a GB of the table", first.cpu_s / (size / 1e9), "s", 120),
        Figure("  peak memory of the server's processes", first.rss_mb, "MiB", 1500 + 700 * workers),
        *others,
        Figure("  written files", count, "", 1e6),
        Figure("  written bytes, as a part of the table", written / size, "", 1.5),
        Figure("second reader: until the plan is complete", second_s, "s", 20),
        Figure("  CPU of the server", second.cpu_s, "s", 10),
        Figure("  rewritten files", more, "", 0),
        Figure(f"readers of {len(results)} that do not see what is expected", wrong, "", 0),
    ]


def main() -> int:
    """Measure, and print the figures. Returns 1 if one misses its aim."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gb", type=float, default=8.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--executor", metavar="MASTER", help="let an executor write, on this Spark master: local[2]")
    parser.add_argument("--directory", help="a directory with room for twice the table")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as folder:
        figures = measure(
            Path(folder),
            gb=arguments.gb,
            workers=arguments.workers,
            spark=arguments.spark,
            executor=arguments.executor,
        )
    for each in figures:
        print(each.line)
    return 0 if all(each.is_met for each in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
