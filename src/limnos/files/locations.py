"""Locations as text: one normal form per place, and whether a place lies below a root. Pure.

May import `model` alone. Must not touch a file system: two spellings are the same place when their text says so, and
symbolic links are not followed.

A location is an absolute local path (`/x`, `file:/x`, `file:///x`) or a URL of an object store. What follows the scheme
is raw text, as Iceberg's Java and Python readers take it: percent signs are not decoded, spaces and Unicode are plain.
What some reader would take differently (dot segments, also percent-encoded; control characters; a query or fragment
on an object store) is refused, so that no spelling leads out of a root.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import msgspec

from limnos.model.errors import BadRequest, OutsideRoots

if TYPE_CHECKING:
    from collections.abc import Sequence

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
"""Schemes of object stores; those with one value on the right name the same objects."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_UNSAFE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")

SEGMENTS_MAX: Final = 64
BYTES_MAX: Final = 2000
"""What a new location may have: operating systems and object stores take little more, with names of files behind it."""

PARSED_MAX: Final = 16_384
"""Locations whose parsed form is remembered, which takes 1 KB each: it is a pure function, asked for at every load."""


class ParsedLocation(msgspec.Struct, frozen=True):
    """A parsed location: `segments` lie between the slashes below the authority (a bucket; empty for local paths)."""

    scheme: str
    authority: str
    segments: tuple[str, ...]

    def __str__(self) -> str:
        path = "/".join(self.segments)
        if self.scheme == LOCAL:
            return f"file:///{path}"
        return f"{self.scheme}://{self.authority}/{path}" if path else f"{self.scheme}://{self.authority}"


def is_local(location: str) -> bool:
    """Say whether a location is on this machine's file system, without parsing it."""
    return location.startswith(("file:", "/"))


@lru_cache(maxsize=PARSED_MAX)
def parse(location: str) -> ParsedLocation:
    """Take a location apart. Raises BadRequest when it is not absolute, ambiguous, or of an unknown scheme."""
    if _UNSAFE.search(location):
        raise _illegal_location(location, "it holds a control character or a lone surrogate")
    scheme, rest = _scheme_and_rest(location)
    if scheme == LOCAL:
        place = ParsedLocation(LOCAL, "", _local_segments(location, rest))
    else:
        place = _object_place(location, scheme, rest)
    may_have_dots = "/." in location or "%" in location  # the slow look is for few
    if may_have_dots and any(_has_dots(part) for part in (place.authority, *place.segments)):
        raise _illegal_location(location, "it has a '.' or '..' segment; write the path without")
    return place


def normalise(location: str) -> str:
    """Give the one spelling of a place: `file:///a/b`, `s3://bucket/key`, never with a slash at the end.

    Equal results are the same place. Raises BadRequest as `parse` does.
    """
    return str(parse(location))


@lru_cache(maxsize=PARSED_MAX)
def place_key(location: str) -> str:
    """Give the spelling under which the register of places has a location. Raises BadRequest as `parse` does.

    Two locations that some reader takes for the same place have the same key: beyond `normalise`, the case of a bucket or host, repeated
    slashes in an object's key, and percent signs are undone. A key is compared and never opened.
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
    """Say whether the percent signs of a path spell UTF-8 without a segment of dots."""
    try:
        return not any(part in (".", "..") for part in unquote(path, errors="strict").split("/"))
    except UnicodeDecodeError:
        return False


def is_within(location: str, roots: Sequence[str]) -> bool:
    """Say whether a location is one of the roots or below one, segment by segment; one that is refused is not.

    Raises BadRequest for a root that is not a location.
    """
    places = [parse(root) for root in roots]
    try:
        place = parse(location)
    except BadRequest:
        return False
    return any(_covers(root, place) for root in places)


def check_within(location: str, roots: Sequence[str]) -> None:
    """Raise OutsideRoots for a location that is not within the roots, BadRequest for one that is malformed."""
    parse(location)
    if not is_within(location, roots):
        raise OutsideRoots(
            f"Location {location} is outside the catalog's allowed roots ({', '.join(roots) or 'none'}). Choose a location "
            "below one of them, or have the catalog's owner add a prefix to its property 'allowed-locations'.",
            location=location,
        )


def check_size(location: str) -> None:
    """Refuse a new location that is too long or too deep. Raises BadRequest."""
    place = parse(location)
    if len(place.segments) > SEGMENTS_MAX:
        raise _illegal_location(
            location[:200], f"it has {len(place.segments)} levels, and at most {SEGMENTS_MAX} are taken"
        )
    if len(location.encode()) > BYTES_MAX:
        raise _illegal_location(location[:200], f"it is longer than {BYTES_MAX} bytes")


@lru_cache(maxsize=PARSED_MAX)
def allowed_roots(warehouse: str, allowed_locations: str | None) -> tuple[str, ...]:
    """Give a catalog's roots in normal form: its warehouse, then the comma-separated prefixes, without repetition.

    Raises BadRequest for an entry that is not a location.
    """
    listed = [entry.strip() for entry in (allowed_locations or "").split(",")]
    return tuple(dict.fromkeys(normalise(entry) for entry in [warehouse, *listed] if entry))


def _scheme_and_rest(location: str) -> tuple[str, str]:
    match = _SCHEME.fullmatch(location)
    if match is None:
        return LOCAL, location
    scheme = match[1].lower()
    if scheme == LOCAL:
        return LOCAL, match[2]
    if scheme not in OBJECT_STORES:
        raise _illegal_location(location, f"its scheme is not known; use one of file, {', '.join(OBJECT_STORES)}")
    return OBJECT_STORES[scheme], match[2]


def _local_segments(location: str, rest: str) -> tuple[str, ...]:
    """Take the path after `file:`, with or without `//`; repeated slashes are one, as for the operating system."""
    if location.startswith("//") or (rest.startswith("//") and not rest.startswith("///") and rest != "//"):
        raise _illegal_location(location, "it names a host; write local paths as file:///path")
    if not rest.startswith("/") or rest == "//":
        raise _illegal_location(location, "it is not absolute; write local paths as /path or file:///path")
    return tuple(part for part in rest.split("/") if part)


def _object_place(location: str, scheme: str, rest: str) -> ParsedLocation:
    """Take `//bucket/key` apart; repeated slashes inside a key are part of the key."""
    if "?" in rest or "#" in rest:
        raise _illegal_location(location, "'?' and '#' would start a query or fragment for some readers")
    authority, _, path = rest.removeprefix("//").rstrip("/").partition("/")
    if not rest.startswith("//") or not authority:
        raise _illegal_location(location, f"it names no bucket; write {scheme}://bucket/path")
    return ParsedLocation(scheme, authority, tuple(path.split("/")) if path else ())


def _has_dots(segment: str) -> bool:
    return any(part in (".", "..") for part in unquote(segment).split("/"))


def _covers(root: ParsedLocation, place: ParsedLocation) -> bool:
    same_store = (root.scheme, root.authority) == (place.scheme, place.authority)
    return same_store and place.segments[: len(root.segments)] == root.segments


def _illegal_location(location: str, reason: str) -> BadRequest:
    shown = location.encode("utf-8", "backslashreplace").decode("utf-8")
    return BadRequest(f"Illegal location {shown!r}: {reason}.")
