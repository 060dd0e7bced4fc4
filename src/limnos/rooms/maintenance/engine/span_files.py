# SPDX-License-Identifier: Apache-2.0
"""Writes the files of one span for restricted users: in a task of Spark, or in a thread of the executor.

Must not know operations. It is the function with which the server writes the same files; its libraries are imported
when the first span is written, because most executors write none.
"""

from __future__ import annotations

import msgspec

from limnos.model.errors import UnsupportedOperation
from limnos.model.extras import missing_part


def write_span(request: bytes) -> list[str]:
    """Write the files of a span. Returns their locations; empty if no row is visible.

    `request` is a `SpanRequest` as JSON. Raises UnsupportedOperation (also if a library is missing), StorageFailed,
    ServiceUnavailable.
    """
    check_libraries()
    from limnos.services.iceberg.spans.writing import SpanRequest, span_write  # noqa: PLC0415 - needs pyarrow

    files = span_write(msgspec.json.decode(request, type=SpanRequest))
    return [each["file-path"] for each in files]


def check_libraries() -> None:
    """Raise UnsupportedOperation if this Python cannot write files of spans."""
    try:
        import limnos.services.iceberg.spans.writing  # noqa: F401, PLC0415 - only whether it can be imported
    except ImportError as error:
        needs = missing_part("Writing files for restricted users needs", ["server", "spark"])
        raise UnsupportedOperation(f"{needs}, with the extra of the object store ({error.name} is missing)") from error


def probe_worker(_: bytes) -> list[str]:
    """Return no files, if the Python of this worker can write spans. Raises as `check_libraries`."""
    check_libraries()
    return []
