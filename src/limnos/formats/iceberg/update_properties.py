# SPDX-License-Identifier: Apache-2.0
"""Updates of table properties: set and remove.

Reserved properties, such as `format-version`, are executed or ignored, but never stored. Must not know other updates.
"""

from __future__ import annotations

from limnos.formats.iceberg.class_properties import refuse_class_properties
from limnos.formats.iceberg.draft import MetadataDraft
from limnos.formats.iceberg.json_types import Json, preview_value, string_map_at, strings_at
from limnos.formats.iceberg.metadata import METADATA_CODEC, PREVIOUS_VERSIONS_MAX, parse_whole_number
from limnos.formats.iceberg.name_mappings import NAME_MAPPING, check_name_mapping
from limnos.formats.iceberg.update_table import upgrade_to
from limnos.model.errors import BadRequest

FORMAT_VERSION = "format-version"
_DERIVED = ("current-snapshot-id", "current-snapshot-summary", "current-snapshot-timestamp-ms", "current-schema")
RESERVED = frozenset(
    (FORMAT_VERSION, "uuid", "snapshot-count", *_DERIVED, "default-partition-spec", "default-sort-order")
)
_CODECS = ("none", "gzip")


def persistent(properties: dict[str, str]) -> dict[str, str]:
    """Return the properties to store, without reserved properties.

    Raises BadRequest if a property that the server uses has an invalid value, or if one names a class.
    """
    refuse_class_properties(properties)
    entries = dict(properties)
    if not RESERVED.isdisjoint(entries):
        entries = {key: value for key, value in entries.items() if key not in RESERVED}
    count = entries.get(PREVIOUS_VERSIONS_MAX)
    if count is not None and parse_whole_number(count) is None:
        raise BadRequest(f"Property '{PREVIOUS_VERSIONS_MAX}' must be a whole number, not '{preview_value(count)}'")
    check_codec(entries)
    if NAME_MAPPING in entries:
        check_name_mapping(entries[NAME_MAPPING])
    return entries


def check_codec(properties: dict[str, str]) -> None:
    """Check the compression of metadata files. Raises BadRequest for an unsupported codec."""
    codec = properties.get(METADATA_CODEC)
    if codec is not None and codec.lower() not in _CODECS:
        raise BadRequest(f"Property '{METADATA_CODEC}' must be {' or '.join(_CODECS)}, not '{preview_value(codec)}'")


def format_version(properties: dict[str, str]) -> int | None:
    """Return the format version that a property requests; None if the property is absent.

    Raises BadRequest if its value is not an integer.
    """
    text = properties.get(FORMAT_VERSION)
    if text is None:
        return None
    version = parse_whole_number(text)
    if version is None:
        raise BadRequest(f"Property '{FORMAT_VERSION}' must be 1, 2 or 3, not '{preview_value(text)}'")
    return version


def set_properties(draft: MetadataDraft, update: Json) -> None:
    """Set properties. The key `updated` of early clients is accepted for `updates`."""
    key = "updated" if "updates" not in update and "updated" in update else "updates"
    string_map = string_map_at(update, key, where="set-properties")
    entries = persistent(string_map)
    if entries:
        draft.edit_map("properties").update(entries)
    version = format_version(string_map)
    if version is not None:
        upgrade_to(draft, version)


def remove_properties(draft: MetadataDraft, update: Json) -> None:
    """Remove properties; missing ones are ignored. The key `removed` of early clients is accepted for `removals`."""
    key = "removed" if "removals" not in update and "removed" in update else "removals"
    names = [name for name in strings_at(update, key, where="remove-properties") if name in draft.map("properties")]
    for name in names:
        draft.edit_map("properties").pop(name, None)
