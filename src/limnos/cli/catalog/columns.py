# SPDX-License-Identifier: Apache-2.0
"""Names of the columns of Iceberg tables, for messages about a column that a table lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from limnos.client import ArgumentError, ClientError, NotFoundError
from limnos.client.values import Json

if TYPE_CHECKING:
    from limnos.client import Client


def column_names(client: Client, path: str) -> list[str]:
    """Return the names of the top columns of an Iceberg table. Raises the client's errors, also for other tables."""
    metadata = client.tables.load(path, snapshots="refs").metadata
    schemas = {schema["schema-id"]: schema for schema in cast("list[Json]", metadata.get("schemas", []))}
    fields = schemas.get(metadata.get("current-schema-id"), {}).get("fields", [])
    return [str(field["name"]) for field in cast("list[Json]", fields)]


def require_columns(client: Client, path: str, *, columns: Sequence[str]) -> None:
    """Raise NotFoundError for the first column that an Iceberg table lacks. Other tables are checked by the server."""
    try:
        names = column_names(client, path)
    except (ClientError, ArgumentError):
        return
    for column in columns if names else []:
        if column not in names and column.split(".")[0] not in names:
            text = f"{path} has no column {column}: it has {', '.join(names)}"
            raise NotFoundError(text, status=404, code="not-found")
