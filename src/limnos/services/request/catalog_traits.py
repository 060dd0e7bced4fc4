# SPDX-License-Identifier: Apache-2.0
"""Catalog traits: facts derived from a catalog's provider and properties, computed once for each state of the catalog.

Pure. The traits are part of the resolved scope, which is discarded when its metalake or catalog changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final, NamedTuple

from limnos.model.errors import BadRequest
from limnos.model.kind_table import ONLY_KINDS, name_space_of
from limnos.model.kinds import REST_PROVIDERS, TABLE_FORMATS, Kind, is_source_provider
from limnos.model.records import CatalogRecord
from limnos.names.parts import quote_for_message

ICEBERG: Final = "iceberg"
SOURCE: Final = "source"
"""The format of tables in an external system."""
NO_TABLES: Final = "none"
DIRECTORY: Final = "lance-directory"
"""The property of a catalog that shows the Lance tables of a directory."""


class CatalogTraits(NamedTuple):
    """A catalog's record, and the facts derived from it."""

    record: CatalogRecord
    spaces: Mapping[Kind, str]
    """The name space of each kind; kinds outside catalogs have theirs in the metalake."""
    table_format: str
    """The format of its tables; `NO_TABLES` if it can contain none."""
    is_sourced: bool
    """Whether its objects are read from an external system."""
    is_federated: bool
    """Whether its objects are read from another Iceberg catalog."""
    shows_directory: bool
    """Whether it shows the Lance tables of a directory, which the server only reads."""


def traits_of(record: CatalogRecord) -> CatalogTraits:
    """Compute the traits of a catalog."""
    provider = record.provider
    return CatalogTraits(
        record=record,
        spaces=spaces_of(provider),
        table_format=_table_format(provider),
        is_sourced=is_source_provider(provider),
        is_federated=provider in REST_PROVIDERS,
        shows_directory=bool(record.properties.get(DIRECTORY)),
    )


@cache
def spaces_of(provider: str) -> Mapping[Kind, str]:
    """Return the name space of each kind in a catalog of a provider."""
    return {kind: name_space_of(kind, provider) for kind in Kind}


def _table_format(provider: str) -> str:
    if is_source_provider(provider):
        return SOURCE
    return NO_TABLES if provider in ONLY_KINDS else TABLE_FORMATS.get(provider, ICEBERG)


NESTED: Final = "nested-namespaces"
"""The catalog property that allows nested namespaces; its default is `true`."""


_WORDS: Final = ("true", "false")


def is_nested(record: CatalogRecord) -> bool:
    """Return whether a catalog has nested namespaces."""
    can = record.provider in TABLE_FORMATS or record.provider in REST_PROVIDERS
    return can and record.properties.get(NESTED, "true") != "false"


def check_nested(properties: Mapping[str, str]) -> None:
    """Check the value of the property that allows nested namespaces. Raises BadRequest for an invalid value."""
    if (word := properties.get(NESTED, "true")) not in _WORDS:
        raise BadRequest(f"Property {NESTED} is {quote_for_message(word)}: it must be true or false")
