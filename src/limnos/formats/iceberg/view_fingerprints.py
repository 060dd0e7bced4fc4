# SPDX-License-Identifier: Apache-2.0
"""Fingerprints of views' definitions, by which a run's record names the definition that the run has read.

Pure. The server compares them with a view's metadata. Must not know runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec

_DIALECT: Final = "spark"


def view_fingerprint(sql: str, columns: Sequence[str]) -> str:
    """Return the fingerprint of a view with this query, as Spark reads it, and these columns."""
    text = "\0".join((sql.strip(), *columns))
    return f"view:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


class _Representation(msgspec.Struct):
    sql: str = ""
    dialect: str = ""


class _Version(msgspec.Struct, rename="kebab"):
    version_id: int
    schema_id: int
    representations: list[_Representation] = []


class _Field(msgspec.Struct):
    name: str


class _Schema(msgspec.Struct, rename="kebab"):
    schema_id: int
    fields: list[_Field] = []


class _ViewMetadata(msgspec.Struct, rename="kebab"):
    current_version_id: int
    versions: list[_Version]
    schemas: list[_Schema]


def metadata_fingerprint(body: bytes) -> str | None:
    """Return the fingerprint of the current version in a view's metadata; None if it has no query.

    Iceberg's reader takes the query of Spark's dialect, else the first one. Raises MsgspecError for other documents.
    """
    metadata = msgspec.json.decode(body, type=_ViewMetadata)
    version = next((each for each in metadata.versions if each.version_id == metadata.current_version_id), None)
    if version is None or not version.representations:
        return None
    schema = next((each for each in metadata.schemas if each.schema_id == version.schema_id), None)
    own_representations = (each for each in version.representations if each.dialect.lower() == _DIALECT)
    query = next(own_representations, version.representations[0])
    return None if schema is None else view_fingerprint(query.sql, [each.name for each in schema.fields])
