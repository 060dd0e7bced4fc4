"""What is attached to an object: a tag or a policy, to itself or to one of its columns, with a tag's values there.

May import nothing. Knows no rule and no row.
"""

from __future__ import annotations

from typing import NamedTuple


class Attachment(NamedTuple):
    """Something attached, by its id; `field_id` is a column's, 0 for the object itself. Only tags have values."""

    attached_id: int
    field_id: int
    values: tuple[str, ...] = ()
