# SPDX-License-Identifier: Apache-2.0
"""The server's part of the room `connectors`: the connections to external systems."""

from __future__ import annotations

from limnos.config.settings import Settings
from limnos.services.federation.sources import SOURCES, SourceConnectors
from limnos.services.request.node_services import NodeServices
from limnos.sources.connectors.further import broken_connectors, further_providers
from limnos.sources.connectors.opening import SourceFunctions, SourceLimits
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.connectors")


def notes(settings: Settings) -> list[str]:
    """Return notes for `server check` about the connectors of other packages: which there are, and why one cannot be
    used.
    """
    del settings
    return [
        *(f"another package has a connector for catalogs of provider {each}" for each in sorted(further_providers())),
        *(
            f"the connector {each.name} of another package cannot be used: {each.reason}"
            for each in broken_connectors()
        ),
    ]


def register_sources(services: NodeServices, settings: Settings) -> None:
    """Register the connectors. None connects before the first request. Those that cannot be used are logged."""
    for each in broken_connectors():
        log.error("connector cannot be used", provider=each.name, entry_point=each.value, reason=each.reason)
    limits = SourceLimits(settings.sources.allowed_addresses, timeout_s=settings.sources.timeout_s)
    SOURCES.put(services, SourceConnectors(limits, load=load_functions))


def load_functions() -> SourceFunctions:
    """Import the connectors, with SQLAlchemy, and return the functions that open them."""
    from limnos.rooms.connectors.sources.registry import check_source, open_source

    return SourceFunctions(check_source, open_source)


async def close(services: NodeServices) -> None:
    """Close the connections to all external systems."""
    SOURCES.of(services).close()
