# SPDX-License-Identifier: Apache-2.0
"""Statistics of a table or of its partitions, and ranges of partitions, as values.

Must not know the meaning of statistics, which their writers define.
"""

from __future__ import annotations

import msgspec


class Statistic(msgspec.Struct, frozen=True):
    """A custom statistic: a named value of a table, partition or column.

    `partition` is "" for a statistic of the whole table or of a column; `value` is JSON.
    """

    partition: str
    name: str
    value: str
    created_by: str
    created_at: int
    modified_by: str | None = None
    modified_at: int | None = None


class PartitionRange(msgspec.Struct, frozen=True):
    """A range of partitions by name, from `above` to `below` (None: no bound).

    `above_too` and `below_too`: whether the bound itself belongs to the range.
    """

    above: str | None
    below: str | None
    above_too: bool = True
    below_too: bool = False
