# SPDX-License-Identifier: Apache-2.0
"""Maps errors of Lance's library to the server's errors.

Must not know requests. The library's errors can only be distinguished by their messages. Paths of its source files are
removed from messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from limnos.model import errors

NO_TABLE: Final = re.compile(r"Dataset at path .* was not found|Not found: .*_versions", re.DOTALL)
NO_TAG: Final = re.compile(r"tag .* does not exist", re.IGNORECASE)
DAMAGED: Final = re.compile(
    r"corrupt|Invalid manifest|magic|protobuf|decode|File .* too small|unexpected", re.IGNORECASE
)
REMOTE: Final = re.compile(r"(?!file:)[a-z0-9+]+://", re.IGNORECASE)
"""Errors that on a local disk mean a damaged file; on a remote store the connection may have failed."""
REFUSED: Final = re.compile(
    r"access ?denied|forbidden|permission|credential|Unauthenticated|status.{0,10}(401|403)", re.IGNORECASE
)
SYSTEM: Final = re.compile(r"os error (?:5|12|23|24|27|28|30|116|122)\)")
"""Errors of the system: the disk is full, read-only or broken, or there are no more files or memory. The table is
unchanged.
"""
PANIC: Final = "PanicException"
"""The type of a panic in the library's Rust code. It is a BaseException, not an Exception."""
_SOURCE: Final = re.compile(r",? *(?:location: )?/\S*?\.rs:\d+:\d+")
_WRAPPED: Final = re.compile(
    r"^(?:Invalid user input: |LanceError\(\w+\): |Schema error: |External error: |(?:Query )?Execution error: |Error"
    r" applying filter expression to batch: |Arrow error: )+"
)
_SCHEMA: Final = re.compile(r" (?:in|dataset) schema: +Schema \{.*", re.DOTALL)
_BRIEF: Final = 400
_CALLERS: Final[tuple[tuple[re.Pattern[str], Callable[[str], errors.LimnosError]], ...]] = (
    (re.compile(r"Duplicate field name"), lambda _: errors.BadRequest("A column of that name exists already")),
    (re.compile(r"No field named"), lambda text: errors.NotFound(text, kind="column")),
    (
        re.compile(
            r"(?:Column|Field|column) ['\"]?[^'\"]*['\"]? (?:does not exist|not found)|not found in schema|Embedding"
            r" column|FTS field path"
        ),
        lambda text: errors.NotFound(text, kind="column"),
    ),
    (re.compile(r"different schema"), errors.SchemaMismatch),
    (re.compile(r"Index name .* already exists"), lambda text: errors.AlreadyExists(text, kind="index")),
    (re.compile(r"[Ii]ndex not found|Index \".*\" not found"), lambda text: errors.NotFound(text, kind="index")),
    (
        re.compile(r"[Cc]ommit conflict|Too many concurrent writers|[Ii]ncompatible transaction|[Cc]onflicting"),
        lambda text: errors.CommitConflict(f"Another client changed the table concurrently ({text}): try again"),
    ),
    (
        re.compile(r"Dataset already exists"),
        lambda _: errors.CommitConflict("Another client created the table concurrently: try again"),
    ),
    (re.compile(r"contains null|non-nullable"), errors.SchemaMismatch),
)
"""Errors that the caller caused, by the library's message."""
_CALLERS_FAULT: Final = re.compile(
    r"Invalid user input|Cannot (?:cast|drop)|LanceError\((?:Schema|Arrow)\)|sql parser"
    r" error|supported|NotSupported|Unsupported|must be|Query vector"
    r"|Error applying filter expression|Arrow error: (?:Divide by zero|Cast error|Compute error|Parser"
    r" error|Arithmetic)"
    r"|(?<!Query )Execution error: |Compute error: |panicked with message|Task was aborted|producer terminated before"
    r" end of stream"
)
"""Further errors that the caller caused.

The last ones are expressions that fail for a row, such as a cast of a string that is not a number.
"""


@contextmanager
def translate_library_errors(location: str) -> Iterator[None]:
    """Translate the library's errors in the body of a `with` to errors of `model`. `location` is the table, for
    messages.
    """
    try:
        yield
    except (KeyError, TypeError) as error:
        raise _of_caller(str(error.args[0] if error.args else error)) or errors.BadRequest(
            shorten_message(str(error))
        ) from error
    except (OSError, ValueError, RuntimeError) as error:
        raise failure_of(location, str(error)) from error
    except BaseException as error:
        request = unfit_value_error(error)
        if request is None:
            raise
        raise request from error


def unfit_value_error(error: BaseException) -> errors.BadRequest | None:
    """Return the error for a value that makes the library panic or overflow; None for other failures."""
    if type(error).__name__ == PANIC:
        return errors.BadRequest(f"The library cannot do this: {shorten_message(str(error))}")
    if isinstance(error, OverflowError):
        return errors.BadRequest(
            f"A number is negative, or larger than the library supports: {shorten_message(str(error))}"
        )
    return None


def failure_of(location: str, text: str) -> errors.LimnosError:
    """Map a message of the library to an error of `model`. `location` is the table, for the message."""
    message = shorten_message(text)
    error = _of_caller(text)
    if error is not None:
        return error
    if REFUSED.search(text):
        return errors.StorageFailed(
            f"The storage refused access to {location}: check the catalog's credentials ({message})"
        )
    if SYSTEM.search(text):
        return errors.StorageFailed(
            f"The storage of {location} cannot be used ({message}): the server's operator should check whether it is"
            " full or read-only"
        )
    if DAMAGED.search(text) or NO_TABLE.search(text) or not REMOTE.match(location):
        return errors.InvalidTable(
            f"At {location} there is no readable Lance table ({message}): restore its files, or deregister it"
        )
    return errors.StorageFailed(f"The table at {location} could not be read or written ({message})")


def _of_caller(text: str) -> errors.LimnosError | None:
    message = shorten_message(text)
    for pattern, kind in _CALLERS:
        if pattern.search(text):
            return kind(message)
    return errors.BadRequest(message) if _CALLERS_FAULT.search(text) else None


def shorten_message(text: str) -> str:
    """Return a message of the library without source paths and internal prefixes, at a limited length."""
    message = _WRAPPED.sub("", _SOURCE.sub("", text.strip("'\"() ,"))).strip()
    return _SCHEMA.sub(" in the table", message)[:_BRIEF]
