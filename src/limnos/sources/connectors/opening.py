# SPDX-License-Identifier: Apache-2.0
"""How services get the connector of a catalog: the functions that the room `connectors` provides, and their limits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, Protocol, TypeAlias

from limnos.sources.connectors.capabilities import BaseCatalog


class SourceLimits(NamedTuple):
    """The server's limits for sources: the allowed addresses, and the maximum time of a call in seconds."""

    addresses: Collection[str]
    timeout_s: float


class CheckSource(Protocol):
    """Checks the properties of a catalog."""

    def __call__(self, provider: str, properties: Mapping[str, str], *, limits: SourceLimits) -> None:
        """Raise BadRequest for properties that are invalid, or name a host to which the server may not connect."""


class OpenSource(Protocol):
    """Opens the connector of a catalog."""

    def __call__(self, provider: str, properties: Mapping[str, str], *, limits: SourceLimits) -> BaseCatalog:
        """Return the connector, without connecting.

        Raises BadRequest for invalid properties, UnsupportedOperation if the connector or its library is not installed.
        """


class SourceFunctions(NamedTuple):
    """The functions of the room that knows the providers."""

    check_source: CheckSource
    open_source: OpenSource


LoadSourceFunctions: TypeAlias = Callable[[], SourceFunctions]
"""Imports the connectors' modules, which takes a third of a second: it is called in a thread."""
