# SPDX-License-Identifier: Apache-2.0
"""Short ids: the beginning of the id of a run or a job, as the console prints it, wherever it is unique; `last` for the
newest run.

A whole id costs no further request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from limnos.cli.failures import UsageError

if TYPE_CHECKING:
    from limnos.client import Client

WHOLE: Final = 36
"""The length of a UUID."""
SHORT_MIN: Final = 4
LAST: Final = "last"
"""The word for the newest run."""
SEARCHED_MAX: Final = 1000
"""The number of newest runs among which a short id is searched."""


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


def whole_run_id(client: Client, typed: str) -> str:
    """Return the id of the run whose id begins with what was typed, or of the newest run for the word `last`.

    Raises UsageError if several ids begin so, and if there is no run.
    """
    if typed == LAST:
        newest = next(iter(client.runs.list(limit=1)), None)
        if newest is None:
            raise UsageError("there is no run yet that you may see", hint="'limnos pipeline run FILE' starts one")
        return newest.id
    return whole_id(typed, kind="run", ids=lambda: (each.id for each in client.runs.list(limit=SEARCHED_MAX)))


def whole_job_id(client: Client, typed: str) -> str:
    """Return the id of the job whose id begins with what was typed. Raises UsageError if several do."""
    return whole_id(typed, kind="job", ids=lambda: (each.job_id for each in client.jobs.list()))
