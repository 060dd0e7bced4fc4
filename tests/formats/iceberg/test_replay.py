"""Recognition of commits that have already happened."""

from __future__ import annotations

from limnos.formats.iceberg.replay import is_replay
from tests.formats.iceberg.samples import add, appended, ref


def test_commit_that_happened_is_a_replay() -> None:
    """The same snapshot again is a replay, also when the table has moved on and nulls are spelled out."""
    base = appended(3)

    assert is_replay(base, [add(2, parent=1), ref(2)])
    assert is_replay(base, [add(2, parent=1, **{"schema-id": None})])
    assert is_replay(base, [add(1), add(2, parent=1)])


def test_other_commits_are_not() -> None:
    """New snapshots, other content under the same id, no snapshots and malformed updates are no replays."""
    base = appended(3)

    assert not is_replay(base, [add(4, parent=3)])
    assert not is_replay(base, [add(1), add(4, parent=3)])
    assert not is_replay(base, [add(2, parent=1, summary={"operation": "delete"})])
    assert not is_replay(base, [ref(2)])
    assert not is_replay(base, [])
    assert not is_replay(None, [add(1)])
    assert not is_replay(base, ["x", {"action": "add-snapshot"}, {"action": "add-snapshot", "snapshot": 5}])
    assert not is_replay(base, [{"action": "add-snapshot", "snapshot": {"snapshot-id": [1]}}])
