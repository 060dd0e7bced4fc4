# SPDX-License-Identifier: Apache-2.0
"""Mutations of restrictions and scan plans for the kill tests: a restriction is set, replaced and removed; a plan is
started and cancelled.
"""

from __future__ import annotations

import json

from tests.faults.mutations import Case
from tests.faults.rig import Rig
from tests.nodes.planned_tables import plan, restriction_path, table_with_parts
from tests.nodes.wire import namespace_body, namespace_path, table_body

FIRST = {"filter": "id > 1", "masks": {}}
SECOND = {"filter": "id > 2", "masks": {"id": "replace-with-null"}}


def _table(rig: Rig) -> str:
    tag = rig.tag()
    rig.admin.do("POST", namespace_path(tag).rpartition("/")[0], namespace_body(tag))
    rig.admin.do("POST", f"{namespace_path(tag)}/tables", table_body("t"))
    return tag


def _set(rig: Rig, tag: str) -> list[object]:
    """Return for each restriction of the table whether it has the second filter, and its number of masks."""
    restrictions = rig.admin.do("GET", restriction_path(tag).removesuffix("/r")).body["restrictions"]
    return [("2" in json.dumps(each["filter"]), len(each["masks"])) for each in restrictions]  # type: ignore[attr-defined]


def _is(rig: Rig, tag: str, *, before: list[object], after: list[object]) -> bool:
    stored_restrictions = _set(rig, tag)
    assert stored_restrictions in (before, after), f"half: {stored_restrictions}"
    return stored_restrictions == after


def restriction_set(rig: Rig) -> Case:
    """Set a restriction on a table."""
    tag = _table(rig)
    return Case(
        method="PUT",
        path=restriction_path(tag),
        body=FIRST,
        is_done=lambda: _is(rig, tag, before=[], after=[(False, 0)]),
    )


def restriction_change(rig: Rig) -> Case:
    """Replace a restriction: afterwards it has either the old or the new terms, never a mixture."""
    tag = _table(rig)
    rig.admin.do("PUT", restriction_path(tag), FIRST)
    return Case(
        method="PUT",
        path=restriction_path(tag),
        body=SECOND,
        is_done=lambda: _is(rig, tag, before=[(False, 0)], after=[(True, 1)]),
    )


def restriction_remove(rig: Rig) -> Case:
    """Remove a restriction."""
    tag = _table(rig)
    rig.admin.do("PUT", restriction_path(tag), FIRST)
    return Case(
        method="DELETE",
        path=restriction_path(tag),
        body=None,
        is_done=lambda: _is(rig, tag, before=[(False, 0)], after=[]),
    )


def plan_begin(rig: Rig) -> Case:
    """Begin a plan whose result has several parts."""
    path = table_with_parts(rig.admin, rig.tag())
    stored_plans = "SELECT count(*) FROM scan_plan WHERE parts <> ''"
    ((before,),) = rig.rows(stored_plans)
    return Case(method="POST", path=f"{path}/plan", body={}, is_done=lambda: rig.rows(stored_plans) != [(before,)])


def plan_cancel(rig: Rig) -> Case:
    """Cancel a plan."""
    path = table_with_parts(rig.admin, rig.tag())
    at = f"{path}/plan/{plan(rig.admin, path).body['plan-id']}"

    def is_done() -> bool:
        status = rig.admin.do("GET", at).body["status"]
        assert status in ("completed", "cancelled"), status
        return status == "cancelled"

    return Case(method="DELETE", path=at, body=None, is_done=is_done, again=(204,))


MUTATIONS = (restriction_set, restriction_change, restriction_remove)
WITHOUT_CHANGES = (plan_begin, plan_cancel)
"""Mutations that leave no change in the feed and move no clock."""
