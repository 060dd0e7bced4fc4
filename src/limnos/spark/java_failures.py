# SPDX-License-Identifier: Apache-2.0
"""Failures of a Java process with Spark: which ones stay, and whether its disk is full.

Must not know the work of the process.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, Final

SPACE_BYTES_MIN: Final = 1 << 20
CAUSES_MAX: Final = 20
_PERMANENT: Final = frozenset(
    {"java.lang.ExceptionInInitializerError", "java.lang.NoClassDefFoundError", "java.lang.OutOfMemoryError"}
)


def is_full(directory: str) -> bool:
    """Return whether a directory's disk has too little free space or too few free inodes for Java to start."""
    try:
        result = os.statvfs(directory)
    except OSError:
        return False
    return result.f_bavail * result.f_frsize < SPACE_BYTES_MIN or (result.f_files > 0 and result.f_favail == 0)


def is_permanent(error: BaseException) -> bool:
    """Return whether later statements in this JVM would fail, too.

    A class that failed to load, as after a full disk, is never loaded again; after an error of memory, threads of Spark
    may be missing. The classes of Java's exceptions decide: a message may have a user's text.
    """
    return not _PERMANENT.isdisjoint(java_classes_of(error))


def java_classes_of(error: BaseException) -> list[str]:
    """Return the names of the classes of an error's Java exception and its causes; empty for other errors, and if the
    JVM does not respond.
    """
    java: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    names: list[str] = []
    with contextlib.suppress(Exception):
        while java is not None and len(names) < CAUSES_MAX:
            names.append(str(java.getClass().getName()))
            java = java.getCause()
    return names
