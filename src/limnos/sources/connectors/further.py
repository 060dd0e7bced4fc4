# SPDX-License-Identifier: Apache-2.0
"""Connectors of other packages, by the entry point `limnos.connectors`: the name is the provider, the value the class.

A class is imported when a catalog of its provider is created or used.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from limnos.manifests.installed import CONNECTORS, entry_points
from limnos.manifests.manifest import load
from limnos.model.errors import UnsupportedOperation
from limnos.model.kinds import FURTHER_PROVIDER
from limnos.sources.connectors.base import Connector


@cache
def _references() -> Mapping[str, str]:
    """Return the references of the installed connectors by provider; those with another name than `x-…` do not
    count.
    """
    points = entry_points(CONNECTORS)
    return MappingProxyType({each.name: each.value for each in points if each.name.startswith(FURTHER_PROVIDER)})


@cache
def further_connector(provider: str) -> type[Connector]:
    """Return the class of a provider's connector. Raises UnsupportedOperation if it is not installed, or cannot be
    imported.
    """
    reference = _references().get(provider)
    if reference is None:
        raise UnsupportedOperation(f"The connector of provider {provider} is not installed on this server")
    try:
        connector = load(reference)
    except Exception as error:
        raise UnsupportedOperation(f"The connector of provider {provider} cannot be loaded on this server") from error
    if not (isinstance(connector, type) and issubclass(connector, Connector)):
        raise UnsupportedOperation(f"{reference}, of provider {provider}, is no Connector")
    return connector


def further_providers() -> dict[str, str]:
    """Return the providers of the installed connectors that can be used, with the type of their catalogs."""
    types: dict[str, str] = {}
    for provider in _references():
        try:
            types[provider] = further_connector(provider).catalog_type
        except UnsupportedOperation:
            continue
    return types
