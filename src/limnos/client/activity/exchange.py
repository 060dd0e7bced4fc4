# SPDX-License-Identifier: Apache-2.0
"""Exports and imports of metalakes (own API): splitting of files into parts, and the calls.

Must not know the content of records, because the client has no Protobuf library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Literal, NamedTuple

import msgspec

from limnos.client.errors import ArgumentError
from limnos.client.flow import OWN, Flow, Request, Resource, S, call, decode, request, segments, verb
from limnos.client.values import ImportInfo, MetalakeImportResult
from limnos.model.frames import BrokenFrame, frame_at

ExportForm = Literal["proto", "json"]
RECORDS_AT_ONCE: Final = 200
BYTES_AT_ONCE: Final = 1 << 18
RECORD_BYTES_MAX: Final = 8 << 20
"""The maximum size of a part that the server accepts, in bytes."""
_HEADER_FIELD: Final = b"\x0a"
"""The first byte of a message of Protobuf whose first field is number 1, a message."""
_MEDIA: Final = {"proto": "application/x-protobuf", "json": "application/x-ndjson"}


class ExportPart(NamedTuple):
    """A part of an export file: consecutive complete records, and their count."""

    records: int
    data: bytes


def export_request(metalake: str, *, format: str, secrets: bool) -> Request:
    """Build the request that streams an export of a metalake."""
    query = {"format": format, "secrets": "true" if secrets else None}
    return request("GET", f"{OWN}/metalakes{segments(metalake, 'export')}", query=query)


def form_of(head: bytes) -> ExportForm:
    """Return an export's format from its first bytes: a line of JSON, or a length-prefixed message."""
    return "json" if head[:1] == b"{" and head[1:2] != b"\n" else "proto"


def check_export(head: bytes) -> ExportForm:
    """Return the format of an export by its first bytes, which must have its first record: the header.

    Raises ArgumentError for a file that is no export.
    """
    form = form_of(head)
    if not (_is_header_line(head) if form == "json" else _is_header_message(head)):
        raise ArgumentError(
            "the file is not an export of a metalake: it must be a file that 'limnos export METALAKE' wrote, which"
            " begins with a header"
        )
    return form


def _is_header_line(head: bytes) -> bool:
    try:
        line = msgspec.json.decode(head.partition(b"\n")[0])
    except (msgspec.DecodeError, RecursionError):
        return False
    return isinstance(line, dict) and "header" in line


def _is_header_message(head: bytes) -> bool:
    """Return whether the first message begins with the field `header` of `ExportRecord`."""
    try:
        frame = frame_at(bytearray(head), 0)
    except BrokenFrame:
        return False
    return frame is not None and head[frame[0] : frame[0] + 1] == _HEADER_FIELD


def cut_into_parts(pieces: Iterable[bytes], form: ExportForm) -> Iterator[ExportPart]:
    """Split a file into parts with complete records. An incomplete record at the end becomes a separate part, which the
    server refuses.

    Raises ArgumentError for a record that is larger than the server accepts.
    """
    buffer = bytearray()
    start = at = count = 0
    for piece in pieces:
        buffer += piece
        while (end := _end_of(buffer, at, form=form)) is not None:
            at, count = end, count + 1
            if count >= RECORDS_AT_ONCE or at - start >= BYTES_AT_ONCE:
                yield ExportPart(count, bytes(buffer[start:at]))
                start, count = at, 0
        del buffer[:start]
        start, at = 0, at - start
        if len(buffer) - at > RECORD_BYTES_MAX:
            raise ArgumentError(
                "the file is not an export, or it is damaged: a record of it would be larger than 8 MiB"
            )
    if count:
        yield ExportPart(count, bytes(buffer[:at]))
    if buffer[at:].strip():
        yield ExportPart(1, bytes(buffer[at:]))


def drop_first_records(part: ExportPart, count: int, *, form: ExportForm) -> ExportPart:
    """Drop the first `count` records of a part, which the server already has."""
    buffer, at = bytearray(part.data), 0
    for _ in range(count):
        at = _end_of(buffer, at, form=form) or len(buffer)
    return ExportPart(part.records - count, bytes(buffer[at:]))


def _end_of(buffer: bytearray, at: int, *, form: ExportForm) -> int | None:
    """Return the offset at which the record at `at` ends; None if it is incomplete."""
    if form == "json":
        end = buffer.find(b"\n", at)
        return None if end < 0 else end + 1
    try:
        frame = frame_at(buffer, at)
    except BrokenFrame:
        return None
    return None if frame is None else frame[1]


class Imports(Resource[S]):
    """Calls that import metalakes from export files, for service admins."""

    @verb
    def list(self) -> Flow[tuple[ImportInfo, ...]]:
        """List the unfinished imports, with the counts of their received records. For service admins."""
        return call("GET", f"{OWN}/imports", answer=tuple[ImportInfo, ...], field="imports")

    @verb
    def begin(self, name: str, *, format: ExportForm = "proto", ids: str = "map") -> Flow[ImportInfo]:
        """Begin to import a metalake under a name. `ids`: objects keep their ids (`keep`) or get new ids (`map`)."""
        body = {"name": name, "format": format, "ids": ids}
        return call("POST", f"{OWN}/imports", answer=ImportInfo, body=body)

    @verb
    def load(self, import_id: int) -> Flow[ImportInfo]:
        """Load an unfinished import, with the count of the records received so far."""
        return call("GET", _url(import_id), answer=ImportInfo)

    @verb
    def feed(self, info: ImportInfo, part: ExportPart) -> Flow[ImportInfo]:
        """Send the next part of the file. `info` is the import's last state, which has the count of received
        records.
        """
        url = _url(info.id, "records")
        requested = Request(
            method="POST",
            path=url,
            query=(("after", str(info.records)),),
            body=part.data,
            media_type=_MEDIA[info.format],
        )
        return decode((yield requested), ImportInfo)

    @verb
    def finish(self, import_id: int) -> Flow[MetalakeImportResult]:
        """Finish an import: the metalake becomes visible with all of its content."""
        return call("POST", _url(import_id, "finish"), answer=MetalakeImportResult)

    @verb
    def give_up(self, import_id: int) -> Flow[None]:
        """Abort an import and delete its records."""
        yield request("DELETE", _url(import_id))


def _url(import_id: int, *below: str) -> str:
    return f"{OWN}/imports{segments(str(import_id), *below)}"
