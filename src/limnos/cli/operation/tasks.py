# SPDX-License-Identifier: Apache-2.0
"""`task list | show | retry`: background tasks of the server.

The commands are for service admins.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from cyclopts import App

from limnos.cli.common import DEFAULTS, CommonFlags
from limnos.cli.output import show_done, show_fields, show_rows

app = App(name="task")


@app.command(name="list")
def list_tasks(*, state: Literal["dead", "waiting", "done"] = "dead", common: CommonFlags = DEFAULTS) -> None:
    """List background tasks of the server, such as purges; by default failed tasks.

    Parameters
    ----------
    state
        `dead`: failed permanently; `waiting`: waiting or running; `done`: completed with a report.
    """
    with common.client() as client:
        rows = [msgspec.structs.asdict(task) for task in client.tasks.list(state=state)]
    columns = ["id", "kind", "state", "attempts", "created_at", "due_at", "ended_at", "error"]
    show_rows(rows, columns, output_format=common.output_format, empty=f"no tasks are {state}")


@app.command
def show(task_id: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Show a task with its arguments, attempts and result.

    Parameters
    ----------
    task_id
        Its id, as `limnos list tasks` shows it.
    """
    with common.client() as client:
        show_fields(msgspec.structs.asdict(client.tasks.load(task_id)), output_format=common.output_format)


@app.command
def retry(task_id: str, /, *, common: CommonFlags = DEFAULTS) -> None:
    """Retry a waiting or failed task now.

    Parameters
    ----------
    task_id
        Its id, as `limnos list tasks` shows it.
    """
    with common.client() as client:
        client.tasks.retry(task_id)
    show_done(f"task {task_id} will be retried", {"retried": task_id}, output_format=common.output_format)
