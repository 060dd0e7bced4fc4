# SPDX-License-Identifier: Apache-2.0
"""The operations page: tasks by state with a retry button, webhooks, and the needed rights."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from limnos.app.node_builder import DATABASE_FILE
from tests.http.driver import API, OWN, DriverNode
from tests.rooms.console.http.visitor import ConsoleVisitor, text_of

PAGE = "/console/operations"
URL = "https://hooks.example.com/limnos"


def add_dead_task(node: DriverNode) -> int:
    """Create a task that failed for good."""
    with closing(sqlite3.connect(node.data / DATABASE_FILE)) as connection, connection:
        connection.execute(
            "INSERT INTO task (id, kind, payload, created_at, due_at, leased_until, attempts, ended_at, error)"
            " VALUES (990001, 'purge-table', '{\"canary\": 1}', 1, 1, 0, 5, 2, 'no such file')"
        )
    return 990001


def test_dead_task_is_shown_and_retried(lake: DriverNode) -> None:
    """The page shows the error of a failed task. Its button makes the task due again."""
    number = add_dead_task(lake)
    admin = ConsoleVisitor(lake).sign_in()

    page = admin.read(PAGE)
    answer = admin.post("/console/tasks/retry", {"id": str(number), "state": "dead"})

    for words in ("purge-table", "no such file", "task 990001"):
        assert words in page.text
    assert "Task 990001 is due" in admin.read(answer.headers["location"]).text
    assert "no such file" not in admin.read(PAGE).text
    assert "task 990001" in admin.read(f"{PAGE}?state=waiting").text


def test_waiting_tasks_show_the_time_until_they_run(lake: DriverNode) -> None:
    """A task of the future is shown with the time until it runs; an overdue task is shown as due."""
    add_dead_task(lake)
    with closing(sqlite3.connect(lake.data / DATABASE_FILE)) as connection, connection:
        connection.execute("UPDATE task SET ended_at = NULL, error = NULL WHERE id = 990001")
        connection.execute(
            "INSERT INTO task (id, kind, payload, created_at, due_at, leased_until, attempts)"
            " VALUES (990002, 'purge-table', '{}', 1, ?, 0, 0)",
            [4_000_000_000_000],
        )

    page = ConsoleVisitor(lake).sign_in().read(f"{PAGE}?state=waiting").text

    assert "ago due 5" in page
    assert "task 990002 in " in page


def test_wrong_requests_are_refused(lake: DriverNode) -> None:
    """An unknown state or task, and a malformed id, are refused."""
    admin = ConsoleVisitor(lake).sign_in()

    assert admin.get(f"{PAGE}?state=odd").status == 400
    assert admin.post("/console/tasks/retry", {"id": "990001"}).status == 404
    assert admin.post("/console/tasks/retry", {"id": "x"}).status == 400


def test_owner_of_the_metalake_sees_webhooks_and_no_tasks(lake: DriverNode) -> None:
    """The metalake's owner sees webhooks but no tasks; members see neither."""
    number = add_dead_task(lake)
    lake.done("POST", f"{OWN}/metalakes/lake/webhooks", {"url": URL})
    for name in ("olga", "ana"):
        lake.done("POST", f"{API}/lake/users", {"name": name})
    lake.done("PUT", f"{API}/lake/owners/metalake/lake", {"name": "olga", "type": "USER"})

    olga, ana = (ConsoleVisitor(lake).sign_in(user) for user in ("olga", "ana"))
    page = olga.read(PAGE)

    assert URL in page.text
    assert "delivers" in page.text
    assert "canary" not in page.text
    assert ana.get(PAGE).status == 403
    assert URL not in text_of(ana.get(PAGE))
    for visitor in (olga, ana):
        assert visitor.post("/console/tasks/retry", {"id": str(number)}).status == 403
