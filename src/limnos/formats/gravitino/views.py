# SPDX-License-Identifier: Apache-2.0
"""Views: Gravitino's representation, from and to Iceberg's metadata and updates.

Must not know catalogs. Pure. A namespace is a tuple of levels, because the catalog determines how it is spelled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from limnos.formats.gravitino.columns import columns_of, schema_of
from limnos.formats.iceberg.json_types import Json
from limnos.names.path import Levels

COMMENT: Final = "comment"
"""The property in which Iceberg's clients store a view's comment; in Gravitino it is a field."""


class ViewRepresentation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The SQL text of a view in one dialect, such as `spark`."""

    dialect: str
    sql: str
    type: str = "sql"


class IcebergViewCreate(NamedTuple):
    """A new view, as an Iceberg create request."""

    schema: Json
    version: Json
    properties: dict[str, str]


class GravitinoView(NamedTuple):
    """A view in Gravitino's representation."""

    comment: str | None
    columns: list[Json]
    representations: list[Json]
    default_catalog: str | None
    default_namespace: Levels
    properties: dict[str, str]


class _StoredVersion(msgspec.Struct, rename="kebab", kw_only=True):
    version_id: int
    schema_id: int
    representations: list[ViewRepresentation]
    default_namespace: list[str] = []
    default_catalog: str | None = None


class _StoredView(msgspec.Struct, rename="kebab"):
    """The fields of an Iceberg view's metadata that Gravitino's representation needs."""

    current_version_id: int
    versions: list[_StoredVersion]
    schemas: list[dict[str, object]]
    properties: dict[str, str] = {}


def gravitino_view_of(metadata: bytes) -> GravitinoView:
    """Convert an Iceberg view's metadata to Gravitino's representation.

    Raises msgspec.DecodeError for malformed JSON, StopIteration if the current version or its schema is missing, and
    BadRequest or KeyError for a malformed schema.
    """
    stored_view = msgspec.json.decode(metadata, type=_StoredView)
    current = next(one for one in stored_view.versions if one.version_id == stored_view.current_version_id)
    schema = next(one for one in stored_view.schemas if one.get("schema-id") == current.schema_id)
    properties = dict(stored_view.properties)
    comment = properties.pop(COMMENT, None)
    return GravitinoView(
        comment=comment,
        columns=columns_of(schema),
        representations=_texts(current.representations),
        default_catalog=current.default_catalog,
        default_namespace=tuple(current.default_namespace),
        properties=properties,
    )


def _texts(representations: Sequence[ViewRepresentation]) -> list[Json]:
    return [{"type": one.type, "dialect": one.dialect, "sql": one.sql} for one in representations]


def version_of(
    representations: Sequence[ViewRepresentation],
    *,
    default_catalog: str | None,
    default_namespace: Levels,
    now_ms: int,
) -> Json:
    """Build a view version. Its schema id -1 means the schema that was added last."""
    version: Json = {
        "version-id": 1,
        "timestamp-ms": now_ms,
        "schema-id": -1,
        "summary": {},
        "default-namespace": list(default_namespace),
        "representations": _texts(representations),
    }
    return version if default_catalog is None else {**version, "default-catalog": default_catalog}


def text_updates(columns: Sequence[Json], *, version: Json, comment: str | None) -> list[object]:
    """Build the Iceberg view updates that set a new version (with its SQL texts), new columns and the comment.

    Raises as `schema_of` does.
    """
    fields: Json = (
        {"action": "remove-properties", "removals": [COMMENT]}
        if comment is None
        else {"action": "set-properties", "updates": {COMMENT: comment}}
    )
    return [
        {"action": "add-schema", "schema": schema_of(list(columns))},
        {"action": "add-view-version", "view-version": version},
        {"action": "set-current-view-version", "view-version-id": -1},
        fields,
    ]
