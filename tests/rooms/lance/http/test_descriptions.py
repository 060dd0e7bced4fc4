# SPDX-License-Identifier: Apache-2.0
"""Cached descriptions of Lance tables: no work while a table's files are unchanged, and never outdated."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from limnos.rooms.lance.services.description_cache import DESCRIPTIONS, DescriptionCache
from limnos.rooms.lance.services.workers import WORKERS
from tests.arrow_rows import arrow
from tests.http.driver import API, DriverNode, grant
from tests.rooms.lance.http.wire import Json, declare, fill, table

pytestmark = pytest.mark.slow

AT = table("lance", "t")
LATER_NS = 60_000_000_000
ROWS = pa.table({"id": [1, 2]})


class RequestCounter:
    """Counts the requests to workers."""

    def __init__(self, node: DriverNode) -> None:
        self.kinds: list[str] = []
        self._ask = WORKERS.of(node.built.services).ask
        WORKERS.of(node.built.services).ask = self.ask

    async def ask(self, worker_task: object) -> bytes:
        """Count the request, and execute it."""
        self.kinds.append(worker_task.kind)
        return await self._ask(worker_task)

    def since(self, what: Callable[[], object]) -> list[str]:
        """Return the requests to worker processes since the last call."""
        before = len(self.kinds)
        what()
        return self.kinds[before:]


@pytest.fixture
def counter(node: DriverNode) -> RequestCounter:
    """A counter of worker requests, for a node on which each file seems to be a minute old."""
    services = node.built.services
    DESCRIPTIONS.put(services, DescriptionCache(services.files.identity_now, now_ns=lambda: time.time_ns() + LATER_NS))
    return RequestCounter(node)


BOTH = pytest.mark.parametrize("place", ["false", "true"], ids=["storage", "managed"], indirect=True)


@pytest.fixture
def place(node: DriverNode, request: pytest.FixtureRequest) -> Path:
    """Create a table of one version and two rows. Returns its location."""
    declared = declare(node, "lance", "t", properties={"managed_versioning": getattr(request, "param", "false")})
    node.done("POST", f"{AT}/insert", arrow(ROWS))
    return Path(str(declared["location"]).removeprefix("file://"))


def described(node: DriverNode, body: Json | None = None) -> Json:
    """Return the description of the table."""
    return node.done("POST", f"{AT}/describe", body or {})


@BOTH
def test_unchanged_table_is_described_from_the_cache(node: DriverNode, place: Path, counter: RequestCounter) -> None:
    """A worker process describes an unchanged table once. Later answers, complete or partial, are the same and need no
    process.
    """
    first = described(node)

    assert counter.kinds == ["describe"]
    assert first["version"] == 1
    assert counter.since(lambda: None) == []
    assert described(node) == first
    assert described(node, {"check_declared": True, "load_detailed_metadata": False})["is_only_declared"] is False
    assert counter.kinds == ["describe"]
    assert described(node, {"version": 1}) == first
    assert counter.kinds == ["describe", "describe"]


@BOTH
def test_every_change_shows_at_once(node: DriverNode, place: Path, counter: RequestCounter) -> None:
    """The next description has each change that the server made."""
    for number in range(2, 12):
        described(node)
        node.done("POST", f"{AT}/insert", arrow(ROWS))
        assert described(node)["version"] == number


def test_a_commit_by_path_shows_at_once(node: DriverNode, counter: RequestCounter) -> None:
    """The next description has each commit that bypassed the server, with new and with removed versions."""
    location = fill(node, "lance", "t", rows=ROWS)["location"]
    for number in range(2, 12):
        described(node)
        written = lance.write_dataset(ROWS, str(location), mode="append")
        assert described(node)["version"] == written.version == number

    shutil.rmtree(str(location).removeprefix("file://"))

    assert described(node)["is_only_declared"] is True


def test_just_changed_table_is_not_cached(node: DriverNode, place: Path) -> None:
    """A table that was just changed is not cached, because the next change could have the same time."""
    services, counter = node.built.services, RequestCounter(node)
    DESCRIPTIONS.put(
        services,
        DescriptionCache(services.files.identity_now, now_ns=lambda: (place / "_versions").stat().st_ctime_ns),
    )

    assert described(node) == described(node)
    assert counter.kinds == ["describe", "describe"]


def test_unmanaged_manifest_is_moved_aside_despite_the_cache(node: DriverNode, counter: RequestCounter) -> None:
    """A manifest that was written past the server into a table with managed versions is not described, and is moved
    aside, even if a description is cached.
    """
    location = str(declare(node, "lance", "t", properties={"managed_versioning": "true"})["location"])
    node.done("POST", f"{AT}/insert", arrow(ROWS))
    first = described(node)
    lance.write_dataset(ROWS, location, mode="append")

    assert described(node) == first
    assert len(list(Path(location.removeprefix("file://"), "_bypassed").iterdir())) == 1


@BOTH
def test_link_in_place_of_manifest_directory_is_not_followed(
    node: DriverNode, place: Path, counter: RequestCounter, tmp_path: Path
) -> None:
    """If a link replaces a cached table's manifest directory, its target is not described."""
    described(node)
    (place / "_versions").rename(tmp_path / "moved")
    (place / "_versions").symlink_to(tmp_path / "moved")

    assert "version" not in node.post(f"{AT}/describe", {}).json()


def test_cached_description_is_refused_without_privilege(
    node: DriverNode, place: Path, counter: RequestCounter
) -> None:
    """A description that was cached for one caller is refused to callers without the right, and after a revoke."""
    role = grant(node, "ana", "use_catalog use_schema select_table", kind="catalog", on="lance")
    assert node.post(f"{AT}/describe", {}, user="ana").status == 200
    assert node.post(f"{AT}/describe", {}, user="eve").status == 403
    node.delete(f"{API}/lake/roles/{role}")

    assert node.post(f"{AT}/describe", {}, user="ana").status == 403
    assert counter.kinds == ["describe"]


def test_recreated_table_does_not_use_the_cached_description(
    node: DriverNode, place: Path, counter: RequestCounter
) -> None:
    """A cached description is not used for a later table of the same name."""
    described(node)
    node.done("POST", f"{AT}/deregister")
    fill(node, "lance", "t", rows=pa.table({"other": ["x"]}))

    description = described(node)

    assert [each["name"] for each in description["schema"]["fields"]] == ["other"]
    assert description["location"] != f"file://{place}"


def test_concurrent_describes_share_worker_requests(node: DriverNode, place: Path) -> None:
    """Sixty-four concurrent requests to describe a table cause at most two requests to worker processes. Callers
    without the right are refused.
    """
    services, counter = node.built.services, RequestCounter(node)
    DESCRIPTIONS.put(services, DescriptionCache(services.files.identity_now, now_ns=lambda: 0))
    node.built.application.turns.loop_turns.now = lambda: 0.0  # on a slow machine requests would take turns

    async def crowd() -> list[tuple[int, object]]:
        users = ["admin", "eve"] * 32
        answers = await asyncio.gather(*(node._ask("POST", f"{AT}/describe", {}, user, {}) for user in users))
        return [(each.status, each.json().get("version")) for each in answers]

    assert node.runner.run(crowd()) == [(200, 1), (403, None)] * 32
    assert len(counter.kinds) <= 2
