# SPDX-License-Identifier: Apache-2.0
"""`Attachment`: a tag or policy that is attached to an object or to one of its columns; and the form of a tag's value.

Must not know rows.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from limnos.model.errors import BadRequest


class Attachment(NamedTuple):
    """An attached tag or policy, by its id.

    `field_id` is the column's field id, 0 for the object itself. `values` are the values of the tag in this attachment.
    """

    attached_id: int
    field_id: int
    values: tuple[str, ...] = ()


TAG_VALUE_MAX: Final = 256


def check_tag_value(value: str) -> str:
    """Return a tag's value if it has 1 to `TAG_VALUE_MAX` characters and is not blank. Raises BadRequest otherwise."""
    if not value.strip() or len(value) > TAG_VALUE_MAX:
        raise BadRequest(f"A tag's value has 1 to {TAG_VALUE_MAX} characters, and not only white space")
    return value
