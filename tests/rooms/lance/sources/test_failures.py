# SPDX-License-Identifier: Apache-2.0
"""Errors of Lance's library and the answers to callers. The cause is only in an error's text."""

from __future__ import annotations

import pytest

from limnos.model.errors import BadRequest, CommitConflict, InvalidTable, LimnosError, NotFound, StorageFailed
from limnos.rooms.lance.sources.library_errors import failure_of

LOCAL, REMOTE = "file:///lake/t", "s3://lake/t"
AT = ", /home/runner/work/lance/lance/rust/lance-file/src/writer/structural.rs:254:9"


@pytest.mark.parametrize(
    "location, text, kind",
    [
        (LOCAL, f"LanceError(IO): No space left on device (os error 28){AT}", StorageFailed),
        (LOCAL, f"LanceError(IO): Too many open files (os error 24){AT}", StorageFailed),
        (LOCAL, f"LanceError(IO): Read-only file system (os error 30){AT}", StorageFailed),
        (LOCAL, f"LanceError(IO): Permission denied (os error 13){AT}", StorageFailed),
        (
            LOCAL,
            (
                "LanceError(IO): Generic N/A error: Not found: /lake/t/data/1.lance: No such file or directory (os"
                f" error 2){AT}"
            ),
            InvalidTable,
        ),
        (LOCAL, f"Encountered corrupt file: Invalid manifest{AT}", InvalidTable),
        (REMOTE, f"Generic S3 error: Error performing PUT: error sending request{AT}", StorageFailed),
        (REMOTE, f"Generic S3 error: Client error with status 403 Forbidden: Access Denied{AT}", StorageFailed),
        (
            LOCAL,
            f"Query Execution error: Error applying filter expression to batch: Arrow error: Divide by zero error{AT}",
            BadRequest,
        ),
        (
            REMOTE,
            f"External error: Execution error: string size overflow on repeat, max size is 2147483647{AT}",
            BadRequest,
        ),
        (
            REMOTE,
            f"External error: Query Execution error: Generic S3 error: Error performing GET: timed out{AT}",
            StorageFailed,
        ),
        (LOCAL, f"LanceError(Arrow): Cast error: Cannot cast string 'a' to value of Int64 type{AT}", BadRequest),
        (LOCAL, f"Commit conflict for version 7: somebody else{AT}", CommitConflict),
        (LOCAL, f"Schema error: No field named x. Valid fields are id{AT}", NotFound),
    ],
)
def test_library_failures_are_classified_by_their_message(location: str, text: str, kind: type[LimnosError]) -> None:
    """A full disk is not reported as a damaged table, nor a wrong expression as refused storage; the library's own file
    names are removed.
    """
    failure = failure_of(location, text)

    assert type(failure) is kind
    assert ".rs:" not in failure.message
