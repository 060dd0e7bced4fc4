# SPDX-License-Identifier: Apache-2.0
"""States of tables and views on both sides of a migration, as Iceberg REST answers them.

Must not do input or output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from limnos.model.errors import InvalidTable
from limnos.model.table_states import TableState, table_state

Name = tuple[str, ...]
"""The levels of a namespace, or those of a table with its name."""
NOT_ICEBERG: Final = "not-iceberg"
"""The word of a table of the source that has no Iceberg metadata."""


class ObjectError(Exception):
    """An object of a catalog cannot be read or changed. `status` is the HTTP status of the refusal, or 0; `word` is the
    word of the object's line if it has one of its own.
    """

    def __init__(self, message: str, *, status: int = 0, word: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.word = word


def state_of(answer: Mapping[str, Any]) -> TableState:
    """Return the state in the answer of Iceberg REST. Raises ObjectError if something is missing."""
    try:
        return table_state(answer.get("metadata-location"), answer.get("metadata"))
    except InvalidTable as error:
        raise ObjectError(error.message) from error


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
