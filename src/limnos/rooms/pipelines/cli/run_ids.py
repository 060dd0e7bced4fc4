# SPDX-License-Identifier: Apache-2.0
"""Ids of runs as a user types them: whole, their beginning, or `last` for the newest run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from limnos.cli.failures import UsageError
from limnos.cli.operation.short_ids import whole_id

if TYPE_CHECKING:
    from limnos.client import Client

LAST: Final = "last"
"""The word for the newest run."""
SEARCHED_MAX: Final = 1000
"""The number of newest runs among which a short id is searched."""


def complete_run_id(client: Client, typed: str) -> str:
    """Return the id of the run whose id begins with what was typed, or of the newest run for the word `last`.

    Raises UsageError if several ids begin so, and if there is no run.
    """
    if typed == LAST:
        newest = next(iter(client.runs.list(limit=1)), None)
        if newest is None:
            raise UsageError("there is no run yet that you may see", hint="'limnos pipeline run FILE' starts one")
        return newest.id
    return whole_id(typed, kind="run", ids=lambda: (each.id for each in client.runs.list(limit=SEARCHED_MAX)))
