# SPDX-License-Identifier: Apache-2.0
"""Processes of this machine, found by the program that they run."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def processes_of(program: Path) -> list[int]:
    """Return the ids of all processes that have `program` as a word of their command line.

    A program in a PID namespace of its own knows only its id there, so it cannot tell its id itself. An ended process
    that nobody has waited for has no command line and is not counted.
    """
    word = os.fsencode(program)
    running = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # ended meanwhile
            if word in (entry / "cmdline").read_bytes().split(b"\0"):
                running.append(int(entry.name))
    return running
