# SPDX-License-Identifier: Apache-2.0
"""Sessions of a Spark Connect server with the catalogs of a metalake.

Must not know the use of a session. The server must have Iceberg's runtime and extensions. The credential is set on the
session only, under a key that every such server masks.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from limnos.model.errors import BadRequest, ServiceUnavailable
from limnos.spark.session import authorization, config_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

SCHEME: Final = "sc://"
_CATALOG: Final = "spark.sql.catalog."
_PORT: Final = 15002
_WITHIN_S: Final = 10


def connect_session(
    address: str,
    uri: str,
    *,
    metalake: str,
    catalogs: Sequence[str],
    token: str | None = None,
    user: str | None = None,
    config: Mapping[str, str] | None = None,
    s3: bool = False,
) -> SparkSession:
    """Open a new session of a running Spark Connect server.

    Args:
        address: The Spark Connect server, `sc://host:15002`.
        uri: The base URL of the Limnos server.
        metalake: The metalake.
        catalogs: Names of its catalogs, to be used in SQL.
        token: The caller's token.
        user: In place of a token, the Basic user name, for a server with `simple` authentication.
        config: More settings of the session.
        s3: Whether tables are on S3.

    Raises:
        BadRequest: `address` is not the URL of a Spark Connect server, or a setting is not one of sessions.
        ServiceUnavailable: No Spark Connect server answers at `address`.
    """
    if not address.startswith(SCHEME):
        raise BadRequest(f"--connect {address}: the address of a Spark Connect server is written sc://HOST:15002")
    _require_listener(address)
    from pyspark.sql import SparkSession  # noqa: PLC0415 - heavy, and only in the extra

    settings = config_for(
        uri,
        metalake=metalake,
        catalogs=catalogs,
        authorization=authorization(token=token, user=user),
        master=address,
        s3=s3,
    )
    try:
        spark: SparkSession = SparkSession.builder.remote(address).create()
    except Exception as error:
        raise ServiceUnavailable(f"No Spark Connect server answers at {address}: {error}") from error
    requested = {key: value for key, value in settings.items() if key.startswith(_CATALOG)}
    for key, value in {**requested, "spark.sql.session.timeZone": "UTC"}.items():
        spark.conf.set(key, value)
    for key, value in (config or {}).items():
        _set_own(spark, key, value=value)
    return spark


def _set_own(spark: SparkSession, key: str, *, value: str) -> None:
    """Set a caller's own setting on a session. Raises BadRequest for one that only the server's start can set, after
    closing the session.
    """
    try:
        spark.conf.set(key, value)
    except Exception as error:
        spark.stop()
        reason = str(error).partition("\n")[0]
        raise BadRequest(
            f"{key} cannot be set on a session of a Spark Connect server, which has one share of its cluster: set it"
            f" where that server starts ({reason})"
        ) from error


def _require_listener(address: str) -> None:
    """Raise ServiceUnavailable if no TCP server listens at the URL's host and port; Spark's client would retry for
    minutes.
    """
    address_parts = urlsplit(address.partition(";")[0])
    try:
        with socket.create_connection((address_parts.hostname or "", address_parts.port or _PORT), timeout=_WITHIN_S):
            return
    except (OSError, ValueError) as error:
        raise ServiceUnavailable(
            f"No Spark Connect server answers at {address}: {error}. Start it, or use `--master`."
        ) from error
