# SPDX-License-Identifier: Apache-2.0
"""Default values: exactly the forms that all readers read are stored."""

from __future__ import annotations

import pytest

from limnos.formats.iceberg.default_values import default_in_stored_form
from limnos.formats.iceberg.types import parse_primitive

GOOD: list[tuple[str, object]] = [
    ("boolean", True),
    ("int", 2**31 - 1),
    ("int", -(2**31)),
    ("long", 2**63 - 1),
    ("float", 1.5),
    ("double", -1e300),
    ("decimal(9, 2)", "1.50"),
    ("decimal(9, 2)", "-9999999.99"),
    ("decimal(9, 0)", "123456789"),
    ("decimal(2, 2)", "0.99"),
    ("date", "2024-02-29"),
    ("date", "0001-01-01"),
    ("time", "23:59:59.999999"),
    ("time", "10:11:12"),
    ("timestamp", "2024-01-01T10:11:12"),
    ("timestamp", "2024-01-01T10:11:12.123456"),
    ("timestamptz", "2024-01-01T10:11:12.1+00:00"),
    ("timestamp_ns", "2024-01-01T10:11:12.123456789"),
    ("timestamptz_ns", "1677-09-22T00:00:00+00:00"),
    ("string", ""),
    ("uuid", "9C12D441-03fe-4693-9a96-a0705ddf69c1"),
    ("fixed[2]", "0aFF"),
    ("binary", ""),
    ("binary", "00ff"),
]
BAD: list[tuple[str, object]] = [
    ("boolean", "true"),
    ("boolean", 1),
    ("int", 2**31),
    ("int", True),
    ("int", 5.0),
    ("long", 2**63),
    ("float", "1.5"),
    ("float", "NaN"),
    ("float", 1e300),
    ("float", float("inf")),
    ("double", float("nan")),
    ("double", 10**400),
    ("decimal(9, 2)", "1.5"),
    ("decimal(9, 2)", "7.125"),
    ("decimal(9, 2)", "abc"),
    ("decimal(9, 2)", "12345678.50"),
    ("decimal(9, 2)", "150E-2"),
    ("decimal(9, 2)", "+1.50"),
    ("decimal(9, 2)", 1.5),
    ("decimal(9, 0)", "1."),
    ("decimal(2, 2)", "1.00"),
    ("date", "2024-02-30"),
    ("date", "20240229"),
    ("date", "2024-W01-1"),
    ("date", "+12024-02-03"),
    ("date", "0000-01-01"),
    ("date", "2024-02-29\n"),
    ("time", "25:00:00"),
    ("time", "10:11"),
    ("time", "10:11:12Z"),
    ("time", "10:11:12.1234567"),
    ("timestamp", "2024-01-01 10:11:12"),
    ("timestamp", "2024-01-01T10:11"),
    ("timestamp", "2024-01-01T10:11:12+00:00"),
    ("timestamptz", "2024-01-01T10:11:12"),
    ("timestamptz", "2024-01-01T10:11:12+01:00"),
    ("timestamptz", "2024-01-01T10:11:12-00:00"),
    ("timestamp_ns", "9999-01-01T10:11:12"),
    ("timestamp_ns", "2024-02-30T10:11:12.123456789"),
    ("string", 5),
    ("uuid", "no"),
    ("uuid", "9c12d44103fe46939a96a0705ddf69c1"),
    ("uuid", "{9c12d441-03fe-4693-9a96-a0705ddf69c1}"),
    ("fixed[2]", "0a0b0c"),
    ("fixed[2]", "0a0"),
    ("binary", "zz"),
    ("binary", "0"),
    ("binary", "00 ff"),
]


@pytest.mark.parametrize("type_text,value", GOOD)
def test_default_that_all_readers_read_is_stored_as_sent(type_text: str, value: object) -> None:
    """Values at the borders of a type, in the form of the specification."""
    stored = default_in_stored_form(value, parse_primitive(type_text))

    assert (type(stored), stored) == (type(value), value)


@pytest.mark.parametrize("type_text,value", BAD)
def test_default_that_a_reader_cannot_read_is_refused(type_text: str, value: object) -> None:
    """Values beyond a type, and forms that Iceberg's Java library or PyIceberg cannot parse."""
    with pytest.raises(ValueError):  # noqa: PT011 - callers add the message
        default_in_stored_form(value, parse_primitive(type_text))


@pytest.mark.parametrize("type_text", ["timestamptz", "timestamptz_ns"])
def test_moment_in_utc_is_stored_with_its_offset(type_text: str) -> None:
    """Iceberg's Java library reads `Z` and writes `+00:00`, the one form of the specification."""
    stored = default_in_stored_form("2024-01-01T10:11:12Z", parse_primitive(type_text))

    assert stored == "2024-01-01T10:11:12+00:00"


@pytest.mark.parametrize("type_text", ["float", "double"])
def test_integer_as_a_fraction_is_stored_with_a_point(type_text: str) -> None:
    """JSON has one kind of number, but Iceberg's Java library reads no integer as the default of a fraction."""
    stored = default_in_stored_form(2, parse_primitive(type_text))

    assert repr(stored) == "2.0"
