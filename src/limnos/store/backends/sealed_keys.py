# SPDX-License-Identifier: Apache-2.0
"""The ids of the keys that encrypt a store's secrets, read from a store in use or from a backup, without a server.

Reads only ids of keys; it decrypts nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import create_engine, inspect, text

from limnos.model.kinds import Kind
from limnos.model.sealed_secrets import keys_of
from limnos.store.backends.migrate import engine_url

_CATALOGS = text("SELECT record FROM node WHERE kind = :kind AND deleted = 0")
_WEBHOOKS = text("SELECT secret FROM webhook")


class KeyUse(NamedTuple):
    """The count of catalogs, and of webhooks, that have a secret encrypted with one key."""

    catalogs: int
    webhooks: int


def sealed_keys(database: str) -> Mapping[str, KeyUse]:
    """Return the ids of the keys that encrypt secrets of live catalogs and of webhooks, with the counts of both.

    Args:
        database: The path of an SQLite file, or a `postgresql://` URL. A store of an earlier release may lack webhooks.
    """
    engine = create_engine(engine_url(database))
    try:
        with engine.connect() as connection:
            tables = set(inspect(connection).get_table_names())
            in_catalogs, in_webhooks = Counter[str](), Counter[str]()
            if "node" in tables:
                for record in connection.execute(_CATALOGS, {"kind": int(Kind.CATALOG)}).scalars():
                    in_catalogs.update(keys_of(bytes(record).decode("latin-1")))
            if "webhook" in tables:
                for secret in connection.execute(_WEBHOOKS).scalars():
                    in_webhooks.update(keys_of(secret))
    finally:
        engine.dispose()
    return {key: KeyUse(in_catalogs[key], in_webhooks[key]) for key in sorted({*in_catalogs, *in_webhooks})}
