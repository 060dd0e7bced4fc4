# SPDX-License-Identifier: Apache-2.0
"""Maps errors of operating systems and object stores to the server's errors, with messages for the caller.

Must not know the stores.
"""

from __future__ import annotations

import errno
from typing import Final

from limnos.model import errors

TRIES_MAX: Final = 8
"""The maximum number of attempts to link a file while others create and delete files under its name."""
_TRANSIENT = frozenset({errno.EBUSY, errno.EIO, errno.EREMOTEIO, errno.EMFILE, errno.ENFILE})
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
_CLIENT_ERRORS = frozenset({"ConnectionError", "HTTPClientError", "ServiceRequestError", "ServiceResponseError"})
_NO_SUCH_FILE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


def missing_error(location: str, reason: str = "there is no such file") -> errors.MissingFile:
    """Build the error for a missing file. Iceberg's clients recognise the beginning of its message."""
    return errors.MissingFile(f"Failed to open input stream for file: {location}: {reason}", location=location)


def taken_error(location: str) -> errors.AlreadyExists:
    """Build the error for a new file whose name belongs to an existing file with different content."""
    return errors.AlreadyExists(
        f"File already exists: {location}. Files are never overwritten: write under a fresh name.",
        kind="file",
        location=location,
    )


def too_large_error(location: str, bytes_max: int) -> errors.TooLarge:
    """Build the error for a file that is longer than its reader allows."""
    return errors.TooLarge(f"File {location} is larger than {bytes_max} bytes and is not read.", location=location)


def storage_error(verb: str, location: str, error: Exception, *, remote: bool = False) -> errors.LimnosError:
    """Map an error of the operating system or an object store.

    Returns BadRequest for a name that is too long, NoSpace for a full disk, ServiceUnavailable if a retry may help,
    else StorageFailed. The message of a remote store is only logged, against server-side request forgery: a user may
    have chosen its URL to read the responses of internal hosts.
    """
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return errors.BadRequest(
            f"Location {location[:200]!r} has a part that is longer than its file system allows: shorten it"
        )
    reason = (
        "the object store refused, or did not answer; the server's log has its message" if remote else _reason(error)
    )
    text = f"Could not {verb} file {location}: {reason}."
    if isinstance(error, OSError) and error.errno in _NO_SPACE:
        return errors.NoSpace(f"{text} Free space there, then try again.", location=location, cause=_reason(error))
    if _is_transient(error):
        return errors.ServiceUnavailable(f"{text} Try again.", location=location, cause=_reason(error))
    return errors.StorageFailed(
        f"{text} Check that the location exists and that the server may use it: file permissions for local paths, the"
        " catalog's storage properties or the environment's credentials for object stores.",
        location=location,
        cause=_reason(error),
    )


def is_missing(error: Exception) -> bool:
    """Return whether an error means that the file does not exist.

    True also for a directory in place of the file, a file in place of a parent directory, and a name that is too long.
    """
    return isinstance(error, _NO_SUCH_FILE) or (isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG)


def is_refused(error: BaseException | None) -> bool:
    """Return whether an error means that access was denied.

    gcsfs reports this only in the message, Azure's library as an HTTP status.
    """
    if isinstance(error, PermissionError) or getattr(error, "status_code", None) in (401, 403):
        return True
    return isinstance(error, OSError) and str(error).startswith("Forbidden")


def _reason(error: Exception) -> str:
    words = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return words.rstrip(".")


def _is_transient(error: Exception) -> bool:
    if isinstance(error, (TimeoutError, ConnectionError)):
        return True
    if isinstance(error, OSError):
        return error.errno in _TRANSIENT
    # Clients of object stores raise connection errors of their own. Their base classes are compared by name, so that no
    # client has to be installed.
    return any(base.__name__ in _CLIENT_ERRORS for base in type(error).__mro__)
