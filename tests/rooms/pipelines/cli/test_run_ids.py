# SPDX-License-Identifier: Apache-2.0
"""The word `last` names the newest run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from limnos.cli.failures import UsageError
from limnos.rooms.pipelines.cli.run_ids import complete_run_id

IDS = ("0192f0c1-7b1e-7cc3-98c4-dc0c0c07398f", "0192f0c1-9999-7cc3-98c4-dc0c0c07398f")


def runs_client(*ids: str) -> Any:  # noqa: ANN401
    """Return a client that lists runs, newest first."""
    return SimpleNamespace(runs=SimpleNamespace(list=lambda limit: [SimpleNamespace(id=each) for each in ids[:limit]]))


def test_last_is_the_newest_run() -> None:
    """The word `last` gives the newest run; without a run it is refused with what to do."""
    assert complete_run_id(runs_client(IDS[1], IDS[0]), "last") == IDS[1]
    with pytest.raises(UsageError, match="there is no run yet") as refusal:
        complete_run_id(runs_client(), "last")
    assert "pipeline run FILE" in str(refusal.value.hint)
