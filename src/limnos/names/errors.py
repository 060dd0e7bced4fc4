# SPDX-License-Identifier: Apache-2.0
"""`LimnosError`, the base of all errors with a message for the caller, and `InvalidName`, which this package raises.

Must not know status codes or protocols: `limnos.model.errors` has the other classes.
"""

from __future__ import annotations

from copy import copy
from typing import ClassVar, Literal, Self

Reason = Literal[
    "ambiguous",  # one spelling, several live objects
    "bad-escape",  # `%` or `\` or `@` followed by what it may not escape
    "bad-quotes",  # a quote that is not closed, or characters next to a quoted part
    "bad-separator",  # a separator or delimiter that may not be configured
    "bad-type",  # a number, null or object instead of a string or a list of strings
    "bad-utf8",  # bytes that are not UTF-8, or text that has no UTF-8 form
    "case-folded",  # an engine that folds case cannot reach the part
    "dot-part",  # `.` or `..`
    "empty-name",  # no part at all
    "empty-part",  # a part without a character
    "forbidden-character",  # a character that no name, or no name of this kind, may hold
    "name-pattern",  # a pattern stricter than the tree's own
    "not-nested",  # several parts where the catalog has one level of namespaces
    "part-too-long",
    "reserved-name",
    "separator-in-part",  # the part could not be distinguished from two parts
    "separator-taken",  # stored names hold the separator
    "too-few-parts",
    "too-many-parts",
]


class LimnosError(Exception):
    """An error with a message that the caller may see.

    `message` is public: what is wrong, on which object, and what to do. `context` is for the log only. `code` is
    stable.
    """

    code: ClassVar[str] = "internal"

    def __init__(self, message: str, **context: object) -> None:
        super().__init__(message)
        self.message = message
        self.context = context

    def __reduce__(self) -> tuple[object, ...]:
        """Support copy and pickle with all fields.

        The default implementation calls the constructor, which may require keyword arguments.
        """
        return _restore, (type(self), {**self.__dict__, "args": self.args})

    def with_message(self, message: str) -> Self:
        """Return a copy of the same class with another message; all other fields are copied."""
        changed_error = copy(self)
        changed_error.message, changed_error.args, changed_error.context = message, (message,), dict(self.context)
        return changed_error


def _restore(cls: type[LimnosError], fields: dict[str, object]) -> LimnosError:
    """Build an error from its fields without calling its constructor, for unpickling."""
    error = cls.__new__(cls)
    for name, value in fields.items():
        setattr(error, name, value)
    return error


class InvalidName(LimnosError, ValueError):
    """A name violates a rule of the tree, or of the encoding in which it was sent.

    `reason` is a stable machine-readable code, such as `too-many-parts`; `message` gives advice. It is a ValueError, so
    that msgspec tells the place of an invalid name in a document.
    """

    code = "illegal-name"
    reason: Reason

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
