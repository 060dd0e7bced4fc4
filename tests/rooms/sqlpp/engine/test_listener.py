# SPDX-License-Identifier: Apache-2.0
"""Planted documents reach no network and no class: an engine and an executor of maintenance against a listener.

The processes run without Landlock, so the limits of the Java process alone are tested. By default all selected cases of
a role share one process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from tests.rooms.sqlpp.engine.planted_tables import CASES

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.heavy]
ROLES = ("engine", "executor")
WITHIN_S = 1_800
Ends = Mapping[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def ends(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ends:
    """Run the selected cases of both roles. Returns what happened, by role and case."""
    chosen = {
        (item.callspec.params["role"], item.callspec.params["name"])
        for item in request.session.items
        if item.fspath == request.fspath and hasattr(item, "callspec")
    }
    results: dict[tuple[str, str], dict[str, Any]] = {}
    for role in sorted({role for role, _ in chosen}):
        directory = tmp_path_factory.mktemp(role)
        names = [name for name in CASES if (role, name) in chosen]
        command = [sys.executable, "-m", "tests.rooms.sqlpp.engine.listener_run", role, str(directory), *names]
        run = subprocess.run(command, capture_output=True, timeout=WITHIN_S, check=False)
        assert run.returncode == 0, run.stderr.decode()[-3000:]
        for line in run.stdout.splitlines():
            result = json.loads(line)
            results[role, result["case"]] = result
    return results


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize("role", ROLES)
def test_planted_document_reaches_no_listener(ends: Ends, role: str, name: str) -> None:
    """No statement and no operation over the table connects to the listener or constructs the named class, and an
    ordinary table is read.
    """
    result = ends[role, name]

    assert ("3 rows" if role == "engine" else "done") in " ".join(ends[role, ""]["ends"])
    assert result["connections"] == []
    assert result["classes"] == []
    assert len(result["ends"]) == (7 if role == "engine" else 4)
