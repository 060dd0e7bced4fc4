# SPDX-License-Identifier: Apache-2.0
"""`conformance/run gravitino_java`: the main calls of Gravitino's Java client, for an admin, a user with privileges and
a user without.
"""

from __future__ import annotations

import pytest

from conformance.gravitino.client import ScriptOutput
from conformance.gravitino_java.java_client import aged, run_script
from tests.integration.live import serving

pytestmark = [pytest.mark.integration, pytest.mark.spark]


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> ScriptOutput:
    """The output of the Java client's steps."""
    data = tmp_path_factory.mktemp("java") / "data"
    with serving(data) as server:
        return run_script(server.uri, server.token)


def test_every_call_is_allowed_or_refused_by_privilege(java: ScriptOutput) -> None:
    """Each call succeeds for users with the privilege, and raises the client's own exception for users without it."""
    assert java.failed == []
    assert {each["who"] for each in java.steps} == {"admin", "worker", "outsider"}


def test_no_method_is_forgotten(java: ScriptOutput) -> None:
    """Each public method of the client's classes has a step."""
    assert java.forgotten == []
    assert len(java.known) > 90


def test_deviations_of_older_clients_are_marked_and_few(java: ScriptOutput) -> None:
    """Steps with another outcome in an older client are marked as such, and are few."""
    assert 0 < len(aged(java)) < 20
