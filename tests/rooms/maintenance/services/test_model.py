# SPDX-License-Identifier: Apache-2.0
"""Random sequences of maintenance lose nothing that the model requires, and the model detects each planted bug."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.rooms.maintenance.formats import expiry as rules
from limnos.rooms.maintenance.formats import explanation
from limnos.rooms.maintenance.services import expiry, guards, metadata_files
from tests.http.driver import DriverNode
from tests.http.iceberg.wire import make_space, node_over
from tests.rooms.maintenance.services.story import Story

pytestmark = pytest.mark.heavy
STEPS: Final = int(os.environ.get("LIMNOS_TEST_MAINTENANCE", "150"))
"""Steps on each database; the full check runs 10,000."""
SEARCH: Final = 300
"""Steps of each of the sequences, in one of which the planted bug must be detected."""
SEARCHES: Final = 12


def tell(story: Story, steps: int) -> list[str]:
    """Execute steps until something is lost. Returns what is lost, or an empty list."""
    for number in range(steps):
        act = story.step()
        lost = story.check()
        if lost:
            return [f"step {number} ({act}): {each}" for each in lost]
    return []


def test_no_required_snapshot_or_file_is_lost(lake: DriverNode) -> None:
    """Whatever maintenance, crashes and clocks do, no required snapshot or file is lost."""
    story = Story(lake, seed=17)
    assert tell(story, STEPS) == []
    assert story.kills > 0
    assert story.expired > 0
    assert story.files > 0


def planning(change: Callable[..., Any]) -> tuple[Any, str, Any]:
    """Patch the pure planning function of an expiry. The patch receives the original function and its arguments."""
    real = rules.plan_expiry
    return explanation, "plan_expiry", lambda metadata, rule, **named: change(real, metadata, rule, **named)


def pinned_by(*holders: str) -> Callable[..., Any]:
    """Planted bug: the expiry considers only the pins whose reasons begin with certain words."""

    def change(real: Any, metadata: Any, rule: Any, *, guards: Any, now_ms: int) -> Any:  # noqa: ANN401
        pinned = {key: reason for key, reason in guards.pinned.items() if reason.startswith(holders)}
        return real(metadata, rule, guards=guards._replace(pinned=pinned), now_ms=now_ms)

    return change


def without_readers(real: Any, metadata: Any, rule: Any, *, guards: Any, now_ms: int) -> Any:  # noqa: ANN401
    """Planted bug: the expiry ignores what incremental readers have read."""
    return real(metadata, rule, guards=guards._replace(checkpoints={}), now_ms=now_ms)


def only_of_kind(*kinds: str) -> Callable[..., Any]:
    """Planted bug: the expiry considers only references of some kinds, and `main`."""

    def change(real: Any, metadata: Any, rule: Any, **named: Any) -> Any:  # noqa: ANN401
        import msgspec

        refs = {name: ref for name, ref in (metadata.refs or {}).items() if name == "main" or ref.type in kinds}
        return real(msgspec.structs.replace(metadata, refs=refs), rule, **named)

    return change


def without_retention(real: Any, metadata: Any, rule: Any, **named: Any) -> Any:  # noqa: ANN401
    """Planted bug: the expiry ignores the retention numbers of references."""
    import msgspec

    refs = {
        name: msgspec.structs.replace(ref, min_snapshots_to_keep=None) for name, ref in (metadata.refs or {}).items()
    }
    return real(msgspec.structs.replace(metadata, refs=refs), rule, **named)


def with_old_refs(real: Any, metadata: Any, rule: Any, **named: Any) -> Any:  # noqa: ANN401
    """Planted bug: the expiry removes every reference other than `main` immediately."""
    decision = real(metadata, rule, **named)
    refs = tuple(name for name in metadata.references if name != "main")
    return decision if decision.blocked else decision._replace(refs=refs)


def named_too(names: Any, document: Any, *, window: Any) -> list[str]:  # noqa: ANN401
    """Planted bug: metadata files in the log count as old."""
    current = document.metadata_location.rpartition("/")[2]
    del window
    return [each for each in names if each.endswith(".metadata.json") and each != current]


def any_version(names: Any, document: Any, *, window: Any) -> list[str]:  # noqa: ANN401
    """Planted bug: the current metadata file counts as old, by a wrong comparison of versions."""
    del window
    version = iceberg_metadata.version_of(document.metadata_location)
    return [each for each in names if each.endswith(".metadata.json") and iceberg_metadata.version_of(each) <= version]


def nobody_pins(tx: Any, table_id: int, *, removed: frozenset[int]) -> None:  # noqa: ANN401
    """Planted bug: the commit's transaction does not check pins."""
    del tx, table_id, removed


OUTSIDE: Final = "pins read before the transaction alone"


def often(*steps: str) -> tuple[Any, str, Any]:
    """Make some steps more frequent."""
    return Story, "often", steps


BUGS: Final[dict[str, tuple[tuple[Any, str, Any], ...]]] = {
    "pins of runs left out": (planning(pinned_by("a planned scan")),),
    "scan plans left out": (planning(pinned_by("pipeline run")),),
    OUTSIDE: (often("maintain_and_plan"),),
    "readers left out": (planning(without_readers),),
    "branches left out": (planning(only_of_kind("tag")),),
    "tags left out": (planning(only_of_kind("branch")),),
    "numbers of branches left out": (planning(without_retention),),
    "references before their age": (planning(with_old_refs),),
    "checkpoints of the writer left out": ((rules, "_own_checkpoints", lambda _metadata, **_named: ()),),
    "metadata files of the log": ((metadata_files, "old_metadata_files", named_too),),
    "the present metadata file": ((metadata_files, "old_metadata_files", any_version),),
    "readers not looked at again": ((expiry, "assess_changes", None), (guards, "READER_KEEP_MS", -(10**15))),
}


async def _assessed(services: object) -> bool:
    del services
    return True


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_detected(bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With each planted bug the model reports a loss. The check in the commit's transaction is disabled, too, because
    it would prevent some losses.
    """
    monkeypatch.setattr("limnos.services.iceberg.commits.pins_check", nobody_pins)
    if bug != OUTSIDE:
        monkeypatch.setattr(Story, "maintain_and_plan", Story.maintain)  # the disabled check alone causes the loss
    for where, name, put in BUGS[bug]:
        monkeypatch.setattr(where, name, _assessed if put is None else put)
    for seed in range(SEARCHES):
        with node_over(tmp_path / str(seed)) as node:
            make_space(node, "a")
            lost = tell(Story(node, seed=seed), SEARCH)
        if lost:
            print(f"{bug}: story {seed}, {lost[0]}")
            return
    pytest.fail("the model does not find it")
