# SPDX-License-Identifier: Apache-2.0
"""Logs of Delta tables: which files have versions, and the columns that a version states.

Pure. Source: the protocol of Delta's transaction log, "Delta Log Entries" and "Change Metadata".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import msgspec

LOG: Final = "_delta_log"
"""The directory of a table that has its log."""
_ENTRY: Final = re.compile(r"([0-9]{20})\.json")
_VERSION_MAX: Final = (1 << 63) - 1


class _Metadata(msgspec.Struct, rename="camel"):
    schema_string: str | None = None
    id: str | None = None


class _Action(msgspec.Struct, rename="camel"):
    meta_data: _Metadata | None = None


class DeltaMetadata(msgspec.Struct, frozen=True):
    """The id and the columns of a table, in Spark's JSON."""

    id: str | None
    columns: str | None


def log_versions(names: Iterable[str]) -> dict[int, str]:
    """Return the entries of a log among file names, as a mapping from version to name."""
    versions = {int(match[1]): name for name in names if (match := _ENTRY.fullmatch(name))}
    return {version: name for version, name in versions.items() if version <= _VERSION_MAX}


def metadata_of(entry: bytes) -> DeltaMetadata | None:
    """Return the metadata that an entry of a log states, the last one; None if it states none.

    Raises ValueError if the entry is not JSON lines.
    """
    result = None
    for line in entry.splitlines():
        if b'"metaData"' in line:
            action = msgspec.json.decode(line, type=_Action)
            if action.meta_data is not None:
                result = DeltaMetadata(action.meta_data.id, action.meta_data.schema_string)
    return result
