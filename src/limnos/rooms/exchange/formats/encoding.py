# SPDX-License-Identifier: Apache-2.0
"""Encodes records of an export: Protobuf messages with length prefixes, or lines of JSON.

Must not know the content of a record except its version.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from google.protobuf import json_format
from google.protobuf.message import DecodeError

from limnos.model.errors import BadRequest
from limnos.model.frames import BrokenFrame, frame_at, frame_message
from limnos.model.proto.limnos.v1.export_pb2 import ExportRecord
from limnos.model.proto.limnos.v1.schema_pb2 import SchemaVersion
from limnos.model.stored_records import MAJOR_VERSION

Form = Literal["proto", "json"]
FORMS: Final[tuple[Form, ...]] = ("proto", "json")


def encode_records(records: Iterable[ExportRecord], form: Form) -> bytes:
    """Encode records for a file: Protobuf with length prefixes, or one line of JSON each."""
    if form == "proto":
        return b"".join([frame_message(record.SerializeToString(deterministic=True)) for record in records])
    return b"".join([_line(record) for record in records])


def _line(record: ExportRecord) -> bytes:
    text = json_format.MessageToJson(record, preserving_proto_field_name=True, indent=None, ensure_ascii=False)
    return text.encode() + b"\n"


def decode_records(data: bytes, form: Form, *, first: int) -> list[ExportRecord]:
    """Decode records. `first` is the ordinal number of the first record in the export, for error messages.

    Raises BadRequest for an invalid record, with its ordinal number in the message.
    """
    records = _from_lines(data, first) if form == "json" else _from_frames(data, first)
    for number, record in enumerate(records, first):
        _check(record, number)
    return records


def _from_lines(data: bytes, first: int) -> list[ExportRecord]:
    records: list[ExportRecord] = []
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        try:
            records.append(json_format.Parse(line, ExportRecord(), max_recursion_depth=20))
        except (json_format.ParseError, UnicodeDecodeError, RecursionError) as error:
            raise BadRequest(
                f"Record {first + len(records)} is not a record of an export, which 'limnos export METALAKE' writes:"
                f" {str(error)[:300]}"
            ) from None
    return records


def _from_frames(data: bytes, first: int) -> list[ExportRecord]:
    records: list[ExportRecord] = []
    at = 0
    while at < len(data):
        number = first + len(records)
        try:
            frame = frame_at(data, at)
            if frame is None:
                raise BadRequest(f"Record {number} is truncated: the file ends in the middle of it. Export again")
            records.append(ExportRecord.FromString(data[frame[0] : frame[1]]))
        except (BrokenFrame, DecodeError) as error:
            raise BadRequest(
                f"Record {number} is not a record of an export, which 'limnos export METALAKE' writes, or is damaged:"
                f" {error}"
            ) from None
        at = frame[1]
    return records


def _check(record: ExportRecord, number: int) -> None:
    word = record.WhichOneof("record")
    if word is None:
        raise BadRequest(
            f"Record {number} has a kind that this version does not support, or is empty: import it with the release"
            " that exported it"
        )
    message = getattr(record, word)
    if "version" in message.DESCRIPTOR.fields_by_name:
        _check_version(message.version, number)


def _check_version(version: SchemaVersion, number: int) -> None:
    if version.major_version == MAJOR_VERSION:
        return
    if version.major_version == 0:
        raise BadRequest(f"Record {number} has no schema version: this is not an export, or it is damaged")
    raise BadRequest(
        f"Record {number} has schema version {version.major_version}.{version.minor_version}; this server reads version"
        f" {MAJOR_VERSION}.x: import it with a release that supports that version"
    )
