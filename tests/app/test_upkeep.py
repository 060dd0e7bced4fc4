"""The node's own work beside requests: what is due is done once, and a node with nothing to do leaves the store alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.http.driver import node_at


def test_idle_node_takes_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is due: looking for tasks, counting them and telling changes are reads alone."""
    with node_at(tmp_path / "data") as node:
        upkeep, run = node.built.upkeep, node.runner.run
        run(upkeep.sweep())
        while run(upkeep.run_one()) or run(upkeep.run_one(among_long=True)):
            pass
        written: list[object] = []
        monkeypatch.setattr(type(upkeep.store), "submit", lambda *given, **_: written.append(given))

        assert run(upkeep.run_one()) is False
        assert run(upkeep.run_one(among_long=True)) is False
        run(upkeep.tell_audit())
        run(upkeep.count())

        assert written == []
