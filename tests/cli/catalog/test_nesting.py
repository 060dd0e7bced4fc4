# SPDX-License-Identifier: Apache-2.0
"""`names`: the requests and the output of each command, and exit codes for scripts."""

from __future__ import annotations

from tests.cli.conftest import Run
from tests.client.fake import FakeServer

NAMES = "/api/limnos/v1/metalakes/lake/catalogs/main/names"
CHANGED = {
    "state": "planned",
    "separator": ":",
    "replacement": "_",
    "nests": True,
    "planned_by": "ana",
    "planned_at": "x",
    "total": 2,
    "renamed": 0,
    "nested": 0,
    "left": 0,
    "done": True,
}
ROWS = [
    {"name": "a:b", "new_name": "a_b", "path": ["a", "b"], "step": "planned"},
    {"name": "a::b", "new_name": "a__b", "path": None, "step": "planned"},
]


def test_check_lists_names_with_separator_and_exits_with_1(fake: FakeServer, limnos: Run) -> None:
    """Exit code 0 if no name contains the separator; else 1, with the names and the command that plans their
    migration.
    """
    name_check = {"nested": False, "separator": ":", "conflicts": 1, "names": ["a:b"], "free": ["$"]}
    fake.on("GET", NAMES, {**name_check, "conflicts": 0, "names": [], "free": []}).on("GET", NAMES, name_check)

    clean, failed_check = limnos("names", "check"), limnos("names", "check", "main")

    assert (clean.code, failed_check.code) == (0, 1)
    assert failed_check.result == [{"name": "a:b"}]
    assert "no name contains $" in failed_check.err
    assert "limnos names plan main" in failed_check.err


def test_plan_continues_to_completion_and_names_are_paged(fake: FakeServer, limnos: Run) -> None:
    """A plan that takes several batches is continued until it is complete. Names are listed by page."""
    fake.on("PUT", f"{NAMES}/changes", {**CHANGED, "state": "planning", "done": False})
    fake.on("POST", f"{NAMES}/changes", {**CHANGED, "state": "planning", "done": False}).on(
        "POST", f"{NAMES}/changes", CHANGED
    )
    fake.on("GET", f"{NAMES}/changes?after=0&limit=1000", {**CHANGED, "changes": ROWS[:1], "after": 7})
    fake.on("GET", f"{NAMES}/changes?after=7&limit=999", {**CHANGED, "changes": ROWS[1:], "after": None})

    done = limnos("names", "plan", "--replacement", "_")

    assert [(row["name"], row["becomes"]) for row in done.result] == [("a:b", "a.b"), ("a::b", "a__b")]  # type: ignore[attr-defined]
    assert "planned: 2 names; each loses ':', then namespaces nest" in done.err
    assert fake.asked[0].body == {"replacement": "_", "nested": True}
    assert limnos("names", "show").result == done.result


def test_migrate_and_undo_send_batches_until_complete(fake: FakeServer, limnos: Run) -> None:
    """`migrate` and `undo` send one request per batch until they are complete; `confirm` deletes the plan."""
    fake.on("POST", f"{NAMES}/changes", {**CHANGED, "state": "renaming", "done": False})
    fake.on("POST", f"{NAMES}/changes", {**CHANGED, "state": "migrated", "nested": 1, "renamed": 0, "left": 1})
    fake.on("DELETE", f"{NAMES}/changes", {"confirmed": "main"})

    assert limnos("names", "migrate", "--yes").result["left"] == 1  # type: ignore[index]
    assert limnos("names", "undo", "--yes").code == 0
    assert limnos("names", "confirm", "--yes").result == {"confirmed": "main"}
    assert [request.body for request in fake.asked[:3]] == [{"to": "migrated"}, {"to": "migrated"}, {"to": "undone"}]


def test_undo_of_empty_plan_reports_no_restored_names(fake: FakeServer, limnos: Run) -> None:
    """The undo of a plan without names reports that nothing was restored."""
    fake.on(
        "POST", f"{NAMES}/changes", {**CHANGED, "state": "undone", "total": 0, "renamed": 0, "nested": 0, "left": 0}
    )

    done = limnos("names", "undo", "--yes", "--output", "table")

    assert "there was nothing to restore" in done.out
    assert "former names" not in done.out
