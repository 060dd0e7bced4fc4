# SPDX-License-Identifier: Apache-2.0
"""Functions of AsterixDB that are not supported, grouped by subject, for error messages and the reference page.

Must not know the table of functions. Names are written as in the table, without aliases.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ABSENT: Final[Mapping[str, frozenset[str]]] = {
    "coordinate reference systems": frozenset(["st_distance_spheroid", "st_transform"]),
    "minimal bounding rectangles of groups": frozenset(["union_mbr"]),
    "time zones and calendars": frozenset(
        [
            "calendar_duration_from_date",
            "calendar_duration_from_datetime",
        ]
    ),
    "indexes of vectors": frozenset(["ann_distance", "vector_distance"]),
    "the size of stored values": frozenset(["serialized_size"]),
    "objects by position": frozenset(["array_star_field"]),
}


def absent_function_subject(name: str) -> str | None:
    """Return the subject of an unsupported function, such as a feature name; None for a name that AsterixDB
    lacks, too.
    """
    return next((family for family, names in ABSENT.items() if name in names), None)
