# SPDX-License-Identifier: Apache-2.0
"""Conversion of columns of Lance tables to Gravitino's types."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pytest

from limnos.formats.gravitino.lance_columns import columns_of
from limnos.rooms.lance.sources.schemas import logical_fields_of

EXTERNAL = "external"


@pytest.mark.parametrize(
    "kind, type_name",
    [
        (pa.bool_(), "boolean"),
        (pa.int8(), "byte"),
        (pa.uint64(), "long unsigned"),
        (pa.float16(), "float"),
        (pa.float64(), "double"),
        (pa.large_string(), "string"),
        (pa.binary(16), "fixed(16)"),
        (pa.decimal128(10, 2), "decimal(10,2)"),
        (pa.date32(), "date"),
        (pa.time64("us"), "time(6)"),
        (pa.timestamp("ms"), "timestamp(3)"),
        (pa.timestamp("us", "UTC"), "timestamp_tz(6)"),
        (pa.timestamp("us", "+02:00"), "timestamp_tz(6)"),
        (pa.dictionary(pa.int32(), pa.timestamp("us", "UTC")), "timestamp_tz(6)"),
        (pa.list_(pa.float32(), 256), {"type": EXTERNAL, "catalogString": "fixed_size_list:float:256"}),
        (pa.decimal256(50, 2), {"type": EXTERNAL, "catalogString": "decimal:256:50:2"}),
        (pa.duration("us"), {"type": EXTERNAL, "catalogString": "duration:us"}),
        (
            pa.list_(pa.field("item", pa.int32(), nullable=False)),
            {"type": "list", "containsNull": False, "elementType": "integer"},
        ),
        (
            pa.struct([pa.field("a", pa.string()), pa.field("b", pa.list_(pa.int64()), nullable=False)]),
            {
                "type": "struct",
                "fields": [
                    {"name": "a", "type": "string", "nullable": True},
                    {
                        "name": "b",
                        "nullable": False,
                        "type": {"type": "list", "containsNull": True, "elementType": "long"},
                    },
                ],
            },
        ),
    ],
)
def test_types_have_gravitino_or_lance_names(kind: pa.DataType, type_name: object) -> None:
    """A type has Gravitino's name if Gravitino has one, else Lance's name."""
    fields = msgspec.json.encode(logical_fields_of(pa.schema([pa.field("c", kind, nullable=False)])))

    assert columns_of(fields) == [{"name": "c", "type": type_name, "nullable": False, "autoIncrement": False}]
