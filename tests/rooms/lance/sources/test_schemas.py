# SPDX-License-Identifier: Apache-2.0
"""Arrow schemas as JSON: type names of Lance REST, and those of LanceDB's remote clients."""

from __future__ import annotations

import pyarrow as pa
import pytest

from limnos.rooms.lance.sources.schemas import fields_of, logical_fields_of

FLOAT = {"name": "item", "nullable": True, "type": {"type": "float32"}}


@pytest.mark.parametrize(
    "kind,arrow,logical",
    [
        (pa.string(), {"type": "utf8"}, {"type": "string"}),
        (pa.large_string(), {"type": "large_utf8"}, {"type": "large_string"}),
        (pa.bool_(), {"type": "bool"}, {"type": "bool"}),
        (pa.float16(), {"type": "float16"}, {"type": "halffloat"}),
        (pa.float64(), {"type": "float64"}, {"type": "double"}),
        (pa.date32(), {"type": "date32"}, {"type": "date32:day"}),
        (pa.timestamp("us", "UTC"), {"type": "timestamp"}, {"type": "timestamp:us:UTC"}),
        (pa.timestamp("ns"), {"type": "timestamp"}, {"type": "timestamp:ns:-"}),
        (pa.time64("us"), {"type": "time64"}, {"type": "time64:us"}),
        (pa.duration("s"), {"type": "duration"}, {"type": "duration:s"}),
        (pa.decimal128(10, 2), {"type": "decimal128", "length": 10002}, {"type": "decimal:128:10:2"}),
        (pa.binary(4), {"type": "fixed_size_binary", "length": 4}, {"type": "fixed_size_binary:4"}),
        (pa.dictionary(pa.int32(), pa.string()), {"type": "utf8"}, {"type": "dict:string:int32:false"}),
    ],
)
def test_each_type_has_a_name_in_both_spellings(kind: pa.DataType, arrow: object, logical: object) -> None:
    """Each type has a name in both spellings."""
    schema = pa.schema([pa.field("x", kind, nullable=False)])

    assert fields_of(schema) == [{"name": "x", "nullable": False, "type": arrow}]
    assert logical_fields_of(schema) == [{"name": "x", "nullable": False, "type": logical}]


def test_nested_types_have_their_fields_and_metadata() -> None:
    """Lists and structs have their parts, with the metadata of fields."""
    inner = pa.struct([pa.field("v", pa.list_(pa.float32(), 2)), pa.field("l", pa.list_(pa.float32()))])
    schema = pa.schema([pa.field("s", inner, metadata={"k": "v"})])

    (field,) = fields_of(schema)

    assert field["metadata"] == {"k": "v"}
    assert field["type"]["fields"] == [
        {"name": "v", "nullable": True, "type": {"type": "fixed_size_list", "length": 2, "fields": [FLOAT]}},
        {"name": "l", "nullable": True, "type": {"type": "list", "fields": [FLOAT]}},
    ]
