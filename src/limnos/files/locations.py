# SPDX-License-Identifier: Apache-2.0
"""Location strings: their normal form, and whether a location lies below a root. Pure.

Must not access a file system: locations are compared as strings, and symbolic links are not followed.

A location is an absolute local path (`/x`, `file:/x`, `file:///x`) or a URL of an object store. The part after the
scheme is raw, as Iceberg's Java and Python readers interpret it: percent signs are not decoded, and spaces and Unicode
are not escaped. Spellings that readers interpret differently are refused, so that no spelling leads out of a root.
These are dot segments (also percent-encoded), control characters, and a query or fragment on an object store.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

import msgspec

from limnos.model.errors import BadRequest, OutsideRoots

LOCAL = "file"

OBJECT_STORES = {
    "s3": "s3",
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gs",
    "gcs": "gs",
    "abfs": "abfs",
    "abfss": "abfs",
    "oss": "oss",
}
"""Schemes of object stores. Schemes with the same value name the same objects."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_UNSAFE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")

SEGMENTS_MAX: Final = 64
BYTES_MAX: Final = 2000
"""Limits of a new location. Operating systems and object stores allow little more, and file names are appended to it.

"""

PARSED_MAX: Final = 16_384
"""The number of parsed locations in the cache, at about 1 KB each. Locations are parsed at every load of a table."""


class ParsedLocation(msgspec.Struct, frozen=True):
    """A parsed location: scheme, authority (a bucket; empty for local paths) and the parts of the path."""

    scheme: str
    authority: str
    segments: tuple[str, ...]

    def __str__(self) -> str:
        path = "/".join(self.segments)
        if self.scheme == LOCAL:
            return f"file:///{path}"
        return f"{self.scheme}://{self.authority}/{path}" if path else f"{self.scheme}://{self.authority}"


def is_local(location: str) -> bool:
    """Return whether a location is on this machine's file system, without parsing it."""
    return location.startswith(("file:", "/"))


@lru_cache(maxsize=PARSED_MAX)
def parse(location: str) -> ParsedLocation:
    """Parse a location. Raises BadRequest if it is relative or ambiguous, or if its scheme is unknown."""
    if _UNSAFE.search(location):
        raise _illegal_location(location, "it contains a control character or a lone surrogate")
    scheme, rest = _scheme_and_rest(location)
    if scheme == LOCAL:
        place = ParsedLocation(LOCAL, "", _local_segments(location, rest))
    else:
        place = _object_place(location, scheme, rest)
    may_have_dots = "/." in location or "%" in location  # only these need the slow check
    if may_have_dots and any(_has_dots(part) for part in (place.authority, *place.segments)):
        raise _illegal_location(location, "it has a '.' or '..' segment; write the path without")
    return place


def normalise(location: str) -> str:
    """Return the normal form of a location: `file:///a/b`, `s3://bucket/key`, without a slash at the end.

    Equal results are the same storage location. Raises BadRequest as `parse` does.
    """
    return str(parse(location))


@lru_cache(maxsize=PARSED_MAX)
def place_key(location: str) -> str:
    """Return the key of a location in the register of storage locations. Raises BadRequest as `parse` does.

    Two locations that any reader may treat as the same have the same key. Beyond `normalise`, buckets and hosts are in
    lower case, repeated slashes in an object's key are collapsed, and percent signs are decoded. A key is only
    compared, never opened.
    """
    normal = normalise(location)
    scheme, _, rest = normal.partition("://")
    authority, slash, path = rest.partition("/")
    if "%" in path:
        decoded = unquote(path, errors="strict") if _decodes(path) else path
        path = path if _UNSAFE.search(decoded) else decoded
    if "//" in path or path.endswith("/") or path.startswith("/"):
        path = "/".join(part for part in path.split("/") if part)
    return (
        f"{scheme}://{authority.lower()}{slash}{path}" if path or scheme == LOCAL else f"{scheme}://{authority.lower()}"
    )


def _decodes(path: str) -> bool:
    """Return whether the percent signs of a path decode to UTF-8 without dot segments."""
    try:
        return not any(part in (".", "..") for part in unquote(path, errors="strict").split("/"))
    except UnicodeDecodeError:
        return False


def is_within(location: str, roots: Sequence[str]) -> bool:
    """Return whether a location equals a root or lies below a root, compared segment by segment.

    False for a malformed location.

    Raises BadRequest for a malformed root.
    """
    parsed_roots = [parse(root) for root in roots]
    try:
        parsed_location = parse(location)
    except BadRequest:
        return False
    # A loop without calls: each request checks some locations, and each table of a bulk job some ten.
    for root in parsed_roots:
        if (
            root.scheme == parsed_location.scheme
            and root.authority == parsed_location.authority
            and root.segments == parsed_location.segments[: len(root.segments)]
        ):
            return True
    return False


def check_within(location: str, roots: Sequence[str]) -> None:
    """Check that a location is within the roots.

    Raises OutsideRoots if it is not, BadRequest if it is malformed.
    """
    parse(location)
    if not is_within(location, roots):
        raise OutsideRoots(
            f"Location {location} is outside the catalog's allowed roots ({', '.join(roots) or 'none'}). Choose a"
            " location below one of them, or have the catalog's owner add a prefix to its property"
            " 'allowed-locations'.",
            location=location,
        )


def check_size(location: str) -> None:
    """Raise BadRequest if a new location has too many bytes or path segments, or is malformed."""
    parsed_location = parse(location)
    if len(parsed_location.segments) > SEGMENTS_MAX:
        raise _illegal_location(
            location[:200], f"it has {len(parsed_location.segments)} levels, and at most {SEGMENTS_MAX} are allowed"
        )
    if len(location.encode()) > BYTES_MAX:
        raise _illegal_location(location[:200], f"it is longer than {BYTES_MAX} bytes")


@lru_cache(maxsize=PARSED_MAX)
def allowed_roots(warehouse: str, allowed_locations: str | None) -> tuple[str, ...]:
    """Return a catalog's roots in normal form: its warehouse, then the comma-separated prefixes, without repetition.

    Raises BadRequest for an entry that is not a location.
    """
    entries = [entry.strip() for entry in (allowed_locations or "").split(",")]
    return tuple(dict.fromkeys(normalise(entry) for entry in [warehouse, *entries] if entry))


def _scheme_and_rest(location: str) -> tuple[str, str]:
    match = _SCHEME.fullmatch(location)
    if match is None:
        return LOCAL, location
    scheme = match[1].lower()
    if scheme == LOCAL:
        return LOCAL, match[2]
    if scheme not in OBJECT_STORES:
        raise _illegal_location(location, f"its scheme is unknown; use one of file, {', '.join(OBJECT_STORES)}")
    return OBJECT_STORES[scheme], match[2]


def _local_segments(location: str, rest: str) -> tuple[str, ...]:
    """Split the path after `file:`, with or without `//`.

    Repeated slashes are collapsed, as by the operating system. Raises BadRequest for a relative path or a host.
    """
    if location.startswith("//") or (rest.startswith("//") and not rest.startswith("///") and rest != "//"):
        raise _illegal_location(location, "it names a host; write local paths as file:///path")
    if not rest.startswith("/") or rest == "//":
        raise _illegal_location(location, "it is not absolute; write local paths as /path or file:///path")
    return tuple(part for part in rest.split("/") if part)


def _object_place(location: str, scheme: str, rest: str) -> ParsedLocation:
    """Parse `//bucket/key`. Repeated slashes inside a key are part of the key.

    Raises BadRequest for a query or fragment, and for a missing bucket.
    """
    if "?" in rest or "#" in rest:
        raise _illegal_location(location, "'?' and '#' would start a query or fragment for some readers")
    authority, _, path = rest.removeprefix("//").rstrip("/").partition("/")
    if not rest.startswith("//") or not authority:
        raise _illegal_location(location, f"it names no bucket; write {scheme}://bucket/path")
    return ParsedLocation(scheme, authority, tuple(path.split("/")) if path else ())


def _has_dots(segment: str) -> bool:
    return any(part in (".", "..") for part in unquote(segment).split("/"))


def _illegal_location(location: str, reason: str) -> BadRequest:
    text = location.encode("utf-8", "backslashreplace").decode("utf-8")
    return BadRequest(f"Illegal location {text!r}: {reason}.")


_FIRST_LENGTH: Final = len("file:///")


def key_of(location: str) -> str:
    """Return the register key of a location in normal form.

    The parent's key is cached, since most locations are a new directory in the same parent.
    """
    parent, _, name = location.rpartition("/")
    if name.isalnum() and name.isascii() and len(parent) > _FIRST_LENGTH and not parent.endswith("/"):
        return f"{place_key(parent)}/{name}"
    return place_key(location)
