# SPDX-License-Identifier: Apache-2.0
"""Names that contain the separator, over the admin API: check, plan, list, change, undo, confirm; bad input."""

from __future__ import annotations

import pytest

from tests.http.driver import API, OWN, DriverNode
from tests.http.iceberg.wire import SPACES, make_space
from tests.http.interference import InterferencePoint, interfere

pytestmark = pytest.mark.slow

NAMES = f"{OWN}/metalakes/lake/catalogs/main/names"
CHANGES = f"{NAMES}/changes"


def furnish(node: DriverNode) -> None:
    """Create three names that contain a semicolon, at several depths."""
    for levels in (("a;b",), ("c", "d;e"), ("f;g;h",)):
        make_space(node, *levels[:1])
        if len(levels) > 1:
            make_space(node, *levels)


def test_names_with_the_separator_are_migrated_and_restored(node: DriverNode) -> None:
    """Names with the separator are found, planned, changed and restored. Each answer has the progress, and the pages of
    the plan are complete.
    """
    furnish(node)

    name_report = node.get(f"{NAMES}?separator=%3B&limit=2").json()
    planned = node.put(CHANGES, {"separator": ";", "replacement": "-"}).json()
    first = node.get(f"{CHANGES}?limit=2").json()
    rest = node.get(f"{CHANGES}?limit=2&after={first['after']}").json()
    changed = node.post(CHANGES, {"to": "migrated"}).json()

    assert name_report == {
        "nested": True,
        "separator": ";",
        "conflicts": 3,
        "names": ["a;b", "d;e"],
        "free": [":", "$"],
    }
    assert (planned["state"], planned["total"], planned["nests"]) == ("planned", 3, False)
    assert [each["name"] for each in first["changes"] + rest["changes"]] == ["a;b", "d;e", "f;g;h"]
    assert first["changes"][0] == {"name": "a;b", "new_name": "a-b", "path": None, "step": "planned"}
    assert rest["after"] is None
    assert (changed["state"], changed["done"], changed["renamed"]) == ("migrated", True, 3)
    assert node.get(f"{NAMES}?separator=%3B").json()["conflicts"] == 0
    assert [node.post(CHANGES, {"to": "undone"}).json()["state"] for _ in range(2)] == ["unrenaming", "planned"]
    assert node.get(f"{NAMES}?separator=%3B").json()["conflicts"] == 3
    assert node.delete(CHANGES).json() == {"confirmed": "main"}
    assert node.get(CHANGES).status == 404


@pytest.mark.parametrize(
    "method,path,body,message",
    [
        ("GET", f"{NAMES}?separator=ab", None, "is not allowed"),
        ("GET", f"{NAMES}?limit=0", None, "limit"),
        ("GET", f"{NAMES}?limit=1001", None, "limit"),
        ("GET", f"{CHANGES}?after=x", None, "page token"),
        ("PUT", CHANGES, {"replacement": ":"}, "cannot replace"),
        ("PUT", CHANGES, {"seperator": ";"}, "seperator"),
        ("PUT", CHANGES, {"nested": "yes"}, "nested"),
        ("POST", CHANGES, {"to": "done"}, "planned, migrated, undone"),
        ("POST", CHANGES, {}, "to"),
    ],
)
def test_bad_input_is_400_and_names_the_problem(
    node: DriverNode, method: str, path: str, body: object, message: str
) -> None:
    """Bad input is 400, and the message names the problem."""
    answer = node.ask(method, path, body)

    assert answer.status == 400
    assert message in answer.json()["error"]["message"]


def test_requests_without_a_plan_are_404(node: DriverNode) -> None:
    """Without a plan, show, change and confirm are 404. The message names the command that creates a plan."""
    for method, body in (("GET", None), ("POST", {"to": "migrated"}), ("DELETE", None)):
        answer = node.ask(method, CHANGES, body)
        assert (answer.status, "limnos names plan main" in answer.json()["error"]["message"]) == (404, True)


@pytest.mark.parametrize("target", [f"{NAMES}?separator=%3B", CHANGES])
def test_names_are_read_with_the_rights_at_the_end_of_the_request(
    node: DriverNode, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """A user who stops owning the catalog after the decision and before the read is refused, and sees neither a new
    name nor a new plan.
    """
    owners = f"{API}/lake/owners/CATALOG/main"
    node.done("POST", f"{API}/lake/users", {"name": "ana"})
    node.done("PUT", owners, {"name": "ana", "type": "USER"})

    async def act() -> None:
        for method, path, body in (
            ("PUT", owners, {"name": "admin", "type": "USER"}),
            ("POST", SPACES, {"namespace": ["late;name"]}),
            ("PUT", CHANGES, {"separator": ";", "replacement": "-"}),
        ):
            answer = await node.answer(method, path, body)
            assert answer.status == 200, answer

    with interfere(node, monkeypatch, step=InterferencePoint.READ, act=act) as interference:
        answer = node.get(target, user="ana")

    assert interference.is_done
    assert (answer.status, b"late" in answer.body) == (403, False), answer
