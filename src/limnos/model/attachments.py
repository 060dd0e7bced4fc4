"""`Attachment`: a tag or policy that is attached to an object or to one of its columns.

May import nothing of the product. Knows no rule and no row.
"""

from __future__ import annotations

from typing import NamedTuple


class Attachment(NamedTuple):
    """A tag or policy, by its id.

    `field_id` is the column's, 0 for the object itself. `values` are a tag's values here.
    """

    attached_id: int
    field_id: int
    values: tuple[str, ...] = ()
