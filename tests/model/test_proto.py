# SPDX-License-Identifier: Apache-2.0
"""Protobuf definitions: names follow seed 2, and the committed code is generated from them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor

from limnos.model.proto.limnos.v1 import records_pb2, schema_pb2

HOME = Path(__file__).parent.parent.parent
COMMITTED = HOME / "src" / "limnos" / "model" / "proto"
FIELD_NAME = re.compile(r"[a-z](?:_?[a-z0-9]+)*")


def messages() -> Iterator[Descriptor]:
    """Return all of our messages, including nested ones."""
    todo = [
        *schema_pb2.DESCRIPTOR.message_types_by_name.values(),
        *records_pb2.DESCRIPTOR.message_types_by_name.values(),
    ]
    while todo:
        message = todo.pop()
        todo.extend(message.nested_types)
        yield message


@pytest.mark.parametrize("message", list(messages()), ids=lambda message: message.full_name)
def test_field_names_follow_the_rule_of_seed_2(message: Descriptor) -> None:
    """Field names are lower case words joined by single underscores."""
    illegal = [field.name for field in message.fields if FIELD_NAME.fullmatch(field.name) is None]

    assert illegal == []


def test_messages_and_catalog_types_of_seed_2_exist() -> None:
    """The messages and the four catalog types that seed 2 names exist."""
    names = set(schema_pb2.DESCRIPTOR.message_types_by_name)
    types = [name for name in schema_pb2.Catalog.Type.keys() if name != "UNSPECIFIED"]  # noqa: SIM118 - no mapping

    assert names == {"SchemaVersion", "AuditInfo", "Metalake", "Catalog", "Namespace", "Table", "Column"}
    assert types == ["RELATIONAL", "FILE", "STREAM", "ML"]


def test_committed_code_equals_the_generated_code(tmp_path: Path) -> None:
    """Generating the code again gives the committed files, byte for byte. Otherwise run scripts/generate_proto.py."""
    command = [sys.executable, str(HOME / "scripts" / "generate_proto.py"), "--into", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    patterns = ("*_pb2.py", "*_pb2.pyi")
    fresh = {path.relative_to(tmp_path): path.read_bytes() for pattern in patterns for path in tmp_path.rglob(pattern)}
    committed = {
        path.relative_to(COMMITTED): path.read_bytes() for pattern in patterns for path in COMMITTED.rglob(pattern)
    }

    assert len(fresh) == 6
    assert committed == fresh
