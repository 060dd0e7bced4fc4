# SPDX-License-Identifier: Apache-2.0
"""Describes Lance tables: schema, statistics, row counts and transactions.

Must not know the wire protocol. Runs in a worker process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from limnos.formats.lance_contents import LanceDescription
from limnos.model.errors import NotFound
from limnos.rooms.lance.sources import questions
from limnos.rooms.lance.sources.library_errors import translate_library_errors
from limnos.rooms.lance.sources.opening import open_for_reading, open_for_rows
from limnos.rooms.lance.sources.schemas import fields_of, logical_fields_of, texts_of

if TYPE_CHECKING:
    import lance

SMALL_ROWS: Final = 100_000
"""The number of rows below which a fragment counts as small."""
TRANSACTIONS_MAX: Final = 1000
"""The number of newest versions that are searched for a transaction."""


def describe(request: questions.Describe) -> LanceDescription | None:
    """Describe a table; None if it has no data yet.

    Raises NotFound (version, tag, branch), InvalidTable for a damaged table, StorageFailed if the storage cannot be
    read.
    """
    dataset = open_for_reading(request, rows=False)
    if dataset is None:
        return None
    schema = dataset.schema
    return LanceDescription(
        version=dataset.version,
        fields=msgspec.Raw(msgspec.json.encode(fields_of(schema))),
        logical_fields=msgspec.Raw(msgspec.json.encode(logical_fields_of(schema))),
        schema_metadata=texts_of(schema.metadata),
        metadata={str(key): str(value) for key, value in dataset.metadata.items()},
        stats=_stats_of(dataset),
    )


def _stats_of(dataset: lance.LanceDataset) -> dict[str, int]:
    fields: dict[str, Any] = dict(dataset.stats.dataset_stats())
    return {key: int(fields[key]) for key in ("num_deleted_rows", "num_fragments") if key in fields}


def count(request: questions.Count) -> int:
    """Count the rows that match the predicate. Raises NotFound (table, version, tag, branch, column), BadRequest for an
    invalid predicate.
    """
    dataset = open_for_rows(request)
    with translate_library_errors(request.location):
        return int(dataset.count_rows(request.predicate or None))


def stats(request: questions.Stats) -> questions.TableSize:
    """Return a table's size in bytes, and its counts of rows, indices and fragments. Raises NotFound (table,
    branch).
    """
    dataset = open_for_rows(request)
    with translate_library_errors(request.location):
        fields: Any = dataset.stats.data_stats().fields
        rows = sorted(each.metadata.num_rows for each in dataset.get_fragments())
        return questions.TableSize(
            total_bytes=sum(each.bytes_on_disk for each in fields),
            num_rows=dataset.count_rows(),
            num_indices=len(dataset.describe_indices()),
            num_fragments=len(rows),
            num_small_fragments=sum(each < SMALL_ROWS for each in rows),
            lengths=_lengths(rows),
        )


def _lengths(rows: list[int]) -> dict[str, int]:
    """Return statistics (minimum, mean, percentiles, maximum) of the sorted row counts of fragments."""
    if not rows:
        return dict.fromkeys(("min", "max", "mean", "p25", "p50", "p75", "p99"), 0)
    entries = {f"p{percent}": rows[min(len(rows) - 1, len(rows) * percent // 100)] for percent in (25, 50, 75, 99)}
    return {"min": rows[0], "max": rows[-1], "mean": sum(rows) // len(rows), **entries}


def transaction(request: questions.Transaction) -> questions.TransactionSummary:
    """Return the operation and versions of the transaction with the requested UUID. Raises NotFound."""
    dataset = open_for_rows(request)
    with translate_library_errors(request.location):
        for back, each in enumerate(dataset.get_transactions(TRANSACTIONS_MAX)):
            if each is not None and each.uuid == request.uuid:
                operation = type(each.operation).__name__
                return questions.TransactionSummary(operation, each.uuid, dataset.version - back, each.read_version)
    raise NotFound(request.uuid, kind="transaction")
