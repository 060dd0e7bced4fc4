# SPDX-License-Identifier: Apache-2.0
"""A fake server and a client of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from limnos.client import Client
from tests.client.fake import FakeServer, running


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    """A server that knows no route until the test adds some."""
    with running() as server:
        yield server


@pytest.fixture
def client(fake: FakeServer) -> Iterator[Client]:
    """A client of the fake as user ana, in the metalake `lake`."""
    with Client(fake.uri, user="ana") as client:
        yield client
