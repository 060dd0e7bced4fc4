# SPDX-License-Identifier: Apache-2.0
"""What files of Lance tables say: the description of a table at a version, and the content of a directory of tables.

Pure. A worker process reads it.
"""

from __future__ import annotations

import msgspec


class LanceDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A table at one version. `fields` is the schema with Arrow's type names, `logical_fields` with Lance's."""

    version: int
    fields: msgspec.Raw
    logical_fields: msgspec.Raw
    schema_metadata: dict[str, str]
    metadata: dict[str, str]
    stats: dict[str, int]


class DirectoryNamespaceEntry(msgspec.Struct, frozen=True):
    """A namespace of a directory: its path and its properties."""

    path: tuple[str, ...]
    properties: dict[str, str]


class DirectoryTableEntry(msgspec.Struct, frozen=True):
    """A table of a directory; `declared` if its name is reserved and it has no data."""

    path: tuple[str, ...]
    location: str
    properties: dict[str, str]
    declared: bool


class DirectoryContents(msgspec.Struct, frozen=True):
    """The namespaces and tables of a directory, the result of `Contents`."""

    namespaces: list[DirectoryNamespaceEntry]
    tables: list[DirectoryTableEntry]
