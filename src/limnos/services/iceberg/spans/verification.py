# SPDX-License-Identifier: Apache-2.0
"""Checks the restricted files that an executor reports, and describes them from their footers.

Must not know operations. Nothing that the executor says about a file is used: its place and name are compared with
those of the span, and all else comes from the file. Runs in worker processes of the server. Decision record 0337.
"""

from __future__ import annotations

import io
import re
from contextlib import closing
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from limnos.files import ReadBudget, open_ranges
from limnos.formats.restricting.reading import ReadTable, count_span_rows
from limnos.formats.restricting.rewriting import file_statistics, hide_error_details
from limnos.model.errors import BadRequest, MissingFile, UnsupportedOperation
from limnos.services.iceberg.spans.writing import SpanRequest, open_source

Json = dict[str, Any]
FILES_MAX: Final = 64
"""The maximum number of files of a span. One has about 128 MiB, and a span reads 64 MiB."""
FOOTER_BYTES_MAX: Final = 64 << 20
"""The maximum number of bytes that are read of a reported file."""


class SpanReport(msgspec.Struct, frozen=True, kw_only=True):
    """The files that an executor wrote for a span, below `directory`; `request` is the server's own."""

    request: SpanRequest
    directory: str
    files: tuple[str, ...]


def span_verify(report: SpanReport) -> list[Json]:
    """Check the files of a span. Returns the entry of each file, as `span_write` does.

    Raises BadRequest if they are not what the server would have written, as far as footers show it, and the errors of
    reading files.
    """
    _check_names(report)
    table = ReadTable(report.request.shape)
    expected = _expected_schema(table)
    entries = [_verify_file(report, table, location=each, expected=expected) for each in report.files]
    rows = sum(each["record-count"] for each in entries)
    request = report.request
    with closing(open_source(request, request.task["data-file"]["file-path"])) as source, hide_error_details():
        span_rows = count_span_rows(source, request.span)
    is_exact = request.shape.row_filter is None and not request.deletes
    if rows > span_rows or (is_exact and rows != span_rows):
        at_most = "" if is_exact else "at most "
        raise BadRequest(
            f"The reported files of the span have {rows} rows, not {at_most}{span_rows}: they are not used"
        )
    return entries


def own_files(report: SpanReport) -> list[str]:
    """Return the reported files that have a name of the span, in the directory of the operation."""
    name = re.compile(re.escape(f"{report.directory}/{report.request.name}-") + r"[0-9a-f]{8}\.parquet")
    return [each for each in dict.fromkeys(report.files) if name.fullmatch(each)]


def _check_names(report: SpanReport) -> None:
    """Raise BadRequest for a file that does not have a name of the span, in the directory of the operation."""
    if len(report.files) > FILES_MAX or len(own_files(report)) < len(report.files):
        raise BadRequest(
            f"The files of a span are at most {FILES_MAX}, each with the span's name and eight hexadecimal digits, in"
            " the directory of the operation: the reported ones are not used"
        )


def _expected_schema(table: ReadTable) -> pq.ParquetFile:
    """Return an empty file as the server would write it."""
    sink = io.BytesIO()
    pq.ParquetWriter(sink, table.target, compression="zstd", store_schema=False).close()
    return pq.ParquetFile(pa.BufferReader(sink.getvalue()))


def _verify_file(report: SpanReport, table: ReadTable, *, location: str, expected: pq.ParquetFile) -> Json:
    """Return the entry of a reported file from its footer. Raises BadRequest for another schema, or without rows."""
    request = report.request
    budget = ReadBudget(FOOTER_BYTES_MAX)
    try:
        source = open_ranges(
            location,
            request.properties_at(location),
            roots=(report.directory,),
            allowed=request.allowed,
            budget=budget,
        )
    except MissingFile:
        raise BadRequest("A reported file does not exist in the directory of the operation: it is not used") from None
    with closing(source):
        try:
            file = pq.ParquetFile(pa.PythonFile(source, mode="r"), pre_buffer=False)
            is_equal = file.metadata.schema.equals(expected.metadata.schema) and file.schema_arrow.equals(
                expected.schema_arrow, check_metadata=True
            )
        except (pa.ArrowException, OSError, UnsupportedOperation):
            raise BadRequest("A reported file is not a Parquet file: it is not used") from None
        groups = [file.metadata.row_group(each).num_rows for each in range(file.metadata.num_row_groups)]
        if not is_equal or min(groups, default=0) < 1 or sum(groups) != file.metadata.num_rows:
            raise BadRequest("A reported file has other columns than the table, or no rows: it is not used")
        with hide_error_details():
            statistics = file_statistics(table, file.metadata)
        return {
            "record-count": file.metadata.num_rows,
            **statistics,
            "file-path": location,
            "file-size-in-bytes": source.size(),
        }
