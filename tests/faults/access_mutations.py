# SPDX-License-Identifier: Apache-2.0
"""Kill tests of presets: a role, its assignment, and grants on three objects are one change."""

from __future__ import annotations

from tests.faults.mutations import Case, _may_load, new_table
from tests.faults.rig import Rig
from tests.nodes.wire import GRAVITINO, OWN, WireAnswer

PRESETS = f"{OWN}/metalakes/lake/access/presets"


def _rest(answer: WireAnswer, name: str) -> dict[str, list[object]]:
    """Return an object of an answer."""
    part = answer.body[name]
    assert isinstance(part, dict)
    return part


def _preset(rig: Rig, *, change: str) -> Case:
    tag = new_table(rig)
    user = f"user_{tag}"
    rig.admin.do("POST", f"{GRAVITINO}/users", {"name": user})
    body = {"preset": "reader", "kind": "table", "path": ["main", tag, "t"], "user": user}
    if change == "revoke":
        rig.admin.do("POST", PRESETS, {"change": "grant", **body})

    def is_done() -> bool:
        role = rig.admin.ask("GET", f"{GRAVITINO}/roles/user:{user}")
        objects = _rest(role, "role")["securableObjects"] if role.status == 200 else []
        assert len(objects) in (0, 3), f"a part of a preset: {objects}"
        roles = _rest(rig.admin.ask("GET", f"{GRAVITINO}/users/{user}"), "user")["roles"]
        assert bool(roles) is (role.status == 200), "a role without its user"
        assert _may_load(rig, user, tag) is bool(objects)
        return bool(objects) is (change == "grant")

    return Case(method="POST", path=PRESETS, body={"change": change, **body}, is_done=is_done)


def preset_grant(rig: Rig) -> Case:
    """Grant a preset on a table to a user without a role."""
    return _preset(rig, change="grant")


def preset_revoke(rig: Rig) -> Case:
    """Revoke a preset, and with it the use of namespace and catalog."""
    return _preset(rig, change="revoke")


MUTATIONS = (preset_grant, preset_revoke)
