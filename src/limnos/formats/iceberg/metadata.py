# SPDX-License-Identifier: Apache-2.0
"""The table metadata document as a whole: encoding, file names, properties, reduced forms, checks.

Must not know commits. Source: Iceberg specification, "Table Metadata"; Iceberg REST specification.
"""

from __future__ import annotations

import gzip
import re
import zlib

import msgspec

from limnos.formats.iceberg import partitioning
from limnos.formats.iceberg.encoded_rows import EncodedRows, with_encoded_rows
from limnos.formats.iceberg.json_types import (
    Json,
    as_object,
    as_objects,
    as_string,
    as_string_map,
    integer_at,
    object_at,
    objects_at,
    text_at,
)
from limnos.formats.iceberg.sorting import UNSORTED_ID
from limnos.model.errors import BadRequest

VERSIONS = (1, 2, 3)
DEFAULT_VERSION = 2
VERSIONS_TEXT = "v1, v2, v3"
MAIN = "main"

PREVIOUS_VERSIONS_MAX = "write.metadata.previous-versions-max"
PREVIOUS_VERSIONS_MAX_DEFAULT = 100
DELETE_AFTER_COMMIT = "write.metadata.delete-after-commit.enabled"
METADATA_PATH = "write.metadata.path"
DATA_PATHS = ("write.data.path", "write.object-storage.path", "write.folder-storage.path")
"""The properties that set another location than the table's for data files."""
_DATA_PATHS = frozenset(DATA_PATHS)
METADATA_CODEC = "write.metadata.compression-codec"

_GZIP_MAGIC = b"\x1f\x8b"
_UNPACKED_BYTES_MAX = 1 << 28
_VERSION_DIGITS_MAX = 9
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,9}")
_HERE = "Table metadata"


def decode(data: bytes) -> Json:
    """Parse a metadata file, gzip-compressed or not. Integers stay exact.

    Raises BadRequest if it is not a JSON object, or too large when decompressed.
    """
    try:
        value = msgspec.json.decode(unpack(data))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BadRequest(f"{_HERE} is not valid JSON: {error}") from None
    return as_object(value, _HERE)


def is_packed(data: bytes) -> bool:
    """Return whether a metadata file is gzip-compressed, so that its size is not that of its content."""
    return data.startswith(_GZIP_MAGIC)


def unpack(data: bytes, *, bytes_max: int = _UNPACKED_BYTES_MAX) -> bytes:
    """Return the JSON of a metadata file, gzip-compressed or not.

    Raises BadRequest if it cannot be unpacked, or has more than `bytes_max` bytes then.
    """
    if not is_packed(data):
        return data
    reader = zlib.decompressobj(wbits=31)
    try:
        unpacked_bytes = reader.decompress(data, bytes_max)
    except zlib.error as error:
        raise BadRequest(f"{_HERE} looks like gzip but cannot be unpacked: {error}") from None
    if not reader.eof:
        raise BadRequest(f"{_HERE} is a truncated gzip file, or holds more than {bytes_max} bytes")
    return unpacked_bytes


def pack(data: bytes) -> bytes:
    """Compress a metadata file with gzip. Equal input gives equal output (no timestamp)."""
    return gzip.compress(data, mtime=0)


def encode(metadata: Json) -> bytes:
    """Encode the document as JSON, with keys in their order, not compressed."""
    return msgspec.json.encode(with_encoded_rows(metadata))


def file_name(version: int, *, uuid: str, gzip: bool) -> str:
    """Return the name of a metadata file: `<version as five digits>-<uuid>.metadata.json`, or `.gz.metadata.json` if it
    is compressed.
    """
    return f"{version:05d}-{uuid}{'.gz' if gzip else ''}.metadata.json"


def version_of(location: str | None) -> int:
    """Return the version in a metadata file's name; 0 for another name; -1 for None, so that the next version is 0."""
    if location is None:
        return -1
    digits = location.rpartition("/")[2].partition("-")[0]
    usable = digits.isascii() and digits.isdigit() and len(digits) <= _VERSION_DIGITS_MAX
    return int(digits) if usable else 0


def strip_slash(location: str) -> str:
    """Return a location without trailing slashes; those of a bare `scheme://` are not removed."""
    if not location.endswith("/"):
        return location
    stripped = location.rstrip("/")  # in one step: a location may have megabytes of slashes
    if stripped.endswith(":") and len(location) - len(stripped) > 1:
        return f"{stripped}//"
    return stripped or "/"


def properties_of(metadata: Json) -> dict[str, str]:
    """Return the table's properties; an empty object when there are none."""
    result = metadata.get("properties")
    return {} if result is None else as_string_map(result, f"{_HERE}: field 'properties'")


def property_of(metadata: Json, key: str) -> str | None:
    """Return one property of the table; None if it is not set. Other properties are not checked."""
    result = metadata.get("properties")
    if result is None:
        return None
    value = (result if isinstance(result, dict) else as_object(result, f"{_HERE}: field 'properties'")).get(key)
    return value if value is None or isinstance(value, str) else as_string(value, f"{_HERE}: property '{key}'")


def parse_whole_number(text: str) -> int | None:
    """Parse a property's value as an integer of at most 9 digits; None for any other string."""
    return int(text) if _WHOLE_NUMBER.fullmatch(text.strip()) else None


def previous_versions_max(metadata: Json) -> int:
    """Return the length limit of the metadata log: `write.metadata.previous-versions-max`, by default 100, at least
    1.
    """
    text = property_of(metadata, PREVIOUS_VERSIONS_MAX)
    stated_number = None if text is None else parse_whole_number(text)
    return PREVIOUS_VERSIONS_MAX_DEFAULT if stated_number is None else max(1, stated_number)


def metadata_directory(metadata: Json) -> str:
    """Return the directory of metadata files: the property `write.metadata.path`, else `metadata` below the table's
    location.
    """
    stated_directory = property_of(metadata, METADATA_PATH)
    return (
        strip_slash(stated_directory)
        if stated_directory
        else f"{strip_slash(text_at(metadata, 'location', where=_HERE))}/metadata"
    )


def stated_path(metadata: Json) -> str | None:
    """Return the property `write.metadata.path` as set; None if it is missing."""
    return property_of(metadata, METADATA_PATH)


def outside_paths(metadata: Json) -> dict[str, str]:
    """Return the properties that set a location for the table's files outside of the table's location, with these
    locations.

    Locations are compared as strings.
    """
    properties = metadata.get("properties")
    if not properties or (isinstance(properties, dict) and _DATA_PATHS.isdisjoint(properties)):
        return {}
    paths_by_key = {key: property_of(metadata, key) for key in DATA_PATHS}
    below = f"{strip_slash(text_at(metadata, 'location', where=_HERE))}/"
    return {key: path for key, path in paths_by_key.items() if path and not f"{strip_slash(path)}/".startswith(below)}


def wants_gzip(metadata: Json) -> bool:
    """Return whether `write.metadata.compression-codec` is gzip."""
    return (property_of(metadata, METADATA_CODEC) or "none").lower() == "gzip"


def deletes_old_files(metadata: Json) -> bool:
    """Return whether `write.metadata.delete-after-commit.enabled` is set: files removed from the metadata log are then
    deleted.
    """
    return (property_of(metadata, DELETE_AFTER_COMMIT) or "false").lower() == "true"


def rows(metadata: Json, key: str) -> list[Json]:
    """Return a list of objects in the document (not a copy); empty if missing or null."""
    result = metadata.get(key)
    if result is None:
        return []
    if type(result) is EncodedRows:  # its entries were checked when it was built
        return result
    if isinstance(result, list):  # every commit calls this: the message is only built for an error
        for item in result:
            if not isinstance(item, dict):
                break
        else:
            return result
    return as_objects(result, f"{_HERE}: field '{key}'")


def references(metadata: Json) -> dict[str, Json]:
    """Return the branches and tags by name. A document without references has only `main`, at the current snapshot."""
    result = metadata.get("refs")
    if result is None:
        current = current_snapshot_id(metadata)
        return {} if current is None else {MAIN: {"snapshot-id": current, "type": "branch"}}
    refs = as_object(result, f"{_HERE}: field 'refs'")
    return {name: as_object(ref, f"{_HERE}: reference '{name}'") for name, ref in refs.items()}


def current_snapshot_id(metadata: Json) -> int | None:
    """Return the current snapshot id; None if the document has none (missing, null or -1)."""
    if metadata.get("current-snapshot-id") is None:
        return None
    integer = integer_at(metadata, "current-snapshot-id", where=_HERE)
    return None if integer < 0 else integer


def current_schema(metadata: Json) -> Json:
    """Return the current schema; an empty object if there is none. Documents of version 1 may have it only in
    `schema`.
    """
    target = metadata.get("current-schema-id")
    result = next((one for one in rows(metadata, "schemas") if one.get("schema-id") == target), metadata.get("schema"))
    return {} if result is None else as_object(result, f"{_HERE}: field 'schema'")


def no_snapshot(version: int) -> int | None:
    """Return the value of `current-snapshot-id` for a table without snapshots, by format version."""
    return None if version >= 3 else -1


def refs_only(metadata: Json) -> Json:
    """Return the document with only the snapshots that references point to (`snapshots=refs`).

    Statistics of the other snapshots are removed, too; logs, location and times are unchanged. The given document is
    not modified.
    """
    entries = {ref.get("snapshot-id") for ref in references(metadata).values()}
    reduced = dict(metadata)
    for key in ("snapshots", "statistics", "partition-statistics"):
        if key in metadata:
            reduced[key] = [row for row in rows(metadata, key) if row.get("snapshot-id") in entries]
    return reduced


def with_current_shape(metadata: Json) -> Json:
    """Return the document with the lists added that old files of format version 1 lack, such as `schemas`; the same
    object if it lacks none.
    """
    legacy = metadata.get("format-version") == 1
    missing = legacy and not _LISTS_V1.issubset(metadata)
    if not missing and ("refs" in metadata or current_snapshot_id(metadata) is None):
        return metadata
    filled = _fill_lists(metadata) if missing else dict(metadata)
    if current_snapshot_id(metadata) is not None:
        filled.setdefault("refs", references(metadata))
    return filled


_LISTS_V1 = {"schemas", "current-schema-id", "partition-specs", "default-spec-id", "last-partition-id"} | {
    "sort-orders",
    "default-sort-order-id",
}


def _fill_lists(metadata: Json) -> Json:
    filled = dict(metadata)
    if "schemas" not in filled:
        schema = object_at(metadata, "schema", where=_HERE)
        filled["schemas"] = [{**schema, "schema-id": schema.get("schema-id", 0)}]
        filled["current-schema-id"] = schema.get("schema-id", 0)
    if "partition-specs" not in filled:
        fields = _number_fields(objects_at(metadata, "partition-spec", where=_HERE))
        filled["partition-specs"] = [{"spec-id": 0, "fields": fields}]
        filled["default-spec-id"] = 0
    if "last-partition-id" not in filled:
        specs = [objects_at(spec, "fields", where=_HERE) for spec in rows(filled, "partition-specs")]
        filled["last-partition-id"] = max(map(partitioning.highest_field_id, specs), default=999)
    filled.setdefault("current-schema-id", 0)
    filled.setdefault("default-spec-id", 0)
    filled.setdefault("sort-orders", [{"order-id": UNSORTED_ID, "fields": []}])
    filled.setdefault("default-sort-order-id", UNSORTED_ID)
    return filled


def _number_fields(fields: list[Json]) -> list[Json]:
    first = partitioning.FIRST_FIELD_ID
    return [{**one, "field-id": one.get("field-id", first + index)} for index, one in enumerate(fields)]


def with_uuid(metadata: Json, uuid: str) -> Json:
    """Return the document with its uuid, or with `uuid` if it has none.

    Files of format version 1 may lack the uuid, and clients send the uuid that they have read as a requirement.
    """
    return metadata if metadata.get("table-uuid") is not None else {**metadata, "table-uuid": uuid}


def keeps_words(before: Json, after: Json) -> bool:
    """Return whether a commit changes neither the current schema nor the comment, so that the search index needs no
    update.
    """
    number = after.get("current-schema-id")
    if number is None or before.get("current-schema-id") != number:
        return False
    old, new = before.get("properties"), after.get("properties")
    old_comment = old.get("comment") if isinstance(old, dict) else None
    return bool(old_comment == (new.get("comment") if isinstance(new, dict) else None))
