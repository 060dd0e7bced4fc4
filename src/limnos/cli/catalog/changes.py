# SPDX-License-Identifier: Apache-2.0
"""`changes`: shows the change feed.

Prints each change once, in feed order, and the next feed position at the end, also after an interruption.
"""

from __future__ import annotations

import sys
import time
from typing import Annotated

from cyclopts import Parameter

from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.output import Format, to_json, visible
from limnos.client.errors import UnavailableError
from limnos.client.values import ChangeInfo, ChangesPage
from limnos.names.display import render

WAIT_S_MAX = 20
PAUSE_S = 2.0
"""The pause between retries of `--follow` while the server does not respond, in seconds."""


def changes(
    *,
    catalog: str | None = None,
    after: str | None = None,
    follow: Annotated[bool, Parameter(negative="")] = False,
    common: CommonFlags = DEFAULTS,
) -> None:
    """Show the committed changes that are visible to you: all retained changes, or the changes after a position.

    With `--follow` it waits for more changes, even while the server restarts. At its end it prints the next position.
    As JSON, each line is one response of the server: its changes, and `next`, the position after them.

    Parameters
    ----------
    catalog
        Only changes in this catalog.
    after
        The position after which to begin, as an earlier call printed it; `now` or `oldest`.
    follow
        Show new changes as they are committed, until interrupted.
    """
    more, is_begun = True, False
    try:
        with common.client() as client:
            while more or follow:
                wait_s = min(WAIT_S_MAX, int(common.timeout / 2)) if follow and not more else None
                try:
                    page = client.changes.read(after=after, catalog=catalog, wait_s=wait_s)
                except UnavailableError:
                    if not (follow and is_begun):
                        raise
                    time.sleep(PAUSE_S)
                    continue
                _show(page, output_format=common.output_format)
                more, after, is_begun = page.more, page.next, True
    finally:
        if common.output_format == "table" and is_begun:
            print(f"continue with --after {after}", file=sys.stderr)


def _show(page: ChangesPage, *, output_format: Format) -> None:
    if output_format == "json":
        print(to_json(page, indent=-1), flush=True)
        return
    for change in page.changes:
        print(visible(_line(change)), flush=True)


def _line(change: ChangeInfo) -> str:
    """Format a change as a line of text: time, user, operation and object."""
    where = render(change.path) if change.path else "(not visible)" if change.kind != "role" else ""
    if change.operation == "move":
        where = f"{render(change.old) if change.old else '?'} -> {render(change.new) if change.new else '?'}"
    return f"{change.at}  {change.actor}  {change.operation} {change.kind} {where}"
