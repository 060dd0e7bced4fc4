"""A statistic of a table or of one of its partitions, and a range of these, as values.

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


class PartitionRange(msgspec.Struct, frozen=True):
    """Partitions by their names, from one to another; None is no end."""

    above: str | None
    below: str | None
    above_too: bool = True
    below_too: bool = False
