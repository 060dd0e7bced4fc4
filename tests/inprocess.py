# SPDX-License-Identifier: Apache-2.0
"""Nodes without a server process: store, view, freshness gate and services, built as `app` does, on one test's loop.

Files are written only if a test requests it, because tests of names and rights need none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from limnos.access.authentication import Authenticator, Credential, accepted_trusts
from limnos.files import allow_everything
from limnos.model.kinds import ICEBERG_PROVIDER as ICEBERG
from limnos.services.catalog.catalogs import catalog_create
from limnos.services.catalog.metalakes import metalake_create
from limnos.services.iceberg.tables import TableRequest
from limnos.services.request.context import Context
from limnos.services.request.defaults import AccessSettings, RequestDefaults
from limnos.services.request.files import FileOperations
from limnos.services.request.node_services import NodeServices
from limnos.services.request.request_scope import RequestScope
from limnos.view.freshness_gate import InlineFreshnessGate, SharedFreshnessGate
from limnos.view.view import StoreView

ADMIN = "admin"
LAKE = "lake"
MAIN = RequestScope(LAKE, "main")
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "x", "required": False, "type": "long"}]}


class NoFiles(FileOperations):
    """A file store that discards its files."""

    async def read(self, location: str, properties: Mapping[str, str]) -> bytes:
        """Raise: no file exists."""
        raise AssertionError(f"nobody reads {location} here")

    async def write(self, location: str, data: bytes, properties: Mapping[str, str], *, first: bool = False) -> None:
        """Discard a file."""

    async def delete(self, location: str, properties: Mapping[str, str]) -> None:
        """Do nothing."""


class Node:
    """A node: its store, view, freshness gate and services."""

    def __init__(
        self,
        store: Any,  # noqa: ANN401 - a store of any backend, or a test's wrapper around one
        *,
        access: bool = True,
        bytes_max: int = 64 << 20,
        cold_reads_max: int = 64,
        files: FileOperations | None = None,
        warehouse: str = "file:/warehouse",
        verify: str = "never",
        believes_basic: bool = True,
    ) -> None:
        self.store = store
        self.view = StoreView(bytes_max=bytes_max)
        self.gate = (
            InlineFreshnessGate(self.view, store)
            if store.inline
            else SharedFreshnessGate(self.view, store, cold_reads_max=cold_reads_max)
        )
        self.woken = 0
        self.services = NodeServices(
            store=store,
            gate=self.gate,
            rules=AccessSettings(
                access, frozenset({ADMIN}), accepted_trusts(access_enabled=access, believes_basic=believes_basic)
            ),
            authenticator=Authenticator(believes_basic=believes_basic),
            defaults=RequestDefaults(
                metalake=LAKE,
                catalog="main",
                warehouse=warehouse,
                separator=":",
                separator_policy="restricted",
                verify_metadata_file=verify,
                allowed=allow_everything(),
            ),
            files=files or NoFiles(allow_everything()),
            wake_worker=self._wake,
        )

    def _wake(self) -> None:
        self.woken += 1

    def ctx(self, user: str | Credential = ADMIN, request_id: str = "r") -> Context:
        """A request context of a user, or of a credential."""
        return Context(self.services, user if isinstance(user, Credential) else Credential(user=user), request_id)


async def fill(ctx: Context) -> None:
    """Create metalake `lake` with catalog `main`, owned by the caller."""
    await metalake_create(ctx, name=LAKE, comment=None, properties={})
    await add_catalog(ctx, "main")


async def add_catalog(ctx: Context, name: str, *, metalake: str = LAKE, provider: str = ICEBERG) -> None:
    """Create a catalog."""
    await catalog_create(
        ctx, metalake=metalake, name=name, catalog_type=None, provider=provider, comment=None, properties={}
    )


def new_table(name: str, location: str | None = None) -> TableRequest:
    """Return the request body that creates a table of one column."""
    return TableRequest(
        name=name, location=location, schema=SCHEMA, partition_spec=None, write_order=None, properties=None
    )
