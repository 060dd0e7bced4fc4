# SPDX-License-Identifier: Apache-2.0
"""Stored records: encoding and decoding are inverse, across versions of the definitions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, replace

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from limnos.model import records
from limnos.model.errors import BadRequest
from limnos.model.proto.limnos.v1 import records_pb2
from limnos.model.records import (
    NODE_RECORDS,
    CatalogRecord,
    FilesetRecord,
    JobTemplateRecord,
    MetalakeRecord,
    ModelRecord,
    NamespaceRecord,
    ObjectRecord,
    PolicyRecord,
    Record,
    RoleRecord,
    SqlppObjectRecord,
    TableRecord,
    TagRecord,
    TopicRecord,
    ViewRecord,
)
from limnos.model.stored_records import CATALOG_TYPES, SHARED_BYTES_MAX, UnreadableRecord

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
COMMENT = st.none() | TEXT
PROPERTIES = st.dictionaries(TEXT, TEXT, max_size=4)
RECORDS = st.one_of(
    st.builds(MetalakeRecord, COMMENT, PROPERTIES, st.booleans()),
    st.builds(
        CatalogRecord,
        type=st.sampled_from(CATALOG_TYPES),
        provider=TEXT,
        comment=COMMENT,
        properties=PROPERTIES,
        in_use=st.booleans(),
    ),
    st.builds(NamespaceRecord, COMMENT, PROPERTIES),
    st.builds(
        TableRecord,
        comment=COMMENT,
        properties=PROPERTIES,
        declared=st.booleans(),
        managed=st.booleans(),
        statements=st.lists(TEXT, max_size=3).map(tuple),
        object_type=TEXT,
    ),
    st.builds(ViewRecord, COMMENT, PROPERTIES, st.integers(0, 2**53)),
    st.builds(RoleRecord, PROPERTIES),
    st.builds(
        TagRecord,
        comment=COMMENT,
        properties=PROPERTIES,
        allowed_values=st.lists(TEXT, max_size=3).map(tuple),
        valueless=st.booleans(),
    ),
    st.builds(
        SqlppObjectRecord,
        comment=COMMENT,
        properties=PROPERTIES,
        statements=st.lists(TEXT, max_size=3).map(tuple),
        definition=TEXT,
    ),
    st.builds(ModelRecord, COMMENT, PROPERTIES, st.integers(0, 2**53)),
    st.builds(FilesetRecord, comment=COMMENT, properties=PROPERTIES, external=st.booleans(), locations=PROPERTIES),
    st.builds(TopicRecord, COMMENT, PROPERTIES),
    st.builds(
        PolicyRecord, comment=COMMENT, properties=PROPERTIES, policy_type=TEXT, enabled=st.booleans(), content=TEXT
    ),
    st.builds(
        JobTemplateRecord,
        comment=COMMENT,
        properties=PROPERTIES,
        declared=st.integers(0, 2**53),
        digest=TEXT,
        job_type=TEXT,
        content=TEXT,
    ),
    st.builds(ObjectRecord, COMMENT, PROPERTIES, TEXT),
)
DECODERS: dict[type[Record], Callable[[bytes], Record]] = {
    kind: kind.read for kind in (*NODE_RECORDS.values(), RoleRecord)
}
PLAIN: list[Record] = [
    MetalakeRecord("lake", {"a": "1"}, True),
    CatalogRecord(
        type="RELATIONAL", provider="lakehouse-iceberg", comment="tables", properties={"a": "1"}, in_use=True
    ),
    NamespaceRecord("space", {"a": "1"}),
    TableRecord(comment="table", properties={"a": "1"}),
    ViewRecord("view", {"a": "1"}, 7),
    RoleRecord({"a": "1"}),
    TagRecord(comment="tag", properties={"a": "1"}),
    SqlppObjectRecord(comment="type", properties={"a": "1"}, statements=("CREATE TYPE t AS OPEN {  }",)),
    ModelRecord("model", {"a": "1"}, 2),
    FilesetRecord(comment="fileset", properties={"a": "1"}, external=True, locations={"unknown": "file:///a"}),
    TopicRecord("topic", {"a": "1"}),
    PolicyRecord(comment="policy", properties={"a": "1"}, policy_type="custom", enabled=True, content="{}"),
    JobTemplateRecord(comment="template", properties={"a": "1"}, declared=2, digest="digest"),
    ObjectRecord("object", {"a": "1"}, "{}"),
]


def test_every_record_has_an_example() -> None:
    """Every record class has an example for the tests below."""
    assert {type(each) for each in PLAIN} == set(DECODERS)


def other_version(*fields: tuple[str, int, int]) -> type[Message]:
    """Build a message as another version of the code defines it, with (name, number, Protobuf type) per field.

    A field of type message is a version of two numbers and a note, as a newer SchemaVersion might be.
    """
    file = descriptor_pb2.FileDescriptorProto(name="other.proto", package="other", syntax="proto3")
    version = file.message_type.add(name="Version")
    version.field.add(name="major_version", number=1, type=13, label=1)
    version.field.add(name="minor_version", number=2, type=13, label=1)
    version.field.add(name="note", number=3, type=9, label=1)
    record = file.message_type.add(name="Record")
    for name, number, kind in fields:
        record.field.add(
            name=name, number=number, type=kind, label=1, type_name=".other.Version" if kind == 11 else None
        )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("other.Record"))


@given(RECORDS)
def test_any_record_round_trips(record: Record) -> None:
    """An encoded record decodes to an equal one, which encodes to the same bytes."""
    data = records.encode(record)
    read = DECODERS[type(record)](data)

    assert read == record
    assert records.encode(read) == data


def test_equal_short_bytes_are_decoded_once_per_kind() -> None:
    """Short equal bytes are decoded once for each kind of record. Other bytes, and long ones, give separate records."""
    bare, named, long = (
        records.encode(TableRecord(comment=comment, properties={})) for comment in (None, "x", "x" * SHARED_BYTES_MAX)
    )

    assert TableRecord.read(bare) is TableRecord.read(bytes(bytearray(bare)))
    assert TableRecord.read(named).comment == "x"
    assert type(NamespaceRecord.read(bare)) is NamespaceRecord
    assert TableRecord.read(long) is not TableRecord.read(long)


def test_no_comment_is_not_an_empty_comment() -> None:
    """None and an empty comment are distinguished."""
    without = records.TableRecord.read(records.encode(TableRecord(comment=None, properties={})))
    empty = records.TableRecord.read(records.encode(TableRecord(comment="", properties={})))

    assert without.comment is None
    assert empty.comment == ""


def test_equal_properties_give_equal_bytes() -> None:
    """The order in which properties were set does not change the bytes."""
    one = records.encode(RoleRecord({"a": "1", "b": "2", "c": "3"}))
    other = records.encode(RoleRecord({"c": "3", "b": "2", "a": "1"}))

    assert one == other


@pytest.mark.parametrize("record", PLAIN, ids=lambda record: type(record).__name__)
def test_every_record_carries_its_version(record: Record) -> None:
    """Field 1 of every stored record is version 1.0."""
    old = other_version(("version", 1, 11))
    read = old.FromString(records.encode(record))

    assert (read.version.major_version, read.version.minor_version) == (1, 0)  # type: ignore[attr-defined]


@pytest.mark.parametrize("record", PLAIN, ids=lambda record: type(record).__name__)
def test_unknown_fields_survive_a_read_modify_write(record: Record) -> None:
    """If this version changes a record of a newer minor version, its unknown field and its version are kept."""
    newer = other_version(("version", 1, 11), ("color", 99, 9))
    addition = newer(version={"major_version": 1, "minor_version": 7, "note": "kept"}, color="green")
    stored = records.encode(record) + addition.SerializeToString()  # concatenation merges Protobuf messages
    changed = replace(DECODERS[type(record)](stored), properties={"b": "2"})
    written = records.encode(changed)

    seen = newer.FromString(written)
    assert seen.color == "green"  # type: ignore[attr-defined]
    assert seen.version == addition.version  # type: ignore[attr-defined]
    assert DECODERS[type(record)](written) == changed
    assert DECODERS[type(record)](written).properties == {"b": "2"}


def test_older_code_keeps_unknown_fields_of_newer_records() -> None:
    """A version of the code that defines only version and comment can change the comment and keeps all other fields."""
    old = other_version(("version", 1, 11), ("comment", 2, 9))
    read = old.FromString(records.encode(MetalakeRecord("lake", {"a": "1"}, in_use=True)))
    before = read.comment  # type: ignore[attr-defined]
    read.comment = "changed"  # type: ignore[attr-defined]
    again = records.MetalakeRecord.read(read.SerializeToString())

    assert before == "lake"
    assert again == MetalakeRecord("changed", {"a": "1"}, in_use=True)


def test_a_catalog_type_of_a_newer_version_survives() -> None:
    """An unknown catalog type reads as UNKNOWN_<number>, and is written back unchanged."""
    newer = other_version(("version", 1, 11), ("type", 5, 13))
    stored = newer(version={"major_version": 1, "minor_version": 1}, type=42).SerializeToString()
    read = records.CatalogRecord.read(stored)
    rewritten_record = newer.FromString(records.encode(replace(read, comment="changed")))
    changed = records.CatalogRecord.read(records.encode(replace(read, type="ML")))

    assert read.type == "UNKNOWN_42"
    assert rewritten_record.type == 42  # type: ignore[attr-defined]
    assert changed.type == "ML"


def test_an_illegal_catalog_type_is_refused_with_the_legal_ones() -> None:
    """The refusal of an invalid catalog type lists the valid ones."""
    with pytest.raises(BadRequest, match=r"'UNKNOWN_42' is unknown\. Use one of RELATIONAL, FILE, STREAM, ML"):
        records.encode(CatalogRecord(type="UNKNOWN_42", provider="p", comment=None, properties={}, in_use=True))


@pytest.mark.parametrize("record", PLAIN, ids=lambda record: type(record).__name__)
def test_a_newer_major_version_is_refused_by_name(record: Record) -> None:
    """The refusal of a newer major version names the kind of record, both versions, and what to do."""
    newer = other_version(("version", 1, 11))
    data = records.encode(record) + newer(version={"major_version": 2, "minor_version": 3}).SerializeToString()
    kind = re.sub(r"(?<!^)([A-Z])", r" \1", type(record).MESSAGE.DESCRIPTOR.name.removesuffix("Record")).lower()

    with pytest.raises(UnreadableRecord) as caught:
        DECODERS[type(record)](data)
    error = caught.value
    assert (error.kind, error.stored_version, error.known) == (kind, (2, 3), (1, 0))
    assert error.message == (
        f"The stored record of a {kind} has version 2.3; this server reads version 1.x (at most 1.0). "
        "Start a server that supports version 2."
    )


@pytest.mark.parametrize(
    "data, reason",
    [(b"", "has no version"), (b"\x12\x01a", "has no version"), (b"\xff\xff\xff", "is damaged")],
)
def test_bytes_that_are_no_record_are_refused(data: bytes, reason: str) -> None:
    """Empty, unversioned and damaged bytes are refused with a message that says what to do."""
    with pytest.raises(UnreadableRecord, match=f"namespace .*{reason}.*Restore it") as caught:
        records.NamespaceRecord.read(data)
    assert caught.value.stored_version is None


@pytest.mark.parametrize(
    "record",
    [
        TableRecord(comment="\ud800", properties={}),
        TableRecord(comment=None, properties={"k": "\udfff"}),
        RoleRecord({"\ud800": ""}),
    ],
)
def test_a_lone_surrogate_is_a_bad_request(record: Record) -> None:
    """Text with a lone surrogate is BadRequest, not an internal error."""
    with pytest.raises(BadRequest, match="not valid Unicode"):
        records.encode(record)


def test_representation_omits_unknown_fields() -> None:
    """The text representation of a record does not show unknown fields."""
    newer = other_version(("version", 1, 11), ("color", 99, 9))
    stored = newer(version={"major_version": 1}, color="green").SerializeToString()
    representation = repr(records.RoleRecord.read(stored))

    assert representation == "RoleRecord(properties={})"


def test_every_defined_field_is_read() -> None:
    """The code reads every field that the definitions of stored messages have."""
    message_fields = {
        name: {field.name for field in message.fields} - {"version"}
        for name, message in records_pb2.DESCRIPTOR.message_types_by_name.items()
    }
    value_fields = {
        kind.MESSAGE.DESCRIPTOR.name: {each.name for each in fields(kind)} - {"unknown"} for kind in DECODERS
    }

    assert value_fields == message_fields
