"""Construction of a node: which storage its settings allow to catalogs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest import mock

import pytest

from limnos.app.bootstrap import bootstrap
from limnos.app.node_builder import allowed_of, build, warehouse_of
from limnos.config.server import ServerSection
from limnos.config.settings import Settings
from limnos.config.storage import StorageSection
from limnos.services.iceberg.scan_queue import SCAN_OFFLOADER
from limnos.services.request.concurrency.previews import PREVIEW_OFFLOADER
from limnos.services.sqlpp.requests.node_limits import SQLPP_OFFLOADER


@pytest.mark.parametrize("warehouse", [None, "/elsewhere", "s3://b/k", "{data}/tables", "{data}"])
def test_the_servers_own_directory_is_never_open(tmp_path: Path, warehouse: str | None) -> None:
    """Wherever the warehouse is, database and token are out of reach, and older tables in the first one are not."""
    given = None if warehouse is None else warehouse.format(data=tmp_path)
    settings = Settings(
        server=ServerSection(data=str(tmp_path)), storage=StorageSection(warehouse=given, allowed_roots=("/",))
    )

    allowed = allowed_of(settings)

    assert not allowed.covers(f"{tmp_path}/limnos.db")
    assert not allowed.covers(str(tmp_path))
    assert allowed.covers(f"{tmp_path}/warehouse/main/t")
    assert given == str(tmp_path) or allowed.covers(f"{warehouse_of(settings)}/t")


@pytest.mark.parametrize("warehouse", ["/elsewhere", "s3://b/k"])
def test_the_first_warehouse_stays_open(tmp_path: Path, warehouse: str) -> None:
    """A server whose new tables go elsewhere still serves the old ones, and nothing beside the two."""
    settings = Settings(server=ServerSection(data=str(tmp_path)), storage=StorageSection(warehouse=warehouse))

    allowed = allowed_of(settings)

    assert allowed.covers(f"{warehouse}/t")
    assert allowed.covers(f"{tmp_path}/warehouse/main/t")
    assert not allowed.covers(f"{tmp_path}/keys")
    assert not allowed.covers("/etc")


def test_nothing_that_can_be_closed_is_forgotten(tmp_path: Path) -> None:
    """A node closes all that its services hold; whoever waits for changes was let go before that."""

    async def story() -> set[str]:
        built = build(Settings(server=ServerSection(data=str(tmp_path))))
        await bootstrap(built.services, Settings(server=ServerSection(data=str(tmp_path))))
        held = {name: part for name, part in vars(built.services).items() if hasattr(part, "close")}
        closed = {name for name in held if name == "watch"}
        for name, part in held.items():
            setattr(built.services, name, mock.Mock(wraps=part))
        await built.close()
        closed |= {name for name in held if getattr(built.services, name).close.called}
        return set(held) - closed

    assert asyncio.run(story()) == set()


def test_each_pool_of_processes_is_closed(tmp_path: Path) -> None:
    """The processes of previews end with the node, also if scans have others."""

    async def story() -> list[mock.Mock]:
        built = build(Settings(server=ServerSection(data=str(tmp_path))))
        pools = [mock.Mock(), mock.Mock(), mock.Mock()]
        for key, pool in zip((SQLPP_OFFLOADER, SCAN_OFFLOADER, PREVIEW_OFFLOADER), pools, strict=True):
            key.put(built.services, pool)
        await built.close()
        return pools

    assert all(pool.close.called for pool in asyncio.run(story()))
