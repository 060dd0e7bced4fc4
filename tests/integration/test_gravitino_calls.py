# SPDX-License-Identifier: Apache-2.0
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
def script_output(tmp_path_factory: pytest.TempPathFactory) -> ScriptOutput:
    """The output of the client's script, with a server that runs jobs."""
    folder = tmp_path_factory.mktemp("calls")
    with serving(folder / "data", "--config", client.settings_in(folder)) as server:
        return client.run_script(server.uri)


def test_every_call_is_allowed_or_refused_by_privilege(script_output: ScriptOutput) -> None:
    """Each call succeeds for users with the privilege, and is refused to users without it."""
    assert script_output.failed == []
    assert {each["who"] for each in script_output.steps} == {"admin", "worker", "outsider"}


def test_no_method_is_forgotten(script_output: ScriptOutput) -> None:
    """Each public method of the client's classes is called, except for a few with a stated reason."""
    assert script_output.forgotten == []
    assert len(script_output.known) > 300
