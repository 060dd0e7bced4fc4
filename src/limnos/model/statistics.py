"""A statistic of a table or of one of its partitions, as a value.

May import nothing of the product. What it counts is for whoever wrote it to know.
"""

from __future__ import annotations

import msgspec


class Statistic(msgspec.Struct, frozen=True):
    """A value under a name; `partition` is empty for the table's own. `value` is JSON."""

    partition: str
    name: str
    value: str
    created_by: str
    created_at: int
    modified_by: str | None = None
    modified_at: int | None = None
