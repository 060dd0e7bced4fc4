"""`conformance/run gravitino`: every public method of the official Python client, for an admin, a user with privileges
and a user without.
"""

from __future__ import annotations

import pytest

from conformance.gravitino import client
from conformance.gravitino.client import ScriptOutput
from tests.integration.live import serving

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> ScriptOutput:
    """The output of the client's script, with a server that runs jobs."""
    folder = tmp_path_factory.mktemp("calls")
    with serving(folder / "data", "--config", client.settings_in(folder)) as server:
        return client.told(server.uri)


def test_every_call_is_allowed_or_refused_by_privilege(told: ScriptOutput) -> None:
    """Each call succeeds for users with the privilege, and is refused to users without it."""
    assert told.failed == []
    assert {each["who"] for each in told.steps} == {"admin", "worker", "outsider"}


def test_no_method_is_forgotten(told: ScriptOutput) -> None:
    """Each public method of the client's classes is called, except for a few with a stated reason."""
    assert told.forgotten == []
    assert len(told.known) > 300
