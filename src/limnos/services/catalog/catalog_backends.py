# SPDX-License-Identifier: Apache-2.0
"""Catalog backends: which values of Gravitino's property `catalog-backend` an Iceberg catalog of this server may have.

Pure. In Gravitino the property names the service that stores the tables. Here the server stores them, and connector
catalogs have providers of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from limnos.model.errors import BadRequest
from limnos.model.kinds import HIVE_PROVIDER, ICEBERG_PROVIDER, REST_PROVIDER

BACKEND: Final = "catalog-backend"
URI: Final = "uri"
_NATIVE: Final = ("jdbc", "memory")
"""Backends with storage of their own. The server accepts them, since it stores the tables itself."""
_NATIVE_ADVICE: Final = (
    f"leave out {BACKEND} and {URI}: this server stores the tables of a {ICEBERG_PROVIDER} catalog itself"
)
_PROVIDERS: Final[Mapping[str, str]] = {
    "hive": f"provider {HIVE_PROVIDER}, with the property metastore.uris instead of {URI}",
    "rest": f"provider {REST_PROVIDER}, with the same {URI}",
}


def check_backend(provider: str, properties: Mapping[str, str]) -> None:
    """Refuse a catalog backend that this server does not connect to.

    Raises BadRequest with the provider to use instead.
    """
    backend = properties.get(BACKEND, "").strip().lower()
    if provider != ICEBERG_PROVIDER or not backend:
        return
    if backend in _PROVIDERS:
        raise BadRequest(
            f"Property {BACKEND}={backend}: a catalog of provider {ICEBERG_PROVIDER} does not connect to another"
            f" system. To connect to one, use {_PROVIDERS[backend]}; for a catalog of this server, {_NATIVE_ADVICE}"
        )
    if backend not in _NATIVE:
        raise BadRequest(f"Property {BACKEND}={backend[:100]} is unknown: {_NATIVE_ADVICE}")
    if properties.get(URI, "").strip():
        raise BadRequest(
            f"Property {URI}: the tables of a catalog with {BACKEND}={backend} are not stored there, but by this"
            f" server; {_NATIVE_ADVICE}"
        )


def check_edited_backend(provider: str, properties: Mapping[str, str], *, edited: Mapping[str, str]) -> None:
    """Check as `check_backend` does, but only if an edit sets `catalog-backend` or `uri`: stored values stay
    allowed.
    """
    if BACKEND in edited or URI in edited:
        check_backend(provider, properties)
