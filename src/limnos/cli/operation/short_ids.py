# SPDX-License-Identifier: Apache-2.0
"""Short ids: the beginning of the id of a run or a job, as the console prints it, wherever it is unique.

A whole id costs no further request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from limnos.cli.failures import UsageError

WHOLE: Final = 36
"""The length of a UUID."""
SHORT_MIN: Final = 4


def is_short(typed: str) -> bool:
    """Return whether a text is as long as the beginning of an id that is searched."""
    return SHORT_MIN <= len(typed) < WHOLE


def whole_id(typed: str, *, kind: str, ids: Callable[[], Iterable[str]]) -> str:
    """Return the id that begins with what was typed; the text itself if it is a whole id, or if no id begins so.

    Raises UsageError if several ids begin so.
    """
    if not is_short(typed):
        return typed
    matches = sorted({each for each in ids() if each.startswith(typed)})
    if len(matches) > 1:
        listed = ", ".join(matches[:5])
        raise UsageError(
            f"{len(matches)} {kind}s begin with '{typed}': {listed}", hint="type more characters of the id"
        )
    return matches[0] if matches else typed
