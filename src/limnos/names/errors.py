# SPDX-License-Identifier: Apache-2.0
"""`InvalidName`, the only exception of this package: a name, or its encoded form, is not allowed.

Must not know status codes or protocols: callers convert an `InvalidName` to an error class of their protocol with the
same message.
"""

from __future__ import annotations

from typing import Literal

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


class InvalidName(ValueError):
    """A name violates a rule.

    `reason` is a stable machine-readable code, such as `too-many-parts`; `message` gives advice.
    """

    reason: Reason
    message: str

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(reason, message)  # both arguments, so that Spark's workers can unpickle it
        self.reason = reason
        self.message = message

    def __str__(self) -> str:
        return self.message
