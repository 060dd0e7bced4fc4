# SPDX-License-Identifier: Apache-2.0
"""Manifests and manifest lists with few fields, as Iceberg's writers create them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import fastavro

_BOUNDS = {
    "type": "array",
    "items": {
        "type": "record",
        "name": "{}",
        "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "bytes"}],
    },
}


def _bounds(name: str) -> dict[str, Any]:
    items = {**_BOUNDS["items"], "name": name}  # type: ignore[dict-item]
    return {"name": name, "type": ["null", {"type": "array", "items": items}]}


_ENTRY = {
    "type": "record",
    "name": "entry",
    "fields": [
        {"name": "status", "type": "int"},
        {"name": "sequence_number", "type": ["null", "long"]},
        {
            "name": "data_file",
            "type": {
                "type": "record",
                "name": "r2",
                "fields": [
                    {"name": "content", "type": "int"},
                    {"name": "file_path", "type": "string"},
                    {"name": "file_format", "type": "string"},
                    _bounds("lower_bounds"),
                    _bounds("upper_bounds"),
                    {"name": "referenced_data_file", "type": ["null", "string"]},
                ],
            },
        },
    ],
}
_LISTED = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        {"name": "manifest_path", "type": "string"},
        {"name": "manifest_length", "type": "long"},
        {"name": "content", "type": "int"},
        {"name": "sequence_number", "type": "long"},
    ],
}
PATHS = 2147483546


class Entry(NamedTuple):
    """A file of a manifest, with bounds by field id."""

    path: str
    lower: Mapping[int, bytes] = MappingProxyType({})
    upper: Mapping[int, bytes] = MappingProxyType({})
    content: int = 0
    status: int = 1
    sequence: int | None = None
    format: str = "PARQUET"
    referenced: str | None = None


class Manifest(NamedTuple):
    """A manifest, and the number of the commit that added it."""

    entries: list[Entry]
    sequence: int = 1
    deletes: bool = False


def number(value: int) -> bytes:
    """Return a bound of a column of type long."""
    return value.to_bytes(8, "little", signed=True)


def _pairs(bounds: Mapping[int, bytes]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in bounds.items()]


def list_of(folder: Path, *manifests: Manifest) -> str:
    """Write manifests and their list. Returns the list's location."""
    listed = []
    for at, manifest in enumerate(manifests):
        path = folder / f"manifest-{at}.avro"
        records = [
            {
                "status": each.status,
                "sequence_number": each.sequence,
                "data_file": {
                    "content": each.content,
                    "file_path": each.path,
                    "file_format": each.format,
                    "lower_bounds": _pairs(each.lower),
                    "upper_bounds": _pairs(each.upper),
                    "referenced_data_file": each.referenced,
                },
            }
            for each in manifest.entries
        ]
        with path.open("wb") as opened:
            fastavro.writer(opened, fastavro.parse_schema(_ENTRY), records, codec="deflate")
        listed.append(
            {
                "manifest_path": path.as_uri(),
                "manifest_length": path.stat().st_size,
                "content": int(manifest.deletes),
                "sequence_number": manifest.sequence,
            }
        )
    target = folder / "list.avro"
    with target.open("wb") as opened:
        fastavro.writer(opened, fastavro.parse_schema(_LISTED), listed)
    return target.as_uri()
