"""A light client of a Limnos server, blocking and asynchronous.

May import httpx2, msgspec, `model` and `names`. Sees the server over the wire only: the administration through
Gravitino REST, namespaces and tables through Iceberg REST, the rest through Limnos' own API.
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
