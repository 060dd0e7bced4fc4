"""A sample of `conformance/run lance`: every operation by two of Lance's clients, each refused to a user without
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
    """The server with a worker and an outsider of its own."""
    return furnished(server.uri, server.token, mark="_calls")


@pytest.mark.parametrize(
    "make, depth, lacks",
    [(clients.Generated, 4, set()), (clients.LanceDB.in_remote_mode, 2, {"batch_create_table_versions", "batch_commit_tables"})],
    ids=["generated", "lancedb remote"],
)  # fmt: skip
def test_every_operation(lake: Lake, make: Callable[[str, str], clients.Client], depth: int, lacks: set[str]) -> None:
    """Each operation that the client has a call for is answered rightly to who may, and refused to who may not."""
    who, outsider = make(lake.lance, lake.worker), make(lake.lance, lake.outsider)
    mark = f"sample{depth}"

    told = [
        *stories.spaces(who, outsider, mark, depths=range(2, 3)),
        *stories.tables(who, outsider, mark, depths=range(depth, depth + 1), flat=depth == 2),
    ]

    assert [str(each) for each in told if each.outcome == "FAILED"] == []
    assert {each.operation for each in told if each.outcome == "ok"} == set(OPERATIONS) - lacks
    assert set(SPACE_OPERATIONS) < {each.operation for each in told}
