"""Uses of actions that ask for less: which there are, what each is lowered to, and that a lowered one is seen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from conformance.lesser.sites import Planter, lesser_of, sites
from limnos.access.actions import Action
from limnos.access.policy import POLICY, SERVER_ACTIONS

ROOT = Path(__file__).parents[2]
TEXT = """
from limnos.access.actions import Action
ROUTE = (Action.TABLE_CREATE,)
def make(action=Action.TABLE_DROP):
    return Action.TABLE_COMMIT, action
"""


def test_what_is_asked_for_is_less() -> None:
    """Each action has a lesser one with another rule, but for those of service admins, lists, and what asks for the least already."""
    none = [each.word for each in Action if lesser_of(each.word) is None]

    assert lesser_of("table_commit") == "table_load"
    assert lesser_of("table_create") == "table_list"
    assert all(POLICY[Action(found)] != POLICY[each] for each in Action if (found := lesser_of(each.word)) is not None)
    left = {each for each in none if Action(each) not in SERVER_ACTIONS and not each.endswith("_list")}
    assert not {each for each in left if each.endswith(("_create", "_alter", "_drop", "_commit"))}


def test_every_use_is_found() -> None:
    """Of services and routes, early ones apart from those that are read when a request comes."""
    found = sites(ROOT / "src")

    assert len(found) > 200
    assert [each.number for each in found] == list(range(len(found)))
    assert {"limnos/services/trash.py", "limnos/http/iceberg/protocol.py"} <= {each.path for each in found}
    assert any(each.is_early for each in found)
    assert not all(each.is_early for each in found)


def test_one_use_is_lowered(tmp_path: Path) -> None:
    """The planted one alone, each time that it is come by; which were come by is noted."""
    folder = tmp_path / "limnos" / "services"
    folder.mkdir(parents=True)
    (folder / "odd.py").write_text(TEXT)
    found = sites(tmp_path)
    planter = Planter(tmp_path, found)
    names: dict[str, object] = {"__lesser_use__": planter.use}
    exec(compile(planter.changed(TEXT.encode(), str(folder / "odd.py")), "odd", "exec"), names)
    made = names["make"]

    assert [(each.action, each.lesser, each.is_early) for each in found] == [
        ("table_create", "table_list", True), ("table_drop", "table_load", True), ("table_commit", "table_load", False),
    ]  # fmt: skip
    assert planter.reached == {0, 1}
    assert made() == (Action.TABLE_COMMIT, Action.TABLE_DROP)  # type: ignore[operator]
    planter.planted = 2
    assert made() == (Action.TABLE_LOAD, Action.TABLE_DROP)  # type: ignore[operator]
    assert str(found[2]) == "limnos/services/odd.py:5: table_commit -> table_load"


def test_a_process_of_its_own_loads_with_hooks() -> None:
    """The plugin installs the hook before a service is imported; without a plant nothing is another one."""
    code = (
        "import conformance.lesser.planted; from limnos.services import trash; print('__lesser_use__' in vars(trash))"
    )

    told = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )

    assert told.stdout.strip() == "True"
