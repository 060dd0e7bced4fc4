"""Whole objects for exports: assembled messages hold every fact."""

from __future__ import annotations

import pytest
from google.protobuf.json_format import MessageToDict

from limnos.model.errors import BadRequest
from limnos.model.messages import (
    ColumnFacts,
    Identity,
    catalog_message,
    metalake_message,
    namespace_message,
    table_message,
)
from limnos.model.proto.limnos.v1 import schema_pb2
from limnos.model.records import CatalogRecord, MetalakeRecord, NamespaceRecord, TableRecord

NEW = Identity(id=7, name="x", created_by="ada", created_at_ms=1_500)
CHANGED = Identity(id=8, name="y", created_by="ada", created_at_ms=0, modified_by="grace", modified_at_ms=2_001)
NEW_AUDIT = {"creator": "ada", "create_time": "1970-01-01T00:00:01.500Z"}
VERSION = {"major_version": 1}


def shown(message: type, data: bytes) -> dict[str, object]:
    """Read the bytes and give them as Protobuf's JSON, with the definitions' field names."""
    return MessageToDict(message.FromString(data), preserving_proto_field_name=True)  # type: ignore[attr-defined]


def test_a_metalake_has_identity_record_and_audit() -> None:
    """A Metalake joins the columns and the record."""
    data = metalake_message(NEW, MetalakeRecord("lake", {"a": "1"}, in_use=True))

    assert shown(schema_pb2.Metalake, data) == {
        "id": "7",
        "name": "x",
        "comment": "lake",
        "properties": {"a": "1"},
        "audit_info": NEW_AUDIT,
        "version": VERSION,
        "in_use": True,
    }


def test_a_catalog_says_its_type_and_provider() -> None:
    """A Catalog has its metalake's id, its type and its connector; an absent comment stays absent."""
    data = catalog_message(CHANGED, CatalogRecord("STREAM", "kafka", None, {}, in_use=True), metalake_id=7)

    assert shown(schema_pb2.Catalog, data) == {
        "id": "8",
        "metalake_id": "7",
        "name": "y",
        "type": "STREAM",
        "audit_info": {
            "creator": "ada",
            "create_time": "1970-01-01T00:00:00Z",
            "last_modifier": "grace",
            "last_modified_time": "1970-01-01T00:00:02.001Z",
        },
        "version": VERSION,
        "provider": "kafka",
        "in_use": True,
    }


def test_a_catalog_of_an_unknown_type_is_not_exported() -> None:
    """A type that only a newer version knows has no name here, so the export refuses it rather than guess."""
    with pytest.raises(BadRequest, match="UNKNOWN_9"):
        catalog_message(NEW, CatalogRecord("UNKNOWN_9", "p", None, {}, in_use=True), metalake_id=7)


@pytest.mark.parametrize("parent_id, expected", [(None, None), (5, "5")])
def test_a_namespace_knows_its_parent(parent_id: int | None, expected: str | None) -> None:
    """A namespace directly below the catalog has no parent_id."""
    data = namespace_message(NEW, NamespaceRecord(None, {}), catalog_id=3, parent_id=parent_id)
    message = shown(schema_pb2.Namespace, data)

    assert message.get("parent_id") == expected
    assert message["catalog_id"] == "3"


def test_a_table_has_its_columns_in_order() -> None:
    """A Table lists its columns as they came, with what is absent left out."""
    columns = [
        ColumnFacts(id=2, name="b", type="long", nullable=True, default_value="0"),
        ColumnFacts(id=1, name="a", type="int", nullable=False, comment=""),
    ]
    record = TableRecord("t", {"k": "v"})
    data = table_message(NEW, record, catalog_id=3, namespace_id=4, format="iceberg", columns=columns)

    assert shown(schema_pb2.Table, data) == {
        "id": "7",
        "namespace_id": "4",
        "catalog_id": "3",
        "name": "x",
        "comment": "t",
        "format": "iceberg",
        "columns": [
            {"id": "2", "name": "b", "type": "long", "nullable": True, "default_value": "0"},
            {"id": "1", "name": "a", "type": "int", "comment": ""},
        ],
        "properties": {"k": "v"},
        "audit_info": NEW_AUDIT,
        "version": VERSION,
    }
