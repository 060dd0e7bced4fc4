# SPDX-License-Identifier: Apache-2.0
"""Construction of a node: the storage that its settings allow for catalogs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest import mock

import pytest

from limnos.app.bootstrap import bootstrap
from limnos.app.node_builder import allowed_storage_of, build
from limnos.app.request_defaults import warehouse_of
from limnos.config.server import ServerSection
from limnos.config.settings import Settings
from limnos.config.storage import StorageSection
from limnos.rooms.sqlpp.services.requests.node_limits import SQLPP_OFFLOADER
from limnos.services.iceberg.scan_queue import SCAN_OFFLOADER
from limnos.services.request.concurrency.previews import PREVIEW_OFFLOADER


@pytest.mark.parametrize("warehouse", [None, "/elsewhere", "s3://b/k", "{data}/tables", "{data}"])
def test_catalogs_cannot_access_the_servers_own_files(tmp_path: Path, warehouse: str | None) -> None:
    """Wherever the warehouse is, catalogs have no access to the database and the token file. Older tables in the
    default warehouse stay accessible.
    """
    warehouse_path = None if warehouse is None else warehouse.format(data=tmp_path)
    settings = Settings(
        server=ServerSection(data=str(tmp_path)), storage=StorageSection(warehouse=warehouse_path, allowed_roots=("/",))
    )

    allowed = allowed_storage_of(settings)

    assert not allowed.covers(f"{tmp_path}/limnos.db")
    assert not allowed.covers(str(tmp_path))
    assert allowed.covers(f"{tmp_path}/warehouse/main/t")
    assert warehouse_path == str(tmp_path) or allowed.covers(f"{warehouse_of(settings)}/t")


@pytest.mark.parametrize("warehouse", ["/elsewhere", "s3://b/k"])
def test_default_warehouse_stays_accessible_after_a_change(tmp_path: Path, warehouse: str) -> None:
    """If the warehouse is changed, older tables in the default one stay accessible, and no other directory is."""
    settings = Settings(server=ServerSection(data=str(tmp_path)), storage=StorageSection(warehouse=warehouse))

    allowed = allowed_storage_of(settings)

    assert allowed.covers(f"{warehouse}/t")
    assert allowed.covers(f"{tmp_path}/warehouse/main/t")
    assert not allowed.covers(f"{tmp_path}/keys")
    assert not allowed.covers("/etc")


def test_node_close_closes_every_service_part(tmp_path: Path) -> None:
    """A node closes every part of its services that has a `close`, except the watch, which the server closes before."""

    async def story() -> set[str]:
        built = build(Settings(server=ServerSection(data=str(tmp_path))))
        await bootstrap(built.services, Settings(server=ServerSection(data=str(tmp_path))))
        closable_parts = {name: part for name, part in vars(built.services).items() if hasattr(part, "close")}
        closed = {name for name in closable_parts if name == "watch"}
        for name, part in closable_parts.items():
            setattr(built.services, name, mock.Mock(wraps=part))
        await built.close()
        closed |= {name for name in closable_parts if getattr(built.services, name).close.called}
        return set(closable_parts) - closed

    assert asyncio.run(story()) == set()


def test_each_pool_of_processes_is_closed(tmp_path: Path) -> None:
    """The processes for previews are closed with the node, also if scans use separate ones."""

    async def story() -> list[mock.Mock]:
        built = build(Settings(server=ServerSection(data=str(tmp_path))))
        pools = [mock.Mock(), mock.Mock(), mock.Mock()]
        for key, pool in zip((SQLPP_OFFLOADER, SCAN_OFFLOADER, PREVIEW_OFFLOADER), pools, strict=True):
            key.put(built.services, pool)
        await built.close()
        return pools

    assert all(pool.close.called for pool in asyncio.run(story()))
