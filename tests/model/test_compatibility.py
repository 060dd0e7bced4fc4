# SPDX-License-Identifier: Apache-2.0
"""Compatibility: bytes that version 1.0 wrote must always be readable, so fixtures below `fixtures/records/v1.0` never
change.

`expected.json` has the expected content of each file: a record's fields, or a message in Protobuf's JSON. A new version
adds a directory beside this one.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import cast

import pytest
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from limnos.model.proto.limnos.v1 import export_pb2, schema_pb2
from tests.model.record_fixtures import (
    EXPECTED,
    HOME,
    RECORD_CLASSES,
    expected_fields,
    record_class,
    write_fixture,
)

LATER = {
    "TableRecord": {"declared": False, "managed": False, "statements": (), "object_type": ""},
    "PolicyRecord": {"writer_id": 0},
    "TagRecord": {"allowed_values": (), "valueless": False},
    "JobTemplateRecord": {"job_type": "", "content": ""},
    "DeclaredRecord": {"definition": "", "dependencies": ()},
}
"""Fields that records got after version 1.0, with the values that they have in its fixtures."""


@pytest.mark.parametrize("name", sorted(EXPECTED["records"]))
def test_a_stored_record_of_version_1_0_reads_as_it_was_written(name: str) -> None:
    """Every field of a stored record has the value that version 1.0 wrote, and no field is unknown."""
    record = record_class(name).read((HOME / f"{name}.bin").read_bytes())

    since = LATER.get(str(EXPECTED["records"][name]["kind"]), {})
    assert asdict(record) == {**expected_fields(name), **since, "unknown": b""}


@pytest.mark.parametrize("name", sorted(EXPECTED["messages"]))
def test_an_exported_message_of_version_1_0_reads_as_it_was_written(name: str) -> None:
    """Every field of an exported message has the value that version 1.0 wrote."""
    expected = EXPECTED["messages"][name]
    name_of_kind = str(expected["message"])
    kind = cast("type[Message]", getattr(schema_pb2, name_of_kind, None) or getattr(export_pb2, name_of_kind))
    message = kind.FromString((HOME / f"{name}.bin").read_bytes())

    assert MessageToDict(message, preserving_proto_field_name=True) == expected["fields"]


def test_fixture_is_written_once_from_its_fields(tmp_path: Path) -> None:
    """The command writes a fixture's bytes from its expected fields, and refuses to write them again."""
    write_fixture("policy_record", tmp_path)

    assert (tmp_path / "policy_record.bin").read_bytes() == (HOME / "policy_record.bin").read_bytes()
    with pytest.raises(FileExistsError):
        write_fixture("policy_record", tmp_path)


def test_every_fixture_is_described() -> None:
    """The described fixtures are exactly the existing files."""
    files = {path.stem for path in HOME.glob("*.bin")}

    assert files == set(EXPECTED["records"]) | set(EXPECTED["messages"])


def test_every_message_has_a_fixture() -> None:
    """Each message of seed 2, each further message of an export, and each stored record has a fixture of version
    1.0.
    """
    described = {entry["message"] for entry in EXPECTED["messages"].values()}
    kinds = {entry["kind"] for entry in EXPECTED["records"].values()}

    files = (schema_pb2, export_pb2)
    assert described == {name for file in files for name in file.DESCRIPTOR.message_types_by_name}
    assert kinds == set(RECORD_CLASSES)
