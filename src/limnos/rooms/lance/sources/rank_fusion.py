# SPDX-License-Identifier: Apache-2.0
"""Merges the rows of a vector search and a full-text search by their ranks (reciprocal rank fusion).

Must not know tables. The results of both searches are in memory; their limits bound them.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from limnos.model.errors import BadRequest

SCORE: Final = "_relevance_score"
_ROW_ID: Final = "_rowid"
_CONSTANT: Final = 60
"""The constant k of reciprocal rank fusion: a larger one reduces the weight of the first ranks."""
_LIMIT_DEFAULT: Final = 10
DEPTH_MAX: Final = 100_000
"""The maximum number of rows of one search that are ranked."""


def search_depth(limit: int | None, offset: int) -> int:
    """Return the number of rows that each search must return so that `limit` rows after `offset` can be ranked.

    Raises BadRequest if the number exceeds `DEPTH_MAX`.
    """
    requested = (_LIMIT_DEFAULT if limit is None else limit) + offset
    if requested > DEPTH_MAX:
        raise BadRequest(f"A search returns at most the nearest {DEPTH_MAX} rows, offset included, not {requested}")
    return max(requested, 1)


def merge_by_rank(tables: list[pa.Table], *, limit: int | None, offset: int, with_row_id: bool) -> pa.Table:
    """Merge searches by the ranks of their rows, best first.

    A row in only one result has null in the score column of the other search.
    """
    scores: dict[int, float] = {}
    for table in tables:
        for rank, row in enumerate(table[_ROW_ID].to_pylist()):
            scores[row] = scores.get(row, 0.0) + 1 / (_CONSTANT + rank + 1)
    end = offset + (_LIMIT_DEFAULT if limit is None else limit)
    best = sorted(scores, key=lambda row: (-scores[row], row))[offset:end]
    merged_rows = _take_rows(tables, best)
    merged_rows = merged_rows.append_column(SCORE, pa.array([scores[row] for row in best], pa.float32()))
    return merged_rows if with_row_id else merged_rows.drop_columns([_ROW_ID])


def _take_rows(tables: list[pa.Table], rows: list[int]) -> pa.Table:
    """Take rows by their ids, with the distance and score columns of the searches."""
    figures = [name for name in ("_distance", "_score") if any(name in table.column_names for table in tables)]
    plain_columns = [name for name in tables[0].column_names if name not in figures]
    every = pa.concat_tables([table.select(plain_columns) for table in tables])
    array = pa.array(rows, pa.uint64())
    append_column = every.take(pc.index_in(array, value_set=every[_ROW_ID].combine_chunks()))
    for name in figures:
        (table,) = [each for each in tables if name in each.column_names]
        positions = pc.index_in(array, value_set=table[_ROW_ID].combine_chunks())
        append_column = append_column.append_column(name, table[name].take(positions))
    return append_column
