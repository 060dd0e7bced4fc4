# SPDX-License-Identifier: Apache-2.0
"""`conformance/run lesser`: the uses of actions that it finds, the lesser action of each, and its detection of a
lowered one.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.lesser.__main__ import FIRST, HERE, THEN
from conformance.lesser.accepted_uses import read_judgements
from conformance.lesser.early_decisions import DEEP, SHALLOW, admits_more
from conformance.lesser.sites import lesser_of, sites
from limnos.access.actions import Action
from limnos.access.policy import POLICY, SERVER_ACTIONS
from tests.installed import ALL_ROOMS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
COMPOSED = """
from limnos.access.actions import actions_named, kind_action
from limnos.model.kinds import Kind
CREATES = actions_named("create", Kind.VIEW, Kind.TAG)
def drop(kind):
    return kind_action(kind, "drop")
def list_of(kind):
    return kind_action(kind, "list")
def change(kind, verb):
    return kind_action(kind, verb)
"""
TEXT = """
from limnos.access.actions import Action
ROUTE = (Action.TABLE_CREATE,)
def make(action=Action.TABLE_DROP):
    return Action.TABLE_COMMIT, action
def is_commit(action):
    return action is Action.TABLE_COMMIT
"""


def test_each_action_has_a_lesser_one_with_another_rule() -> None:
    """Each action has a lesser one with another rule, except for actions of service admins, lists, and actions that
    require the least.
    """
    none = [each.word for each in Action if lesser_of(each.word) is None]

    assert lesser_of("table_commit") == "table_load"
    assert lesser_of("table_create") == "table_list"
    assert all(
        POLICY[Action(lesser_action)] != POLICY[each]
        for each in Action
        if (lesser_action := lesser_of(each.word)) is not None
    )
    left = {each for each in none if Action(each) not in SERVER_ACTIONS and not each.endswith("_list")}
    assert not {each for each in left if each.endswith(("_create", "_alter", "_drop", "_commit"))}


def test_no_other_module_compares_actions_by_identity() -> None:
    """The hooks replace uses by copies that are equal to members of Action, and compare by value in the packages that
    they change. In other packages a comparison by identity would always be false.
    """
    others = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if re.search(r"\bis (not )?Action\.", path.read_text(encoding="utf-8"))
    }

    assert {
        each for each in others if not each.startswith(("limnos/services/", "limnos/http/", "limnos/rooms/"))
    } == set()


@pytest.mark.room("gravitino")
def test_every_use_of_an_action_is_detected() -> None:
    """Uses in services and routes are found, and those that are evaluated at import are marked as early."""
    uses = sites(ROOT / "src")

    assert len(uses) > 200
    assert [each.number for each in uses] == list(range(len(uses)))
    assert {
        "limnos/services/upkeep/trash.py",
        "limnos/http/iceberg/protocol.py",
        "limnos/rooms/gravitino/http/tables.py",
    } <= {each.path for each in uses}
    assert any(each.is_early for each in uses)
    assert not all(each.is_early for each in uses)


PLANTING = """
import sys
from pathlib import Path
from conformance.lesser.sites import install
from limnos.access.actions import Action
from limnos.access.policy import POLICY
planter = install(Path(sys.argv[1]))
names = {"__lesser_use__": planter.use}
exec(compile(planter.changed(TEXT.encode(), sys.argv[1] + "/limnos/services/odd.py"), "odd", "exec"), names)
told = names["make"](), names["is_commit"](Action.TABLE_COMMIT)
assert told == ((Action.TABLE_COMMIT, Action.TABLE_DROP), True), told
assert planter.reached == {2, 3}, planter.reached
planter.plant(0, 2)
assert names["make"]() == (Action.TABLE_LOAD, Action.TABLE_DROP)
assert names["ROUTE"] == (Action.TABLE_LIST,) != (Action.TABLE_CREATE,)
assert POLICY[names["ROUTE"][0]] is POLICY[Action.TABLE_LIST]
planter.restore(0, 2)
assert names["ROUTE"] == (Action.TABLE_CREATE,)
print("right")
"""


def test_exactly_the_planted_use_is_lowered(tmp_path: Path) -> None:
    """Exactly the planted use is lowered, also if the value was assigned before; later uses are recorded; enum members
    are compared by value.
    """
    folder = tmp_path / "limnos" / "services"
    folder.mkdir(parents=True)
    (folder / "odd.py").write_text(TEXT)
    uses = sites(tmp_path)

    output = run(f"TEXT = {TEXT!r}\n{PLANTING}", str(tmp_path))

    assert [(each.action, each.lesser, each.is_early) for each in uses] == [
        ("table_create", "table_list", True),
        ("table_drop", "table_load", True),
        ("table_commit", "table_load", False),
        ("table_commit", "table_load", False),
    ]
    assert [each.key for each in uses] == [
        "services/odd.py table_create",
        "services/odd.py make table_drop",
        "services/odd.py make table_commit",
        "services/odd.py is_commit table_commit",
    ]
    assert [each.asks for each in uses] == [(), (), (), ()]
    assert str(uses[2]) == "limnos/services/odd.py:5: table_commit -> table_load"
    assert output == "right"


PLANTING_COMPOSED = """
import sys
from pathlib import Path
from conformance.lesser.sites import install
from limnos.access.actions import Action
from limnos.model.kinds import Kind
planter = install(Path(sys.argv[1]))
names = {"__lesser_use__": planter.use}
exec(compile(planter.changed(TEXT.encode(), sys.argv[1] + "/limnos/services/odd.py"), "odd", "exec"), names)
drop, change = names["drop"], names["change"]
assert (drop(Kind.VIEW), change(Kind.TAG, "list")) == (Action.VIEW_DROP, Action.TAG_LIST)
assert planter.reached == {1, 2}, planter.reached
before = drop(Kind.VIEW)
planter.plant(0, 1)
assert (before, drop(Kind.VIEW), drop(Kind.TAG)) == (Action.VIEW_LOAD, Action.VIEW_LOAD, Action.TAG_LOAD)
assert names["CREATES"] == {Kind.VIEW: Action.VIEW_LIST, Kind.TAG: Action.TAG_LIST}
assert change(Kind.VIEW, "alter") == Action.VIEW_ALTER
planter.restore(0, 1)
assert (drop(Kind.TAG), names["CREATES"][Kind.VIEW]) == (Action.TAG_DROP, Action.VIEW_CREATE)
print("right")
"""


def test_composed_actions_are_lowered_for_every_kind(tmp_path: Path) -> None:
    """An action that is composed from a kind and a verb is a use: planted, it is the lesser action of any kind."""
    folder = tmp_path / "limnos" / "services"
    folder.mkdir(parents=True)
    (folder / "odd.py").write_text(COMPOSED)
    uses = sites(tmp_path)

    output = run(f"TEXT = {COMPOSED!r}\n{PLANTING_COMPOSED}", str(tmp_path))

    assert [(each.key, each.is_early) for each in uses] == [
        ("services/odd.py *_create", True),
        ("services/odd.py drop *_drop", False),
        ("services/odd.py change *", False),
    ]
    assert output == "right"


def test_no_action_is_composed_from_text() -> None:
    """Services and routes compose actions by the functions that the tool detects, not by text."""
    texts = [
        path.relative_to(ROOT).as_posix()
        for package in ("services", "http", "rooms")
        for path in (ROOT / "src/limnos" / package).rglob("*.py")
        if re.search(r"\bAction[\[(](?!\))", path.read_text(encoding="utf-8"))
    ]

    assert texts == []


def test_list_and_create_read_the_same_request_bodies() -> None:
    """A user of a catalog may own a table in it, so requests to list and to create read the same request bodies. An
    action that members never may does not.
    """
    create, look = Action.TABLE_CREATE, Action.TABLE_LIST

    assert admits_more([create], [look], SHALLOW) is None
    assert admits_more([create], [look], DEEP) is not None  # the namespace and its owner are read
    assert "nothing" in str(admits_more([Action.TAG_CREATE], [Action.TAG_LIST], SHALLOW))
    assert admits_more([Action.TAG_CREATE, Action.TAG_LIST], [Action.TAG_LIST, Action.TAG_LIST], SHALLOW) is None


@pytest.mark.room(*ALL_ROOMS)
def test_each_judgement_has_a_reason_and_an_existing_use(tmp_path: Path) -> None:
    """Each use that may be lowered has a reason; a key without a use is an error."""
    uses = sites(ROOT / "src")
    path = tmp_path / "accepted_uses.toml"
    path.write_text('[[same]]\nkeys = ["services/gone.py table_drop"]\nreason = "none"\n')

    assert all(len(each.reason) > 20 for each in read_judgements(uses).values())
    assert len({each.key for each in uses}) == len(uses)
    with pytest.raises(ValueError, match=r"no use has the key 'services/gone\.py table_drop'"):
        read_judgements(uses, path)


def run(code: str, *arguments: str) -> str:
    """Run code in a separate process; returns its output."""
    process = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    return process.stdout.strip()


def test_services_load_with_hooks() -> None:
    """The hook is installed before a service is imported; without a planted change every action is unchanged."""
    code = (
        "from pathlib import Path; from conformance.lesser.sites import install; planter ="
        " install(Path('src').resolve());from limnos.services.upkeep import trash; from limnos.access.actions import"
        " Action;from limnos.model.kinds import Kind; print(trash._CREATES[Kind.TABLE] == Action.TABLE_CREATE,"
        " '__lesser_use__' in vars(trash))"
    )

    assert run(code) == "True True"


@pytest.mark.room(*ALL_ROOMS)
def test_every_module_that_is_run_exists() -> None:
    """Every listed test module exists; a moved module would leave its uses untested."""
    missing = [each for each in (*FIRST, *THEN) if not (HERE / each).is_file()]

    assert missing == []
