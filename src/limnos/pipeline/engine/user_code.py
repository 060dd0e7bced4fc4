# SPDX-License-Identifier: Apache-2.0
"""The line of a user's own code in an error of a step: of a function on the driver, or of one on an executor.

Reads tracebacks; must not know Spark's classes. Paths are shortened to the file's name, because a run's record is read
by others than the owner of the directory.
"""

from __future__ import annotations

import inspect
import linecache
import re
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

_FRAME = re.compile(
    r'^\s*File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<name>[^\n]+)(?:\n(?P<code>\s+[^\n]*))?', re.MULTILINE
)
_ERROR = re.compile(
    r"^(?P<error>[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Warning|StopIteration)\b[^\n]*)", re.MULTILINE
)
_LIBRARIES = ("/pyspark/", "/py4j/", "/site-packages/", "/lib/python", "<frozen")
_CODE_MAX = 200
_TEXT_MAX = 200_000


def place_in_function(error: BaseException, function: Callable[..., object]) -> str | None:
    """Return `file:line, in name: code` of the innermost line in the directory of a function; None if there is none."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return None
    directory = Path(code.co_filename).parent
    place: str | None = None
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame.f_code
        if Path(frame.co_filename).is_relative_to(directory) and not _is_library(frame.co_filename):
            line = linecache.getline(frame.co_filename, trace.tb_lineno)
            place = _place(frame.co_filename, line=trace.tb_lineno, name=frame.co_name, code=line)
        trace = trace.tb_next
    return place


def python_cause(text: str) -> str | None:
    """Return the place and the error of a Python function that failed on an executor; None for other errors.

    Spark's message contains the worker's traceback, in the middle of its own.
    """
    text = text[:_TEXT_MAX]
    if "Traceback (most recent call last)" not in text:
        return None
    frames = [match for match in _FRAME.finditer(text) if not _is_library(match["file"])]
    if not frames:
        return None
    frame = frames[-1]
    error = _ERROR.search(text, frame.end())
    if error is None:
        return None
    place = _place(frame["file"], line=int(frame["line"]), name=frame["name"], code=frame["code"] or "")
    return f"{place}\n{error['error'][:2000]}"


def _is_library(path: str) -> bool:
    return any(part in path for part in _LIBRARIES)


def _place(path: str, *, line: int, name: str, code: str) -> str:
    text = code.strip()[:_CODE_MAX]
    return f"{Path(path).name}:{line}, in {name}" + (f": {text}" if text else "")
