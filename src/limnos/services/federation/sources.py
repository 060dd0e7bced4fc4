# SPDX-License-Identifier: Apache-2.0
"""Sources: the external systems of catalogs. Each catalog has one connector, which is called in the catalog's threads
with a deadline.

Must not know any wire format, and makes no access decision: the caller has made it. Responses of a source are not
cached. Decision record 0078.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple, NoReturn, TypeVar

from limnos.files import check_usable
from limnos.files.thread_shares import ThreadShares
from limnos.model.entities import Node
from limnos.model.errors import (
    ConnectorMissing,
    LimnosError,
    NotInUse,
    PermissionDenied,
    ServiceUnavailable,
    SourceFailed,
    StateUnknown,
    UnsupportedOperation,
)
from limnos.services.federation.connector_calls import ConnectorCall
from limnos.services.request.context import Context
from limnos.services.request.node_services import OWN_NODE, ComponentKey
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.sources.connectors.capabilities import BaseCatalog
from limnos.sources.connectors.hops import HOPS_MAX, hops_of, send_server_ids
from limnos.sources.connectors.opening import LoadSourceFunctions, OpenSource, SourceFunctions, SourceLimits
from limnos.sources.connectors.rest_errors import source_loop_error
from limnos.store.activity.node_beats import nodes_read

C = TypeVar("C")
T = TypeVar("T")
OPEN_MAX = 256
"""The maximum number of open connectors; the least recently used one is closed."""
NODES_MAX: Final = 1_000
"""The maximum number of nodes of this server that are compared with the hops of a request."""


class CatalogSource(NamedTuple):
    """A connector catalog's node, its provider, and its properties, with decrypted secrets, for the connector."""

    catalog: Node
    provider: str
    properties: Mapping[str, str]

    @property
    def identity(self) -> object:
        """The part of the source that must be equal before and after a call: another source has other data."""
        return self.catalog.id, self.provider, self.properties


class _OpenConnector(NamedTuple):
    provider: str
    properties: Mapping[str, str]
    connector: BaseCatalog

    def close(self) -> None:
        """Close the connections. A failure is logged: whoever closes a connector needs another one, or none."""
        with suppress(LimnosError):
            ConnectorCall(self.provider).run(self.connector.close)


def catalog_source_of(request_view: RequestView) -> CatalogSource:
    """Return the source of the request's catalog, with decrypted properties.

    Raises ServiceUnavailable if another catalog without source has taken the name during the request.
    """
    if not (request_view.traits.is_sourced or request_view.traits.is_federated):
        raise ServiceUnavailable("The catalog was replaced during the request: try again", retry_after_s=1)
    return CatalogSource(
        request_view.catalog,
        request_view.catalog_record.provider,
        request_view.defaults.storages.open_properties(request_view.catalog_record.properties),
    )


class SourceConnectors:
    """The connectors of a server node: one for each recently used catalog, with its connections to the source."""

    def __init__(self, limits: SourceLimits, *, load: LoadSourceFunctions) -> None:
        """Create the connectors. `load` returns the functions of the room `connectors`, which knows the providers."""
        self.limits = limits
        self._load = load
        self._functions: SourceFunctions | None = None
        self._shares = ThreadShares(timeout_s=limits.timeout_s, silent=_timeout_error)
        self._open: dict[int, _OpenConnector] = {}

    async def load(self) -> SourceFunctions:
        """Return the functions of the room. A server without connector catalogs never imports what they need."""
        if self._functions is None:
            self._functions = await asyncio.to_thread(self._load)
        return self._functions

    def check(self, provider: str, properties: Mapping[str, str]) -> None:
        """Raise BadRequest for properties that are invalid or name a source to which the server may not connect.

        The first call imports the room's functions unless `load` has done it, for example within a decision.
        """
        if self._functions is None:
            self._functions = self._load()
        check_source = self._functions.check_source
        ConnectorCall(provider).run(lambda: check_source(provider, properties, limits=self.limits))

    async def ask(
        self,
        origin: CatalogSource,
        of: Callable[[BaseCatalog], C | None],
        *,
        question: Callable[[C], T],
        changes: bool = False,
        hops: tuple[str, ...] = (),
    ) -> T:
        """Call a catalog's connector.

        Args:
            origin: The catalog and its source.
            of: Returns the connector's capability; None if the connector lacks it.
            question: A function that calls that capability. It runs in a thread.
            changes: Whether the call changes the source.
            hops: The ids of the servers that pass the request on, this one last.

        Raises:
            UnsupportedOperation: The connector lacks the capability.
            SourceFailed: The source did not respond before the deadline.
            StateUnknown: With `changes`, the source did not respond before the deadline, so the change may still be
                made.
        """
        connector_call = ConnectorCall(origin.provider, str(origin.catalog.name))
        open_source = (await self.load()).open_source
        connector = connector_call.run(lambda: of(self._connector(origin, open_source)))
        if connector is None:
            raise UnsupportedOperation(
                f"Catalog {origin.catalog.name} of provider {origin.provider} has no objects of that kind: choose"
                " another catalog"
            )

        def call() -> T:
            with send_server_ids(hops):
                return question(connector)

        try:
            return await self._shares.run(origin.catalog.id, lambda: connector_call.run(call, changes=changes))
        except _SourceTimeout:
            raise _late_error(origin.catalog.name, changes=changes) from None

    async def check_connection(
        self, provider: str, properties: Mapping[str, str], *, catalog: str, hops: tuple[str, ...]
    ) -> None:
        """Test the connection to a source with a temporary connector. `catalog` is the name in messages, `hops` are as
        for `ask`. Raises BadRequest for invalid properties, SourceFailed if the source does not respond,
        UnsupportedOperation if the connector's library is not installed.
        """
        connector_call = ConnectorCall(provider, catalog)
        open_source = (await self.load()).open_source
        connector = connector_call.run(lambda: open_source(provider, properties, limits=self.limits))

        def reach() -> None:
            try:
                with send_server_ids(hops):
                    connector.check()
            finally:
                connector.close()

        try:
            await self._shares.run((provider, "tried"), lambda: connector_call.run(reach))
        except _SourceTimeout:
            raise _late_error(catalog, changes=False) from None

    def _connector(self, origin: CatalogSource, open_source: OpenSource) -> BaseCatalog:
        connector = self._open.pop(origin.catalog.id, None)
        if connector is not None and connector.properties != origin.properties:
            connector.close()
            connector = None
        if connector is None:
            check_usable(origin.properties)
            connector = _OpenConnector(
                origin.provider,
                dict(origin.properties),
                open_source(origin.provider, origin.properties, limits=self.limits),
            )
        self._open[origin.catalog.id] = connector  # the end of the dictionary is the most recently used
        if len(self._open) > OPEN_MAX:
            self._open.pop(next(iter(self._open))).close()
        return connector.connector

    def close(self) -> None:
        """Close the connections to all external systems."""
        while self._open:
            self._open.popitem()[1].close()


class NoSources(SourceConnectors):
    """Stands for the connectors of a server without the room `connectors`: every call is refused."""

    def __init__(self) -> None:
        limits = SourceLimits((), timeout_s=10.0)
        super().__init__(limits, load=lambda: SourceFunctions(_refuse_source, _refuse_source))

    def _connector(self, origin: CatalogSource, open_source: OpenSource) -> BaseCatalog:
        return open_source(origin.provider, origin.properties, limits=self.limits)


def _refuse_source(provider: str, properties: Mapping[str, str], *, limits: SourceLimits) -> NoReturn:
    """Raise ConnectorMissing."""
    del provider, properties, limits
    raise ConnectorMissing("This server does not serve catalogs of external systems: see the setting rooms.off")


class _SourceTimeout(LimnosError):
    """Raised if a source does not respond before the deadline. `ask` converts it to SourceFailed or StateUnknown."""


def _timeout_error() -> LimnosError:
    return _SourceTimeout("The source does not answer in time: try again, or check that system")


def _late_error(catalog: str, *, changes: bool) -> LimnosError:
    if changes:
        return StateUnknown(
            f"Catalog {catalog}: The source did not answer in time, and may still complete the request: check before"
            " you repeat it"
        )
    return SourceFailed(f"Catalog {catalog}: {_timeout_error().message}")


async def ask_source(
    ctx: Context,
    origin: CatalogSource,
    *,
    of: Callable[[BaseCatalog], C | None],
    question: Callable[[C], T],
    changes: bool = False,
) -> T:
    """Call the external system behind a catalog. Raises as `SourceConnectors.ask`, and the errors of the source.

    For reads use `ask_confirmed` or a function that decides again after the response in another way. Raises SourceLoop
    if this server sent the request itself, for another call of a source.
    """
    hops = await next_hops(ctx)
    return await SOURCES.of(ctx.services).ask(origin, of, question=question, changes=changes, hops=hops)


async def next_hops(ctx: Context) -> tuple[str, ...]:
    """Return the ids of the servers that passed this request on as clients of a source, then the id of this node.

    Raises SourceLoop if a node of this server is among them, or if they are too many: the source of a catalog then
    leads back to this server.
    """
    own_node = OWN_NODE.of(ctx.services)
    hops = () if ctx.audited_request is None else hops_of(ctx.audited_request.hops())
    if hops:
        nodes = await ctx.look_up(partial(nodes_read, NODES_MAX))
        if len(hops) >= HOPS_MAX or not {own_node, *(each.id for each in nodes)}.isdisjoint(hops):
            raise source_loop_error()
    return (*hops, own_node)


async def ask_confirmed(
    ctx: Context,
    scope: RequestScope,
    *,
    decide: Callable[[RequestView], CatalogSource],
    of: Callable[[BaseCatalog], C | None],
    question: Callable[[C], T],
    first: CatalogSource | None = None,
) -> T:
    """Call the external system for a read, and decide again after its response: the right may have been revoked
    meanwhile, and the data changed after that.

    `decide` authorizes the read or raises a refusal. `first` is the source from a decision made just before. Raises as
    `ask_source` does.
    """
    _, result = await ctx.read_confirmed(
        scope,
        decide,
        work=lambda origin: ask_source(ctx, origin, of=of, question=question),
        identity=lambda origin: origin.identity,
        first=first,
    )
    return result


async def shown_after_change(result: Awaitable[T]) -> T:
    """Return the result of a read that follows a change made in the source.

    Raises StateUnknown if the caller may no longer read it: a refusal would say that nothing was changed.
    """
    try:
        return await result
    except (NotInUse, PermissionDenied) as error:
        raise StateUnknown(
            "The source has made the change, but its result cannot be shown: during the request your right to it was"
            " revoked",
            detail=error.message,
        ) from error


SOURCES: ComponentKey[SourceConnectors] = ComponentKey("sources", lambda _: NoSources())
