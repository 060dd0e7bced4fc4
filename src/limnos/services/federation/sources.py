"""Outside systems that catalogs show: one connector for each catalog, asked in threads of that catalog's own, under a deadline.

May import `files` for the shares of threads, `sources` for connectors and their capabilities, `model` and the scene. Knows no wire format, and decides
nothing: whoever asks has decided. Nothing that a source says is kept. Decision record 0078.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from limnos.files import check_usable
from limnos.files.shares import Shares
from limnos.model.errors import LimnosError, SourceFailed, StateUnknown, Unsupported
from limnos.services.request.shared import Part
from limnos.sources.connectors.registry import Limits, check_source, open_source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from limnos.model.entities import Node
    from limnos.services.request.context import Context
    from limnos.services.request.scene import Scene
    from limnos.sources.connectors.capabilities import BaseCatalog

C = TypeVar("C")
T = TypeVar("T")
OPEN_MAX = 256
"""Catalogs whose connectors are kept open; the one that was asked longest ago makes room."""


class Origin(NamedTuple):
    """A catalog that shows an outside system."""

    catalog: Node
    provider: str
    properties: Mapping[str, str]


class _Held(NamedTuple):
    properties: Mapping[str, str]
    connector: BaseCatalog


def origin_of(scene: Scene) -> Origin:
    """Return the outside system behind the scene's catalog."""
    return Origin(
        scene.catalog, scene.catalog_record.provider, scene.defaults.storages.opened(scene.catalog_record.properties)
    )


class Sources:
    """The connectors of a node."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._shares = Shares(timeout_s=limits.timeout_s, silent=_silent)
        self._open: dict[int, _Held] = {}

    def check(self, provider: str, properties: Mapping[str, str]) -> None:
        """Refuse properties that name no source, or one that the server does not talk to. Raises BadRequest."""
        check_source(provider, properties, limits=self.limits)

    async def ask(
        self,
        origin: Origin,
        of: Callable[[BaseCatalog], C | None],
        *,
        question: Callable[[C], T],
        changes: bool = False,
    ) -> T:
        """Ask a catalog's connector. Raises Unsupported where it has not the capability `of`, SourceFailed when there is no answer in time.

        `changes`: the question does something; one that was not answered in time may yet have been carried out: StateUnknown.
        """
        connector = of(self._connector(origin))
        if connector is None:
            raise Unsupported(
                f"Catalog {origin.catalog.name} of provider {origin.provider} has nothing of that kind: choose another catalog"
            )
        try:
            return await self._shares.run(origin.catalog.id, lambda: question(connector))
        except _Silent:
            raise (_unknown() if changes else SourceFailed(_silent().message)) from None

    async def try_out(self, provider: str, properties: Mapping[str, str]) -> None:
        """Reach a source once, with a connector that is closed again. Raises BadRequest, SourceFailed."""
        connector = open_source(provider, properties, limits=self.limits)

        def reach() -> None:
            try:
                connector.check()
            finally:
                connector.close()

        try:
            await self._shares.run((provider, "tried"), reach)
        except _Silent as error:
            raise SourceFailed(error.message) from None

    def _connector(self, origin: Origin) -> BaseCatalog:
        held = self._open.pop(origin.catalog.id, None)
        if held is not None and held.properties != origin.properties:
            held.connector.close()
            held = None
        if held is None:
            check_usable(origin.properties)
            held = _Held(dict(origin.properties), open_source(origin.provider, origin.properties, limits=self.limits))
        self._open[origin.catalog.id] = held  # the last of the dictionary is the one that was asked last
        if len(self._open) > OPEN_MAX:
            self._open.pop(next(iter(self._open))).connector.close()
        return held.connector

    def close(self) -> None:
        """Let all connections go."""
        while self._open:
            self._open.popitem()[1].connector.close()


def no_sources() -> Sources:
    """Return what asks nobody, as no address is allowed."""
    return Sources(Limits((), timeout_s=10.0))


class _Silent(LimnosError):
    """No answer in time. Never leaves this module."""


def _silent() -> LimnosError:
    return _Silent("The source does not answer in time: try again, or have it looked at")


def _unknown() -> StateUnknown:
    return StateUnknown(
        "The source did not answer in time, and what was asked may yet be done: look before you ask again"
    )


async def ask(
    ctx: Context,
    origin: Origin,
    *,
    of: Callable[[BaseCatalog], C | None],
    question: Callable[[C], T],
    changes: bool = False,
) -> T:
    """Ask the source behind a catalog. Raises as `Sources.ask`, and what the source's answer means."""
    return await SOURCES.of(ctx.services).ask(origin, of, question=question, changes=changes)


SOURCES: Part[Sources] = Part("sources", lambda _: no_sources())
