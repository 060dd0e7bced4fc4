# SPDX-License-Identifier: Apache-2.0
"""States of one table in two catalogs, and how they relate: which of them went on from the other.

Pure. Must not know catalogs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from limnos.model.errors import InvalidTable

MOVED_TO: Final = "limnos.moved-to"
"""The property of a table that was moved: where it takes commits now."""
Relation = Literal["same", "behind", "ahead", "diverged", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """What a catalog says of a table: the metadata file, and what of its content decides."""

    metadata_location: str
    uuid: str
    location: str
    snapshot_id: int | None
    log: frozenset[str] = frozenset()
    """The earlier metadata files, the most recent ones."""
    moved_to: str = ""
    is_renamed: bool = False
    """Whether a cut-over has renamed or closed the table in the source."""

    def as_renamed(self) -> TableState:
        """Return the state of a table that a cut-over has renamed or closed."""
        return replace(self, is_renamed=True)


def table_state(metadata_location: object, metadata: object) -> TableState:
    """Return the state of a table with a metadata file and its content. Raises InvalidTable if something is missing."""
    if not isinstance(metadata, dict) or not isinstance(metadata_location, str) or not metadata_location:
        raise InvalidTable("the catalog does not say which metadata file the table has")
    values: Mapping[str, Any] = metadata
    uuid, location = values.get("table-uuid"), values.get("location")
    if not isinstance(uuid, str) or not isinstance(location, str):
        raise InvalidTable("the table's metadata has no uuid or location")
    snapshot = values.get("current-snapshot-id")
    log = values.get("metadata-log")
    properties = values.get("properties")
    return TableState(
        metadata_location=plain(metadata_location),
        uuid=uuid,
        location=plain(location),
        snapshot_id=snapshot if isinstance(snapshot, int) and snapshot >= 0 else None,
        log=frozenset(
            plain(str(each["metadata-file"]))
            for each in (log if isinstance(log, list) else ())
            if isinstance(each, dict) and "metadata-file" in each
        ),
        moved_to=str(properties.get(MOVED_TO, "")) if isinstance(properties, dict) else "",
    )


def plain(location: str) -> str:
    """Return a location in one spelling: local paths as `file:///x`, without a slash at the end."""
    if location.startswith("file:"):
        location = location[len("file:") :]
        location = "/" + location.lstrip("/")
    if location.startswith("/"):
        location = f"file://{location}"
    return location.rstrip("/") if not location.endswith("://") else location


def relation(source: TableState, target: TableState) -> Relation:
    """Return how the target's state relates to the source's.

    `same`: one metadata file. `behind`: the source has gone on from the target's file. `ahead`: the target has gone on
    from the source's. `diverged`: both took commits, or too many since to tell. `other`: two tables of one name.
    """
    if source.metadata_location == target.metadata_location:
        return "same"
    if source.uuid != target.uuid:
        return "other"
    if target.metadata_location in source.log:
        return "behind"
    return "ahead" if source.metadata_location in target.log else "diverged"
