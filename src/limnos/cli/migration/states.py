# SPDX-License-Identifier: Apache-2.0
"""States of tables and views on both sides of a migration, and how two states of one table relate.

Must not do input or output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

Name = tuple[str, ...]
"""The levels of a namespace, or those of a table with its name."""
MOVED_TO: Final = "limnos.moved-to"
"""The property of a table that was moved: where it takes commits now."""
NOT_ICEBERG: Final = "not-iceberg"
"""The word of a table of the source that has no Iceberg metadata."""
Relation = Literal["same", "behind", "ahead", "diverged", "other"]


class ObjectError(Exception):
    """An object of a catalog cannot be read or changed. `status` is the HTTP status of the refusal, or 0; `word` is the
    word of the object's line if it has one of its own.
    """

    def __init__(self, message: str, *, status: int = 0, word: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.word = word


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

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> TableState:
        """Return the state in the answer of Iceberg REST. Raises ObjectError if something is missing."""
        metadata = answer.get("metadata")
        file = answer.get("metadata-location")
        if not isinstance(metadata, dict) or not isinstance(file, str) or not file:
            raise ObjectError("the catalog does not say which metadata file the table has")
        uuid, location = metadata.get("table-uuid"), metadata.get("location")
        if not isinstance(uuid, str) or not isinstance(location, str):
            raise ObjectError("the table's metadata has no uuid or location")
        snapshot = metadata.get("current-snapshot-id")
        log = metadata.get("metadata-log")
        properties = metadata.get("properties")
        return cls(
            metadata_location=plain(file),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewState:
    """What a catalog says of a view: its current version with the schema, and its properties."""

    schema: Mapping[str, Any]
    version: Mapping[str, Any]
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> ViewState:
        """Return the state in the answer of Iceberg REST. Raises ObjectError if something is missing."""
        metadata = answer.get("metadata")
        if not isinstance(metadata, dict):
            raise ObjectError("the catalog gives no metadata of the view")
        current = metadata.get("current-version-id")
        version = _find(metadata.get("versions"), "version-id", value=current)
        schema = (
            None if version is None else _find(metadata.get("schemas"), "schema-id", value=version.get("schema-id"))
        )
        if version is None or schema is None:
            raise ObjectError("the view has no current version with a schema")
        properties = metadata.get("properties")
        texts = properties if isinstance(properties, dict) else {}
        return cls(schema=schema, version=version, properties={str(key): str(text) for key, text in texts.items()})

    @property
    def dialects(self) -> tuple[str, ...]:
        """The dialects of the view's texts."""
        return tuple(str(each.get("dialect")) for each in self.version.get("representations", ()))

    def is_like(self, other: ViewState) -> bool:
        """Return whether two views have the same texts."""
        return self.version.get("representations") == other.version.get("representations")


def _find(entries: object, key: str, *, value: object) -> Mapping[str, Any] | None:
    for each in entries if isinstance(entries, list) else ():
        if isinstance(each, dict) and each.get(key) == value:
            return each
    return None


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
