# SPDX-License-Identifier: Apache-2.0
"""Lance tables opened with Lance's own libraries, with the client's credential.

Lance's libraries are imported only on use, because the base install lacks them. They read and write a table's files
themselves, and request its location from the server at each opening.
"""

from __future__ import annotations

import asyncio
import importlib
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING

from limnos.client.catalog.lance import LanceTables
from limnos.client.errors import ArgumentError, NotFoundError
from limnos.client.flow import AwaitedSender, BlockingSender, ClientScope
from limnos.model.extras import install_hint
from limnos.names import display

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lance import LanceDataset
    from lance_namespace import LanceNamespace
    from lancedb import AsyncConnection, AsyncLanceNamespaceDBConnection, DBConnection, LanceNamespaceDBConnection

    from limnos.client.values import LanceTable

METALAKE = "x-limnos-metalake"


@dataclass(frozen=True, slots=True)
class LanceConnection:
    """The connection settings of Lance's clients: server, metalake and credential."""

    uri: str
    metalake: str
    token: str | None = field(default=None, repr=False)
    authorization: str | None = field(default=None, repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """The HTTP headers that authenticate each request and name the metalake."""
        entries = {"Authorization": self.authorization, METALAKE: self.metalake}
        return {name: value for name, value in entries.items() if value is not None}

    @property
    def properties(self) -> dict[str, str]:
        """The connection properties of a Lance namespace with the implementation `rest`."""
        return {"uri": f"{self.uri}/lance"} | {f"header.{name}": value for name, value in self.headers.items()}

    def namespace(self) -> LanceNamespace:
        """Create pylance's REST namespace client for the server."""
        _library("lance")
        namespace: LanceNamespace = importlib.import_module("lance.namespace").RestNamespace(**self.properties)
        return namespace

    def dataset(self, table: LanceTable, *, version: int | str | None) -> LanceDataset:
        """Open a table with Lance's library, as `load` returned it. Raises NotFoundError for a table without data."""
        lance = _library("lance")
        if table.version is None:
            raise NotFoundError(
                f"{display.render(table.path)} was declared, but has no data yet: write to it first",
                code="not-found",
            )
        opened: LanceDataset = lance.dataset(
            namespace_client=self.namespace(), table_id=list(table.path), version=version
        )
        return opened

    def remote(self, catalog: str) -> tuple[str, dict[str, object]]:
        """Return the URI and options that connect LanceDB's remote client to a catalog.

        Raises ArgumentError if there is no credential.
        """
        if self.authorization is None:
            raise ArgumentError("LanceDB's remote clients need a credential: make the client with a token or a user")
        config = _library("lancedb").ClientConfig(extra_headers=self.headers)
        host = f"{self.uri}/lance"
        return f"db://{catalog}", {"api_key": self.token or "-", "host_override": host, "client_config": config}


def _library(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        hint = install_hint("lance") if name == "lance" else f"pip install {name}"
        raise ImportError(f"Lance tables need the library {name}, which is not installed: {hint}", name=name) from None


class Lance(LanceTables[BlockingSender]):
    """Calls on Lance tables that also open the tables with pylance or LanceDB."""

    __slots__ = ("_connection",)

    def __init__(self, sender: BlockingSender, scope: ClientScope, *, connection: LanceConnection) -> None:
        super().__init__(sender, scope)
        self._connection = connection

    def namespace(self) -> LanceNamespace:
        """Create pylance's REST namespace client, for pylance functions with an argument `namespace_client`."""
        return self._connection.namespace()

    def dataset(self, path: str | Sequence[str], *, version: int | None = None, tag: str | None = None) -> LanceDataset:
        """Open a table as a pylance dataset: the latest version, or a version by number or tag.

        If the server manages the table's versions, writes through the dataset are committed at the server.
        """
        return self._connection.dataset(
            self.load(path, version=version, tag=tag), version=_version_or_tag(version, tag)
        )

    def connect(self) -> LanceNamespaceDBConnection:
        """Open a LanceDB connection whose client reads and writes the files; namespaces begin with the catalog."""
        connected: LanceNamespaceDBConnection = _library("lancedb").connect_namespace(
            "rest", self._connection.properties
        )
        return connected

    def remote(self, catalog: str) -> DBConnection:
        """Open a remote LanceDB connection to a catalog: the server reads and writes the files."""
        address, options = self._connection.remote(catalog)
        connected: DBConnection = _library("lancedb").connect(address, **options)
        return connected


class AsyncLance(LanceTables[AwaitedSender]):
    """The asynchronous version of `Lance`, whose calls are awaited."""

    __slots__ = ("_connection",)

    def __init__(self, sender: AwaitedSender, scope: ClientScope, *, connection: LanceConnection) -> None:
        super().__init__(sender, scope)
        self._connection = connection

    def namespace(self) -> LanceNamespace:
        """Create pylance's REST namespace client, whose calls block."""
        return self._connection.namespace()

    async def dataset(
        self, path: str | Sequence[str], *, version: int | None = None, tag: str | None = None
    ) -> LanceDataset:
        """Open a table as a pylance dataset, whose own calls block."""
        table = await self.load(path, version=version, tag=tag)
        return await asyncio.to_thread(self._connection.dataset, table, version=_version_or_tag(version, tag))

    async def connect(self) -> AsyncLanceNamespaceDBConnection:
        """Open an asynchronous LanceDB connection whose client reads and writes the files; namespaces begin with the
        catalog.
        """
        lancedb = await asyncio.to_thread(_library, "lancedb")
        connected: AsyncLanceNamespaceDBConnection = lancedb.connect_namespace_async(
            "rest", self._connection.properties
        )
        return connected

    async def remote(self, catalog: str) -> AsyncConnection:
        """Open an asynchronous remote LanceDB connection to a catalog: the server reads and writes the files."""
        address, options = await asyncio.to_thread(self._connection.remote, catalog)
        connected: AsyncConnection = await _library("lancedb").connect_async(address, **options)
        return connected


def _version_or_tag(version: int | None, tag: str | None) -> int | str | None:
    """Return the given argument for pylance, which distinguishes tags (str) from versions (int) by type; None without
    either. Raises ArgumentError if both are given.
    """
    if version is not None and tag is not None:
        raise ArgumentError("give a version or a tag, not both")
    return tag if version is None else version
