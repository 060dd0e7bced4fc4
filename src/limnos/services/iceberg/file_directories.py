# SPDX-License-Identifier: Apache-2.0
"""File directories of a table: data files and metadata files lie in separate directories.

Pure. Must not know the register of locations: that a directory belongs to the table is checked elsewhere (`tables`,
0027). Clean-ups and policies of object stores tell metadata from rows by the directory (0156).
"""

from __future__ import annotations

from typing import Final, cast

from limnos.files import place_key
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.iceberg.json_types import Json
from limnos.model.errors import BadRequest
from limnos.services.request.location_rules import relation_of

_KEYS: Final = (iceberg_metadata.METADATA_PATH, *iceberg_metadata.DATA_PATHS)
"""The properties that set directories of a table."""


def check_directories(metadata: Json, *, before: Json | None) -> None:
    """Check that no directory of data files of a table is at, above or below its directory of metadata files.

    A table that has such directories keeps them until a commit changes one of them. Raises BadRequest.

    Args:
        metadata: The new metadata, or an outline of it.
        before: The metadata that the commit was built on; None for a new table.
    """
    properties = metadata.get("properties")
    if isinstance(properties, dict) and properties.keys().isdisjoint(_KEYS):
        return  # most tables set no directory
    stated_directories = _stated_directories(metadata)
    if len(stated_directories) == 1 or (before is not None and stated_directories == _stated_directories(before)):
        return
    directory = place_key(iceberg_metadata.metadata_directory(metadata))
    default = f"{iceberg_metadata.strip_slash(stated_directories['location'])}/data"
    if iceberg_metadata.METADATA_PATH in stated_directories and relation_of(place_key(default), directory) is not None:
        raise _mixed_error(iceberg_metadata.METADATA_PATH, stated_directories[iceberg_metadata.METADATA_PATH])
    for key in iceberg_metadata.DATA_PATHS:
        if key in stated_directories and relation_of(place_key(stated_directories[key]), directory) is not None:
            raise _mixed_error(key, stated_directories[key])


def _mixed_error(key: str, path: str) -> BadRequest:
    return BadRequest(
        f"Property '{key}' is {path}: files of data and metadata would lie in one directory, or in one below the other."
        " Choose another directory, or remove the property"
    )


def _stated_directories(metadata: Json) -> dict[str, str]:
    """Return the table's location, and its properties that set directories, by name."""
    paths = {key: iceberg_metadata.property_of(metadata, key) for key in _KEYS}
    return {"location": cast("str", metadata["location"]), **{key: path for key, path in paths.items() if path}}
