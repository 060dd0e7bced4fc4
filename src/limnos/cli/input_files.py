# SPDX-License-Identifier: Apache-2.0
"""Files that a command sends to the server in parts; `-` is standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from limnos.cli.failures import UsageError

READ_BYTES: Final = 1 << 20
"""The size of a chunk, in bytes."""


@contextmanager
def open_input(file: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading; - is standard input. Raises UsageError if it cannot be opened."""
    if str(file) == "-":
        yield sys.stdin.buffer
        return
    try:
        source = file.open("rb")
    except OSError as error:
        raise UsageError(f"'{file}' cannot be read: {error.strerror}") from error
    with source:
        yield source


def read_pieces(source: IO[bytes]) -> Iterator[bytes]:
    """Read a file to its end, and yield its content in chunks."""
    while piece := source.read(READ_BYTES):
        yield piece
