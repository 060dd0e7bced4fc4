# SPDX-License-Identifier: Apache-2.0
"""A sample of `conformance/run lance`: every operation by two of Lance's clients, each denied to a user without
rights.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conformance.lance import clients, stories
from conformance.lance.operations import OPERATIONS, SPACE_OPERATIONS
from conformance.lance.server import Lake, furnished
from tests.integration.live import LiveServer

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def lake(server: LiveServer) -> Lake:
    """The server, with two users of its own: one with rights and one without."""
    return furnished(server.uri, server.token, mark="_calls")


@pytest.mark.parametrize(
    "make, depth, lacks",
    [
        (clients.GeneratedClient, 4, set()),
        (clients.LanceDB.in_remote_mode, 2, {"batch_create_table_versions", "batch_commit_tables"}),
    ],
    ids=["generated", "lancedb remote"],
)
def test_every_operation_is_allowed_or_denied_by_privilege(
    lake: Lake, make: Callable[[str, str], clients.Client], depth: int, lacks: set[str]
) -> None:
    """Each operation that a client supports succeeds for a user with the right, and is denied to a user without it."""
    who, outsider = make(lake.lance, lake.worker), make(lake.lance, lake.outsider)
    mark = f"sample{depth}"

    calls = [
        *stories.spaces(who, outsider, mark, depths=range(2, 3)),
        *stories.tables(who, outsider, mark, depths=range(depth, depth + 1), flat=depth == 2),
    ]

    assert [str(each) for each in calls if each.outcome == "FAILED"] == []
    assert {each.operation for each in calls if each.outcome == "ok"} == set(OPERATIONS) - lacks
    assert set(SPACE_OPERATIONS) < {each.operation for each in calls}
