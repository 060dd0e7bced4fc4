# SPDX-License-Identifier: Apache-2.0
"""The server's part of the room `connectors`: the connections to external systems."""

from __future__ import annotations

from limnos.config.settings import Settings
from limnos.rooms.connectors.sources.registry import check_source, open_source
from limnos.services.federation.sources import SOURCES, SourceConnectors
from limnos.services.request.node_services import NodeServices
from limnos.sources.connectors.opening import SourceLimits


def register_sources(services: NodeServices, settings: Settings) -> None:
    """Register the connectors. None connects before the first request."""
    limits = SourceLimits(settings.sources.allowed_addresses, timeout_s=settings.sources.timeout_s)
    SOURCES.put(services, SourceConnectors(limits, check_source=check_source, open_source=open_source))


async def close(services: NodeServices) -> None:
    """Close the connections to all external systems."""
    SOURCES.of(services).close()
