# SPDX-License-Identifier: Apache-2.0
"""The ids of the keys that encrypt a store's secrets, read from a store in use or from a backup, without a server.

Reads only ids of keys; it decrypts nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from limnos.model.kinds import Kind
from limnos.model.sealed_secrets import keys_of
from limnos.store.backends.direct_connection import direct_connection
from limnos.store.sql import Sql

_CATALOGS = Sql("SELECT record FROM node WHERE kind = :kind AND deleted = 0")
_WEBHOOKS = Sql("SELECT secret FROM webhook")
_TABLES = Sql(
    "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()",
    on_sqlite="SELECT name FROM sqlite_master WHERE type = 'table'",
)


class KeyUse(NamedTuple):
    """The count of catalogs, and of webhooks, that have a secret encrypted with one key."""

    catalogs: int
    webhooks: int


def sealed_keys(database: str) -> Mapping[str, KeyUse]:
    """Return the ids of the keys that encrypt secrets of live catalogs and of webhooks, with the counts of both.

    Args:
        database: The path of an SQLite file, or a `postgresql://` URL. A store of an earlier release may lack webhooks.
    """
    in_catalogs, in_webhooks = Counter[str](), Counter[str]()
    with direct_connection(database) as connection:
        tables = {name for (name,) in connection.rows(_TABLES, {})}
        if "node" in tables:
            for (record,) in connection.rows(_CATALOGS, {"kind": int(Kind.CATALOG)}):
                in_catalogs.update(keys_of(bytes(record).decode("latin-1")))
        if "webhook" in tables:
            for (secret,) in connection.rows(_WEBHOOKS, {}):
                in_webhooks.update(keys_of(secret))
    return {key: KeyUse(in_catalogs[key], in_webhooks[key]) for key in sorted({*in_catalogs, *in_webhooks})}
