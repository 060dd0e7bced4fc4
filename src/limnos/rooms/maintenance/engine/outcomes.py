# SPDX-License-Identifier: Apache-2.0
"""Names and outcomes of operations: results as text, the errors after which an operation is retried later, and error
messages without tokens.

Must not know the runners.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from limnos.model.errors import ServiceUnavailable, UnsupportedOperation
from limnos.rooms.maintenance.engine.executor import FAILED, YIELDED, OperationEnd

CATALOG: Final = "maintained"
"""The name of the catalog in each Spark session, regardless of its name on the server.

Spark's event log masks only the keys in the start settings, so the token's key must be set at the start.
"""
_GIVES_WAY: Final = re.compile(
    r"CommitFailedException|ValidationException|Cannot commit|missing required files|Cannot determine history",
    re.IGNORECASE,
)
_TOKEN: Final = re.compile(r"lim_\d+_\S+")
_MESSAGE_MAX: Final = 1_000


class RewriteCount(NamedTuple):
    """The counts of files of a kind that a rewrite removed and added, and of those that it left unchanged because their
    part of the rewrite failed, in general by a conflict with another commit.
    """

    noun: str
    removed: int
    added: int
    failed: int = 0

    @property
    def text(self) -> str:
        """The counts as text."""
        unchanged = f" ({self.failed} are unchanged: conflicts with other commits, or errors)" if self.failed else ""
        return f"{self.removed} {self.noun} became {self.added}{unchanged}"


def data_file_count(removed: int, added: int, *, failed: int) -> RewriteCount:
    """Return the counts of a rewrite of data files, which may have failed in part (Iceberg's partial progress).

    Raises ServiceUnavailable, after which the operation is retried, if all parts failed. Iceberg does not return the
    reasons; its log has them.
    """
    if failed and not removed:
        raise ServiceUnavailable(
            f"The rewrite of all {failed} files failed: conflicts with other commits, or errors that Spark's log has"
        )
    return RewriteCount("files", removed, added, failed)


def rewrite_text(counts: Sequence[RewriteCount]) -> str:
    """Return the result of a rewrite as text, such as `12 files became 1`."""
    texts = [each.text for each in counts if each.removed or each.added]
    return "; ".join(texts) or "nothing to rewrite"


def quote_identifier(name: str) -> str:
    """Return a name as a quoted identifier of Spark SQL, in which a backslash has no meaning."""
    return f"`{name.replace('`', '``')}`"


def table_identifier(path: Sequence[str]) -> str:
    """Return a table's name in a session's catalog, for Spark SQL."""
    return ".".join(map(quote_identifier, (CATALOG, *path)))


def end_of_error(error: Exception) -> OperationEnd:
    """Return the outcome of an operation that raised an error: `yielded` for a conflict with a writer, or if Spark is
    unavailable, busy or lacks a feature; else `failed`.
    """
    if isinstance(error, ServiceUnavailable | UnsupportedOperation):
        return OperationEnd(YIELDED, error.message)
    text = error_text(error)
    return OperationEnd(YIELDED if _GIVES_WAY.search(text) else FAILED, text)


def error_text(error: BaseException) -> str:
    """Return the message of an error of Java or Python, without its stack and without tokens."""
    java: Any = getattr(error, "java_exception", None)
    parts: list[str] = []
    while java is not None and len(parts) < 5:
        parts.append(f"{java.getClass().getSimpleName()}: {java.getMessage()}")
        java = java.getCause()
    text = "; ".join(parts) or f"{type(error).__name__}: {error}".partition("\n\nJVM stacktrace")[0]
    return _TOKEN.sub("a token", text)[:_MESSAGE_MAX]
