# SPDX-License-Identifier: Apache-2.0
"""Previews of restricted users equal the result of a model in plain Python, over random filters and masks.

`LIMNOS_TEST_RESTRICTIONS` is the number of random filters and masks; the full proof needs 1,000.
"""

from __future__ import annotations

import os
import random
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limnos.services.iceberg.scan_queue import SCAN_OFFLOADER
from limnos.services.request.concurrency.previews import PREVIEW_OFFLOADER
from tests.formats.restricting.model import FITTING, FIXED, Cell, Row, random_filter, rows_made, shown_of
from tests.formats.restricting.test_rewriting import ARROW, SCHEMA
from tests.http.admin.catalog.test_previews import PREVIEW, Workers
from tests.http.driver import OWN, grant
from tests.http.iceberg import wire
from tests.http.iceberg.planning import WrittenTable
from tests.http.iceberg.test_restrictions import restrict
from tests.iceberg_manifests import data_file, entry

pytestmark = pytest.mark.slow

COUNT = int(os.environ.get("LIMNOS_TEST_RESTRICTIONS", "20"))
FILES = 2
ROWS = 30
"""The rows of a file."""


def shown_cell(value: Cell) -> object:
    """Return a value as previews show it."""
    if isinstance(value, date | datetime):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value


def add_files(table: WrittenTable, rows: list[Row]) -> None:
    """Commit a snapshot with the rows in data files."""
    entries = []
    for number in range(FILES):
        at = wire.local(table.write(f"{number}.parquet", b""))
        part = rows[number * ROWS : (number + 1) * ROWS]
        pq.write_table(pa.Table.from_pylist(part, schema=ARROW), at)
        location = f"{table.location}/metadata/{number}.parquet"
        entries.append(entry(data_file(location, file_size_in_bytes=at.stat().st_size, record_count=len(part))))
    table.commit([table.manifest("m.avro", entries)])


def test_previews_with_random_filters_and_masks_match_the_model(tmp_path: Path) -> None:
    """A restricted user's preview has exactly the rows and values of the model, and each preview has an audit
    record.
    """
    dice = random.Random(24)
    rows = rows_made(dice, 0, FILES * ROWS)
    with wire.node_over(tmp_path) as node:
        table = WrittenTable(node, schema={key: SCHEMA[key] for key in ("type", "fields")})
        workers = Workers()
        for key in (SCAN_OFFLOADER, PREVIEW_OFFLOADER):
            key.put(node.built.services, workers)
        add_files(table, rows)
        grant(node, "bob", "use_catalog use_schema select_table", kind="CATALOG", on="main")
        total = 0
        for _ in range(COUNT):
            filter_ = None if dice.random() < 0.1 else random_filter(dice, rows)
            masks = {column: dice.choice(FITTING[column]) for column in dice.sample(tuple(FIXED), dice.randrange(4))}
            if filter_ is None and not masks:
                masks = {"card": "show-last-4"}
            answer = restrict(node, masks=masks, **({} if filter_ is None else {"filter": filter_}))
            assert answer.status == 200, answer.body
            preview = node.get(f"{PREVIEW}?table=a.t&rows=100", user="bob").json()
            expected = shown_of(rows, filter_, masks)
            total += len(expected)

            assert preview["rows"] == [[shown_cell(row[column]) for column in FIXED] for row in expected]
            assert [each["name"] for each in preview["columns"] if each["masked"]] == [c for c in FIXED if c in masks]
        node.runner.run(node.built.services.audit.flush())
        lines = node.done("GET", f"{OWN}/metalakes/lake/audit?user=bob&limit=1000")["lines"]

    assert total, "filters left no row at all"
    assert sum(line["operation"] == "preview-table" for line in lines) == COUNT
