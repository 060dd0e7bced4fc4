# SPDX-License-Identifier: Apache-2.0
"""Maps errors of a Hive metastore to the server's errors, by the exceptions of its interface.

Must not know the request. If the request is at fault, the error has the metastore's message. Its internal errors are
only logged.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from hive_metastore.ttypes import (
    AlreadyExistsException,
    InvalidInputException,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    UnknownDBException,
    UnknownTableException,
)
from thrift.Thrift import TException

from limnos.model.errors import AlreadyExists, BadRequest, LimnosError, NotEmpty, NotFound, SourceFailed, StateUnknown

MISSING: Final = (NoSuchObjectException, UnknownDBException, UnknownTableException)
_CALLERS: Final = (InvalidObjectException, InvalidInputException, InvalidOperationException)
REFUSALS: Final = (*MISSING, *_CALLERS, AlreadyExistsException, MetaException)
_UNREADABLE: Final = (OverflowError, EOFError, ValueError, RecursionError, struct.error)
"""Decoding errors for a response that is malformed or states an impossible size."""
_TEXT_MAX: Final = 300


@contextmanager
def translate_metastore_errors(about: str, *, kind: str, changes: bool = False) -> Iterator[None]:
    """Translate the client's errors in the body to the server's errors.

    Args:
        about: A description of the object for messages, such as `Table "a"`.
        kind: The kind of the object, such as `table`.
        changes: Whether the body makes a change; a missing response then raises StateUnknown.
    """
    try:
        yield
    except (TException, OSError, *_UNREADABLE) as error:
        raise _error(error, about, kind=kind, changes=changes) from error


def _error(error: Exception, about: str, *, kind: str, changes: bool) -> LimnosError:
    text = _short(str(getattr(error, "message", None) or error))
    if isinstance(error, AlreadyExistsException):
        return AlreadyExists(f"{about} already exists in the source", kind=kind)
    if isinstance(error, MISSING):
        return NotFound(f"{about} does not exist in the source", kind=kind)
    if isinstance(error, InvalidOperationException) and kind == "namespace" and "not empty" in text:
        return NotEmpty(f"{about} is not empty: drop its content first", kind=kind)
    if isinstance(error, _CALLERS):
        return BadRequest(f"{about}: the source reports: {text}")
    if isinstance(error, MetaException):
        return SourceFailed(f"The source failed on {about}: check its log", detail=text)
    if changes:
        return StateUnknown(
            f"The source stopped responding while {about} was changed: check whether it was changed", detail=text
        )
    return SourceFailed("The source does not answer: try again, or check that system", detail=text)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TEXT_MAX else f"{line[:_TEXT_MAX]}…"
