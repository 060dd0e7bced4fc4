# SPDX-License-Identifier: Apache-2.0
"""The records of the dataverse Metadata, from the statements that created the objects."""

from __future__ import annotations

import pytest

from limnos.model.kinds import Kind
from limnos.rooms.sqlpp.language.metadata import MetadataObject, metadata_records
from limnos.rooms.sqlpp.language.values.model import Value

KEYS = frozenset({"IndexStructure", "SearchKey", "SearchKeyElements", "SearchKeyType"})


def index_record(fields: str) -> Value:
    """Return the keys in the record of an index of these fields."""
    statements = ("create dataset d(t) primary key id", f"create index i on d{fields}")
    objects = [MetadataObject(kind=Kind.TABLE, path=("v", "d"), statements=statements)]
    return list(metadata_records("Index", objects, fields=KEYS))[1]


@pytest.mark.parametrize(
    "fields, expected",
    [
        ("(a, b.c)", {"IndexStructure": "BTREE", "SearchKey": (("a",), ("b", "c"))}),
        ("(a: int) enforced", {"IndexStructure": "BTREE", "SearchKey": (("a",),), "SearchKeyType": ("int64",)}),
        ("(unnest a) exclude unknown key", {"SearchKeyElements": ({"UnnestList": (("a",),)},)}),
        (
            "(b, unnest a.c unnest d select e, f.g) exclude unknown key",
            {
                "SearchKeyElements": (
                    (("b",),),
                    {"UnnestList": (("a", "c"), ("d",)), "ProjectList": (("e",), ("f", "g"))},
                )
            },
        ),
        (
            "(b: string, unnest a select e: int8, f: string) exclude unknown key",
            {
                "SearchKeyElements": ((("b",),), {"UnnestList": (("a",),), "ProjectList": (("e",), ("f",))}),
                "SearchKeyType": (("string",), ("int8", "string")),
            },
        ),
    ],
)
def test_index_record_has_keys_elements_and_types(fields: str, expected: dict[str, Value]) -> None:
    """An array index has elements instead of paths; types are present if a key has one."""
    known: dict[str, Value] = (
        expected if "SearchKey" in expected else {"IndexStructure": "ARRAY", "SearchKey": (), **expected}
    )

    assert index_record(fields) == known
