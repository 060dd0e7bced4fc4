# SPDX-License-Identifier: Apache-2.0
"""Iceberg's primitive types: names, canonical form, and the format version that each needs.

Must not know schemas or tables. Source: Iceberg specification, "Primitive Types" and Appendix C.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from limnos.model.errors import BadRequest

NESTED = ("struct", "list", "map")

_PLAIN_V1 = frozenset(
    (
        "boolean",
        "int",
        "long",
        "float",
        "double",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "string",
        "uuid",
        "binary",
    )
)
_PLAIN_V3 = frozenset(("timestamp_ns", "timestamptz_ns", "unknown", "variant"))
_EDGES = frozenset(("spherical", "vincenty", "thomas", "andoyer", "karney"))
_KNOWN = ", ".join((*sorted(_PLAIN_V1 | _PLAIN_V3), "fixed[n]", "decimal(p, s)", "geometry(crs)", "geography(crs, a)"))

_FIXED = re.compile(r"fixed\[\s*([0-9]{1,9})\s*\]")
_DECIMAL = re.compile(r"decimal\(\s*([0-9]{1,3})\s*,\s*([0-9]{1,3})\s*\)")
_GEOMETRY = re.compile(r"geometry\s*(?:\(([^(),]*[^(),\s][^(),]*)\))?")
_GEOGRAPHY = re.compile(r"geography\s*(?:\(([^(),]*[^(),\s][^(),]*)(?:,\s*(\w+)\s*)?\))?")
_DECIMAL_DIGITS_MAX = 38
_TEXT_MAX = 255


class PrimitiveType(msgspec.Struct, frozen=True, gc=False):
    """A parsed primitive type: its family, its canonical form, and the first format version that has it."""

    family: str
    text: str
    version: int = 1


@lru_cache(maxsize=4096)
def parse_primitive(text: str) -> PrimitiveType:
    """Parse a primitive type such as `long` or `decimal(9, 2)`. Raises BadRequest for an unknown type."""
    if text in _PLAIN_V1:
        return PrimitiveType(text, text)
    if text in _PLAIN_V3:
        return PrimitiveType(text, text, 3)
    if len(text) > _TEXT_MAX:
        raise BadRequest(f"Unknown type '{text[:80]}...': a type name has at most {_TEXT_MAX} characters")
    primitive_type = _parse_fixed(text) or _decimal(text) or _geometry(text) or _geography(text)
    if primitive_type is None:
        raise BadRequest(f"Unknown type '{text[:80]}': use one of {_KNOWN}, or an object of type struct, list or map")
    return primitive_type


@lru_cache(maxsize=4096)
def plain_primitive(text: str) -> PrimitiveType | None:
    """Parse a primitive type that every format version has; None for any other string."""
    try:
        primitive_type = parse_primitive(text)
    except BadRequest:
        return None
    return primitive_type if primitive_type.version == 1 else None


def _parse_fixed(text: str) -> PrimitiveType | None:
    match = _FIXED.fullmatch(text)
    return PrimitiveType("fixed", f"fixed[{int(match[1])}]") if match else None


def _decimal(text: str) -> PrimitiveType | None:
    match = _DECIMAL.fullmatch(text)
    if match is None:
        return None
    precision, scale = int(match[1]), int(match[2])
    if not 1 <= precision <= _DECIMAL_DIGITS_MAX or scale > precision:
        raise BadRequest(
            f"Invalid type '{text}': a decimal has 1 to {_DECIMAL_DIGITS_MAX} digits and no more decimals than digits"
        )
    return PrimitiveType("decimal", f"decimal({precision}, {scale})")


def _geometry(text: str) -> PrimitiveType | None:
    match = _GEOMETRY.fullmatch(text)
    if match is None:
        return None
    return PrimitiveType("geometry", f"geometry({match[1].strip()})" if match[1] else "geometry", 3)


def _geography(text: str) -> PrimitiveType | None:
    match = _GEOGRAPHY.fullmatch(text)
    if match is None:
        return None
    if match[2] and match[2] not in _EDGES:
        raise BadRequest(f"Invalid type '{text[:80]}': the edge algorithm must be one of {', '.join(sorted(_EDGES))}")
    inside = ", ".join(part.strip() for part in match.groups() if part)
    return PrimitiveType("geography", f"geography({inside})" if inside else "geography", 3)
