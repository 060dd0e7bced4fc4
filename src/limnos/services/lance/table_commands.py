# SPDX-License-Identifier: Apache-2.0
"""The command that creates a Lance table."""

from __future__ import annotations

import msgspec

from limnos.model.entities import MetadataDocument, Node
from limnos.model.lance import LanceVersion
from limnos.model.records import TableRecord


class LanceCreate(msgspec.Struct, frozen=True, kw_only=True):
    """The command to create a table at a location; with `instead`, replace another table, whose files are kept."""

    parent: Node
    name: str
    space: str
    document: MetadataDocument
    record: TableRecord
    owner_id: int | None
    instead: Node | None = None
    versions: tuple[LanceVersion, ...] = ()
    """The existing versions of a managed table's files."""
    mark: int | None = None
    """The cleanup task that would delete the table's files if its creation failed."""
    had_files: bool = False
    """Whether its location has files of nobody, for which clients get no credentials."""
