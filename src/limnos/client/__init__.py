# SPDX-License-Identifier: Apache-2.0
"""A lightweight client of a Limnos server, blocking and asynchronous.

It uses the server's protocols only: Gravitino REST for administration, Iceberg REST for namespaces and tables, and
Limnos' own API for all other calls. The two clients are imported when they are first used, because a command line that
is wrong needs the errors alone.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
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


def __getattr__(name: str) -> object:
    """Import the module of the clients, on the first use of one of them."""
    if name not in {"AsyncClient", "Client"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("limnos.client.session"), name)
