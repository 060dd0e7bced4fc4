# SPDX-License-Identifier: Apache-2.0
"""Connectors of other packages, by the entry point `limnos.connectors`: the name is the provider, the value the class.

All classes are imported when the server starts, so that its log names the entry points that cannot be used.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from limnos.manifests.installed import CONNECTORS, BrokenEntry, entry_points
from limnos.manifests.manifest import load
from limnos.model.errors import ConnectorMissing
from limnos.model.kinds import FURTHER_PROVIDER
from limnos.sources.connectors.base import Connector

CATALOG_TYPES: Final = MappingProxyType({"RELATIONAL": "RELATIONAL", "STREAM": "STREAM", "MESSAGING": "STREAM"})
"""The values of `Connector.catalog_type`, each with the stored type of catalogs."""


@cache
def _references() -> Mapping[str, str]:
    """Return the references of the installed connectors by provider, also those with a name that no provider has."""
    return MappingProxyType({each.name: each.value for each in entry_points(CONNECTORS)})


@cache
def further_connector(provider: str) -> type[Connector]:
    """Return the class of a provider's connector. Raises ConnectorMissing if it is not installed or cannot be used,
    with the reason.
    """
    reference = _references().get(provider)
    if reference is None:
        raise ConnectorMissing(f"The connector of provider {provider} is not installed on this server")
    connector_class = _load_class(provider, reference)
    if isinstance(connector_class, str):
        raise ConnectorMissing(f"The connector of provider {provider} cannot be used on this server: {connector_class}")
    return connector_class


def _load_class(provider: str, reference: str) -> type[Connector] | str:
    """Return the class of an entry point, or the reason why it cannot be used."""
    if not provider.startswith(FURTHER_PROVIDER):
        return f"the name of an entry point of {CONNECTORS} begins with {FURTHER_PROVIDER}"
    try:
        connector = load(reference)
    except BaseException as error:  # noqa: BLE001 - a module of another package may even raise SystemExit
        return f"{reference} cannot be imported: {type(error).__name__}: {error}"
    if not (isinstance(connector, type) and issubclass(connector, Connector)):
        return f"{reference} is no subclass of limnos.sources.connectors.base.Connector"
    if connector.catalog_type not in CATALOG_TYPES:
        return f"catalog_type of {reference} is {connector.catalog_type!r}: use one of {', '.join(CATALOG_TYPES)}"
    return connector


def broken_connectors() -> tuple[BrokenEntry, ...]:
    """Return the entry points of connectors that cannot be used, with the reasons."""
    loaded_classes = {name: (value, _load_class(name, value)) for name, value in _references().items()}
    return tuple(
        BrokenEntry(name, value, reason) for name, (value, reason) in loaded_classes.items() if isinstance(reason, str)
    )


def broken_reason(provider: str) -> str:
    """Return why an installed connector cannot be used; empty if it can be, or is not installed."""
    return next((each.reason for each in broken_connectors() if each.name == provider), "")


def further_providers() -> dict[str, str]:
    """Return the providers of the installed connectors that can be used, with the type of their catalogs."""
    types: dict[str, str] = {}
    for provider in _references():
        try:
            types[provider] = CATALOG_TYPES[further_connector(provider).catalog_type]
        except ConnectorMissing:
            continue
    return types
