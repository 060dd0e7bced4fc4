"""Outside systems that catalogs show: one connector for each catalog, asked in threads of that catalog's own, under a deadline.

May import `files` for the shares of threads, `sources` for connectors and their capabilities, `model` and the request view. Knows no wire format, and decides
nothing: whoever asks has decided. Nothing that a source says is kept. Decision record 0078.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from limnos.files import check_usable
from limnos.files.thread_shares import ThreadShares
from limnos.model.errors import LimnosError, SourceFailed, StateUnknown, UnsupportedOperation
from limnos.services.request.node_services import ComponentKey
from limnos.sources.connectors.registry import SourceLimits, check_source, open_source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from limnos.model.entities import Node
    from limnos.services.request.context import Context
    from limnos.services.request.request_view import RequestView
    from limnos.sources.connectors.capabilities import BaseCatalog

C = TypeVar("C")
T = TypeVar("T")
OPEN_MAX = 256
"""Catalogs whose connectors are kept open; the one that was asked longest ago makes room."""


class CatalogSource(NamedTuple):
    """A catalog that shows an outside system."""

    catalog: Node
    provider: str
    properties: Mapping[str, str]


class _OpenConnector(NamedTuple):
    properties: Mapping[str, str]
    connector: BaseCatalog


def catalog_source_of(request_view: RequestView) -> CatalogSource:
    """Return the outside system behind the request's catalog."""
    return CatalogSource(
        request_view.catalog,
        request_view.catalog_record.provider,
        request_view.defaults.storages.opened(request_view.catalog_record.properties),
    )


class SourceConnectors:
    """The connectors of a node."""

    def __init__(self, limits: SourceLimits) -> None:
        self.limits = limits
        self._shares = ThreadShares(timeout_s=limits.timeout_s, silent=_timeout_error)
        self._open: dict[int, _OpenConnector] = {}

    def check(self, provider: str, properties: Mapping[str, str]) -> None:
        """Refuse properties that name no source, or one that the server does not talk to. Raises BadRequest."""
        check_source(provider, properties, limits=self.limits)

    async def ask(
        self,
        origin: CatalogSource,
        of: Callable[[BaseCatalog], C | None],
        *,
        question: Callable[[C], T],
        changes: bool = False,
    ) -> T:
        """Ask a catalog's connector. Raises UnsupportedOperation where it has not the capability `of`, SourceFailed when there is no answer in time.

        `changes`: the question does something; one that was not answered in time may yet have been carried out: StateUnknown.
        """
        connector = of(self._connector(origin))
        if connector is None:
            raise UnsupportedOperation(
                f"Catalog {origin.catalog.name} of provider {origin.provider} has nothing of that kind: choose another catalog"
            )
        try:
            return await self._shares.run(origin.catalog.id, lambda: question(connector))
        except _SourceTimeout:
            raise (_unknown_outcome_error() if changes else SourceFailed(_timeout_error().message)) from None

    async def check_connection(self, provider: str, properties: Mapping[str, str]) -> None:
        """Reach a source once, with a connector that is closed again. Raises BadRequest, SourceFailed."""
        connector = open_source(provider, properties, limits=self.limits)

        def reach() -> None:
            try:
                connector.check()
            finally:
                connector.close()

        try:
            await self._shares.run((provider, "tried"), reach)
        except _SourceTimeout as error:
            raise SourceFailed(error.message) from None

    def _connector(self, origin: CatalogSource) -> BaseCatalog:
        held = self._open.pop(origin.catalog.id, None)
        if held is not None and held.properties != origin.properties:
            held.connector.close()
            held = None
        if held is None:
            check_usable(origin.properties)
            held = _OpenConnector(
                dict(origin.properties), open_source(origin.provider, origin.properties, limits=self.limits)
            )
        self._open[origin.catalog.id] = held  # the last of the dictionary is the one that was asked last
        if len(self._open) > OPEN_MAX:
            self._open.pop(next(iter(self._open))).connector.close()
        return held.connector

    def close(self) -> None:
        """Let all connections go."""
        while self._open:
            self._open.popitem()[1].connector.close()


def no_sources() -> SourceConnectors:
    """Return what asks nobody, as no address is allowed."""
    return SourceConnectors(SourceLimits((), timeout_s=10.0))


class _SourceTimeout(LimnosError):
    """No answer in time. Never leaves this module."""


def _timeout_error() -> LimnosError:
    return _SourceTimeout("The source does not answer in time: try again, or have it looked at")


def _unknown_outcome_error() -> StateUnknown:
    return StateUnknown(
        "The source did not answer in time, and what was asked may yet be done: look before you ask again"
    )


async def ask_source(
    ctx: Context,
    origin: CatalogSource,
    *,
    of: Callable[[BaseCatalog], C | None],
    question: Callable[[C], T],
    changes: bool = False,
) -> T:
    """Ask the source behind a catalog. Raises as `SourceConnectors.ask_source`, and what the source's answer means."""
    return await SOURCES.of(ctx.services).ask(origin, of, question=question, changes=changes)


SOURCES: ComponentKey[SourceConnectors] = ComponentKey("sources", lambda _: no_sources())
