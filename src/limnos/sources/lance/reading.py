"""What is told of a Lance table: what it is, and how many rows it has.

May import Lance's library, `model` and this room. Runs in a process of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from limnos.sources.lance.failures import said
from limnos.sources.lance.opening import at, empty, opened, opened_for_rows
from limnos.sources.lance.questions import Count, Describe, Described
from limnos.sources.lance.schemas import fields_of, logical_fields_of, texts_of

if TYPE_CHECKING:
    import lance


def describe(asked: Describe) -> Described | None:
    """Describe a table; None when nothing was written to its location yet.

    Raises NotFound (version, tag, branch), InvalidTable, StorageFailed.
    """
    found = opened(asked.location, asked.options)
    if found is None:
        if asked.version is not None or asked.tag is not None:
            raise empty(asked)
        return None
    found = at(found, asked)
    schema = found.schema
    return Described(
        version=found.version,
        fields=msgspec.Raw(msgspec.json.encode(fields_of(schema))),
        logical_fields=msgspec.Raw(msgspec.json.encode(logical_fields_of(schema))),
        schema_metadata=texts_of(schema.metadata),
        metadata={str(key): str(value) for key, value in found.metadata.items()},
        stats=_stats_of(found),
    )


def _stats_of(found: lance.LanceDataset) -> dict[str, int]:
    told: dict[str, Any] = dict(found.stats.dataset_stats())
    return {key: int(told[key]) for key in ("num_deleted_rows", "num_fragments") if key in told}


def count(asked: Count) -> int:
    """Count rows. Raises NotFound (table, version, tag, branch, column), BadRequest."""
    found = opened_for_rows(asked)
    with said(asked.location):
        return int(found.count_rows(asked.predicate or None))
