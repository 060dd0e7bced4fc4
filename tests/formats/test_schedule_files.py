# SPDX-License-Identifier: Apache-2.0
"""The files of a schedule are stored as bytes."""

from __future__ import annotations

from limnos.formats.schedule_files import files_decode, files_encode


def test_encoded_files_equal_the_files() -> None:
    """Files of any bytes are stored and read."""
    files = {"p.yaml": b"pipeline: p", "sql/part.sql": bytes(range(256))}

    assert files_decode(files_encode(files, file="p.yaml")) == files
