# SPDX-License-Identifier: Apache-2.0
"""One server and one engine, shared by the tests of a module."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from tests.integration.live import serving
from tests.rooms.sqlpp.engine.live_engine import EngineDataverse, engine_of

Do = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineDataverse]:
    """Statements in the dataverse `sales.east`, executed by an engine."""
    data = tmp_path_factory.mktemp("engine") / "data"
    with serving(data) as server:
        engine = engine_of(server, writable=[data / "warehouse"], closed=[data])
        asking = EngineDataverse(server, engine, ("sales", "east"))
        for namespace in (["sales"], ["sales", "east"]):
            asking.rest("POST", "/iceberg/v1/lake.main/namespaces", {"namespace": namespace})
        yield asking
        engine.close()


@pytest.fixture(scope="module")
def do(asking: EngineDataverse) -> Iterator[Do]:
    """Return a function that runs coroutines on one event loop, as a server does."""
    with asyncio.Runner() as runner:
        yield runner.run
