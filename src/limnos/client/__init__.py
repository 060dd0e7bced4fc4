# SPDX-License-Identifier: Apache-2.0
"""A lightweight client of a Limnos server, blocking and asynchronous.

May import httpx2, msgspec, `model` and `names`. It uses the server's protocols only: Gravitino REST for administration,
Iceberg REST for namespaces and tables, and Limnos' own API for all other calls.
"""

from __future__ import annotations

from limnos.client.errors import (
    ArgumentError,
    ClientError,
    ConflictError,
    DeniedError,
    NotFoundError,
    RefusedError,
    ServerError,
    UnauthenticatedError,
    UnavailableError,
    UnexpectedAnswerError,
)
from limnos.client.session import AsyncClient, Client

__all__ = [
    "ArgumentError",
    "AsyncClient",
    "Client",
    "ClientError",
    "ConflictError",
    "DeniedError",
    "NotFoundError",
    "RefusedError",
    "ServerError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnexpectedAnswerError",
]
