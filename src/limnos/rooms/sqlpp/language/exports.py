# SPDX-License-Identifier: Apache-2.0
"""Formats of exported files: the checked options of COPY TO, in the form that an engine receives.

Must not know the locations of files. Options have AsterixDB's names, limits and errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from limnos.rooms.sqlpp.language.errors import SqlppError, compilation
from limnos.rooms.sqlpp.language.stored import BUILT_IN
from limnos.rooms.sqlpp.language.tree import ArrayType, BagType, NamedType, Option, RecordType, TypeExpression

FORMATS: Final[Mapping[str, tuple[str, ...]]] = {
    "json": ("gzip",),
    "adm": ("gzip",),
    "csv": ("gzip",),
    "tsv": ("gzip",),
    "parquet": ("gzip", "snappy", "zstd"),
}
"""The formats, each with its compression schemes."""
DELIMITED: Final = ("csv", "tsv")
OBJECTS_LEAST: Final = 1_000
OBJECTS_USUAL: Final = 10_000
PARQUET_OBJECTS_MAX: Final = 1_000_000
"""The maximum number of objects in one Parquet file: they are buffered in memory until the file is written."""
FILE_BYTES_LEAST: Final = 5 << 20
FILE_BYTES_MOST: Final = 5 << 30
DATE_FORMATS: Final = ("datetime", "date", "time")
_UNITS: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)b", re.IGNORECASE)
_CHARACTERS: Final = {"quote": 1217, "delimiter": 3049, "escape": 1219, "record-delimiter": 1218}
_NAMES: Final = {"\\t": "\t", "tab": "\t", "\\n": "\n", "\\r\\n": "\r\n"}
_COMMON: Final = frozenset({"format", "compression", "gzipcompressionlevel", "max-objects-per-file"})
_OF_FORMAT: Final[Mapping[str, frozenset[str]]] = {
    "json": frozenset({"max-file-size"}),
    "adm": frozenset({"max-file-size"}),
    "csv": frozenset({"max-file-size", *_CHARACTERS, "header", "null", "force-quote", "empty-string-as-null"}),
    "tsv": frozenset({"max-file-size", *_CHARACTERS, "header", "null", "force-quote", "empty-string-as-null"}),
    "parquet": frozenset({"row-group-size", "page-size"}),
}


class ExportFormat(Struct, frozen=True, kw_only=True):
    """The format of exported files.

    Args:
        name: A key of `FORMATS`.
        compression: The compression scheme, empty for none.
        level: The compression level of gzip.
        objects_max: The largest count of objects in one file.
        bytes_max: The size at which a file ends, 0 for no limit.
        type: The text of the record type of TYPE or AS; empty if there is none.
        options: The other options, by their names.
        sizes: `row-group-size` and `page-size` in bytes, if they are set.
        dates: The patterns of `datetime`, `date` and `time`.
        is_partitioned: Whether each value is an object with the parts of its directory (`path`) and the object (`of`).
    """

    name: str
    compression: str = ""
    level: int = 6
    objects_max: int = OBJECTS_USUAL
    bytes_max: int = 0
    type: str = ""
    options: dict[str, str] = {}
    sizes: dict[str, int] = {}
    dates: dict[str, str] = {}
    is_partitioned: bool = False

    @property
    def ending(self) -> str:
        """The file name extension."""
        packed = ".gz" if self.compression == "gzip" and self.name != "parquet" else ""
        return f".{self.name}{packed}"


def export_format(options: Iterable[Option], dates: Iterable[Option], *, has_type: bool) -> ExportFormat:
    """Return the format that the options of COPY TO specify.

    Raises SqlppError for an unknown option, an invalid value, or a delimited format without a record type.
    """
    values = {each.name.lower(): each.value for each in options}
    name = values.get("format", "").lower()
    if name not in FORMATS:
        format_names = ", ".join(sorted(FORMATS))
        raise SqlppError(
            1189, f"Unsupported writing format '{values.get('format', '')}'. Supported formats: [{format_names}]"
        )
    unknown = sorted(values.keys() - _COMMON - _OF_FORMAT[name])
    if unknown:
        raise compilation(f"COPY TO has no option {unknown[0]} for the format {name}")
    compression = values.get("compression", "").lower()
    if compression not in ("", "none", *FORMATS[name]):
        format_names = ", ".join(FORMATS[name])
        raise SqlppError(
            1202, f"Unsupported compression scheme {compression}. Supported schemes for {name} are [{format_names}]"
        )
    if name in DELIMITED and not has_type:
        raise compilation(f"TYPE/AS Expression is required for {name} format")
    level = _integer(values, "gzipcompressionlevel", otherwise=6)
    if not 1 <= level <= 9:
        raise compilation(f"gzipCompressionLevel must be between 1 and 9, not {level}")
    objects_max = _integer(values, "max-objects-per-file", otherwise=OBJECTS_USUAL)
    if objects_max < OBJECTS_LEAST:
        raise SqlppError(
            1197, f"Minimum value allowed for 'max-objects-per-file' is {OBJECTS_LEAST}. Found {objects_max}"
        )
    if name == "parquet" and objects_max > PARQUET_OBJECTS_MAX:
        raise SqlppError(
            1209, f"Maximum value allowed for 'max-objects-per-file' is {PARQUET_OBJECTS_MAX}. Found {objects_max}"
        )
    sizes = {each: _size(values, each) for each in ("row-group-size", "page-size")}
    rest = {key: value for key, value in values.items() if key in _OF_FORMAT[name]}
    _check_delimited(rest)
    return ExportFormat(
        name=name,
        compression="" if compression == "none" else compression,
        level=level,
        objects_max=objects_max,
        bytes_max=_file_bytes(values),
        options=rest,
        sizes={each: size for each, size in sizes.items() if size},
        dates={each.name: each.value for each in dates if each.name in DATE_FORMATS},
    )


def check_type(name: str, type_: RecordType) -> None:
    """Check that a format can represent all fields of a type. Raises SqlppError for a field that it cannot."""
    for field in type_.fields:
        _check_field(name, field.type)


def _check_field(name: str, type_: TypeExpression) -> None:
    if name in DELIMITED and not isinstance(type_, NamedType):
        raise SqlppError(1207, f"'{_word(type_)}' type not supported in {name} format")
    if isinstance(type_, NamedType) and name == "parquet":
        scalar = BUILT_IN.get(type_.name.last.lower())
        if scalar in ("binary", "interval", "point", "point3d", "line", "rectangle", "circle", "polygon", "geometry"):
            raise SqlppError(1204, f"'{scalar}' type not supported in parquet format")
    if isinstance(type_, (ArrayType, BagType)):
        _check_field(name, type_.item)
    if isinstance(type_, RecordType):
        for field in type_.fields:
            _check_field(name, field.type)


def _word(type_: TypeExpression) -> str:
    return "object" if isinstance(type_, RecordType) else "array" if isinstance(type_, ArrayType) else "multiset"


def _check_delimited(values: Mapping[str, str]) -> None:
    for name, number in _CHARACTERS.items():
        value = option_character(values, name, otherwise="\n")
        if len(value) != 1 and value != "\r\n":
            raise SqlppError(
                number, f"'{value}' is not a valid {name}. The length of a {name.replace('-', ' ')} should be 1"
            )
    for name in ("header", "force-quote", "empty-string-as-null"):
        if values.get(name, "false").lower() not in ("true", "false"):
            raise SqlppError(
                1218 if name == "force-quote" else 1079,
                f"'{values[name]}' is not a valid {name}: it must be true or false",
            )


def option_character(values: Mapping[str, str], name: str, *, otherwise: str) -> str:
    """Return an option whose value should be one character, such as a delimiter; escapes of tab and newline are
    resolved.
    """
    value = values.get(name, otherwise)
    return _NAMES.get(value.lower(), value)


def _integer(values: Mapping[str, str], name: str, *, otherwise: int) -> int:
    text = values.get(name)
    if text is None:
        return otherwise
    if not re.fullmatch(r"\d{1,18}", text):
        raise SqlppError(39, f"Expected integer value, got {text}")
    return int(text)


def _size(values: Mapping[str, str], name: str) -> int:
    """Return the value of a size option in bytes; 0 if it is not set. Raises SqlppError for an invalid size."""
    text = values.get(name)
    if text is None:
        return 0
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise SqlppError(
            1206,
            f"Storage units expected for the field '{name}' (e.g., 0.1KB, 100kb, 1mb, 3MB, 8.5GB ...). Provided"
            f" '{text}'",
        )
    return int(float(match[1]) * (1 << _UNITS[match[2].lower()]))


def _file_bytes(values: Mapping[str, str]) -> int:
    size = _size(values, "max-file-size")
    if "max-file-size" in values and size < FILE_BYTES_LEAST:
        raise SqlppError(1197, f"Minimum value allowed for 'max-file-size' is 5 MiB. Found {values['max-file-size']}")
    if size > FILE_BYTES_MOST:
        raise SqlppError(1209, f"Maximum value allowed for 'max-file-size' is 5 GiB. Found {values['max-file-size']}")
    return size
