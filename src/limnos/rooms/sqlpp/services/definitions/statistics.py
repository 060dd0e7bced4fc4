# SPDX-License-Identifier: Apache-2.0
"""Statistics of datasets: ANALYZE DATASET stores the count and the average size of a dataset's objects.

Must not know any wire format. Iceberg counts rows and bytes at each commit, so nothing is sampled: the counts are those
of the table's current metadata, and may be inexact if the table has delete files. The statement is stored in the record
of the dataset, like those of its indexes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from limnos.model.permits import Permit
from limnos.rooms.sqlpp.language import SqlppError, render, tree
from limnos.rooms.sqlpp.language.declarations import declarations_of
from limnos.rooms.sqlpp.language.errors import compilation
from limnos.rooms.sqlpp.services.definitions.datasets import (
    DatasetAlter,
    alter_decide,
    dataset_alter,
    indexes_of,
    record_with,
)
from limnos.rooms.sqlpp.services.requests.names import scope_of
from limnos.rooms.sqlpp.services.requests.session import StatementSession
from limnos.services.request.request_view import RequestView

NO_ROWS, BAD_SIZE, SIZE_LIMITS, BAD_SEED, BAD_FULL_SCAN, BAD_METHOD = 1174, 1175, 1176, 1177, 1255, 1256
SIZES: Final = {"low": 1063, "medium": 4252, "high": 17008}
SIZE_LEAST: Final = 1
SIZE_MOST: Final = 100_000_000
OPTIONS: Final = ("sample", "sample-seed", "sample-method", "sample-full-scan")


BIGINT_EDGE: Final = 2.0**63
DIGITS_MAX: Final = 18


class _Snapshot(msgspec.Struct, rename="kebab"):
    snapshot_id: int
    summary: dict[str, str] = {}


class _TableMetadata(msgspec.Struct, rename="kebab"):
    current_snapshot_id: int | None = None
    snapshots: list[_Snapshot] = []


class DatasetCounts(NamedTuple):
    """The count of a dataset's objects, and their average size in bytes in its files."""

    objects: int
    average_bytes: int


async def dataset_analyze(session: StatementSession, statement: tree.Analyze) -> None:
    """Store the statistics of a dataset, or delete them (DROP STATISTICS). Warns about an empty dataset.

    Raises SqlppError, PermissionDenied.
    """
    path = session.qualify(statement.dataset)
    target = _sample_size(statement)
    warnings: list[SqlppError] = []

    def decide(request_view: RequestView) -> Permit[DatasetAlter]:
        node, record, permit = alter_decide(request_view, path, at=statement.dataset.at)
        earlier = declarations_of(node, tree.Analyze)
        texts = [render(each) for each in (*declarations_of(node, tree.CreateDataset), *indexes_of(node))]
        warnings.clear()
        if not statement.drops:
            counts = counts_of(request_view.document(node.id).body)
            if counts.objects == 0:
                warnings.append(SqlppError(NO_ROWS, "Sample has zero rows", statement.at))
            number = 2 if not earlier or _option(earlier[0], "number") == "1" else 1
            figures = {
                "cardinality": counts.objects,
                "average-size": counts.average_bytes,
                "target": target,
                "number": number,
            }
            options = [tree.Option(statement.at, name, str(value)) for name, value in figures.items()]
            texts.append(render(msgspec.structs.replace(statement, options=(*statement.options, *options))))
        return permit.about(DatasetAlter(node, record_with(record, tuple(texts))))

    await session.ctx.write(scope_of(session.ctx), decide, dataset_alter)
    session.warnings += warnings


def counts_of(metadata: bytes) -> DatasetCounts:
    """Return the statistics of a table's current snapshot, from its metadata.

    Clients write the counts in the snapshot's summary: values that are not digits count as 0.
    """
    document = msgspec.json.decode(metadata, type=_TableMetadata)
    summary = next(
        (each.summary for each in document.snapshots if each.snapshot_id == document.current_snapshot_id), {}
    )
    rows = _total(summary, "total-records")
    objects = max(0, rows - _total(summary, "total-position-deletes"))
    return DatasetCounts(objects, _total(summary, "total-files-size") // max(1, rows))


def _total(summary: Mapping[str, str], name: str) -> int:
    text = summary.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX else 0


def _option(statement: tree.Analyze, name: str) -> str | None:
    return next((each.value for each in statement.options if each.name == name), None)


def _sample_size(statement: tree.Analyze) -> int:
    """Check the options of ANALYZE, and return the sample size. Raises SqlppError for an unknown option or an invalid
    value.
    """
    values = {each.name.lower(): each.value for each in statement.options}
    unknown = next((name for name in values if name not in OPTIONS), None)
    if unknown is not None:
        raise compilation(f"ANALYZE has no option {unknown}; its options are {', '.join(OPTIONS)}", statement.at)
    if _number(values.get("sample-seed", "0")) is None:
        raise SqlppError(BAD_SEED, "Sample seed has to be a number or a string convertible to a number", statement.at)
    if values.get("sample-method", "random").lower() not in ("full-scan", "random"):
        raise SqlppError(BAD_METHOD, 'Sample method option has to be one of "full-scan" or "random"', statement.at)
    if values.get("sample-full-scan", "true").lower() not in ("true", "false"):
        text = (
            "Sample full-scan option has to be a boolean value (true/false) or a string convertible to a boolean value"
        )
        raise SqlppError(BAD_FULL_SCAN, text, statement.at)
    size = values.get("sample", "low")
    if size in SIZES:
        return SIZES[size]
    number = _number(size)
    if number is None:
        raise SqlppError(BAD_SIZE, 'Sample size options are "low", "medium", "high", or a number', statement.at)
    if not SIZE_LEAST <= number <= SIZE_MOST:
        raise SqlppError(SIZE_LIMITS, f"Sample size has to be between {SIZE_LEAST} and {SIZE_MOST}", statement.at)
    return int(number)


def _number(text: str) -> float | None:
    """Parse a text as a finite number in the range of bigint; None for another text."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < BIGINT_EDGE else None
