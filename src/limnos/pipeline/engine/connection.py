# SPDX-License-Identifier: Apache-2.0
"""A client for the server behind a catalog of a Spark session, with the session's credential.

Reads the server and the credential from the session's settings, so that users configure them once. The credential is
passed only to the client.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from limnos.client import Client
from limnos.client.errors import ClientError, DeniedError, NoSpaceError, ServerError, UnavailableError
from limnos.model.errors import BadRequest
from limnos.pipeline.engine.metadata import is_classic
from limnos.pipeline.failures import StepAway, StepDenied, StepFailed
from limnos.spark.gateway import session_settings
from limnos.spark.lance.server_access import ServerAccess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TIMEOUT_S = 60.0
_LANCE_ACCESS: WeakKeyDictionary[SparkSession, ServerAccess] = WeakKeyDictionary()


def client_of(spark: SparkSession, catalog: str, *, timeout_s: float = _TIMEOUT_S) -> Client:
    """Build a client from the settings of a catalog.

    Raises BadRequest if the session has no such catalog of a Limnos server, or if Spark Connect does not return the
    catalog's token.
    """
    access = _access(spark, catalog)
    if access is None:
        raise BadRequest(
            f"This Spark session has no catalog {catalog} of a Limnos server: create it with limnos.spark.session(uri,"
            f" catalogs=[{catalog!r}]), or give `client`."
        )
    if not is_classic(spark) and spark.conf.get(f"spark.sql.catalog.{catalog}.rest.auth.type", None) == "oauth2":
        raise BadRequest(
            "Spark Connect does not return a session's credential: give `client`, limnos.client.Client with the same"
            " token."
        )
    return Client(access.uri, token=access.token, user=access.user, metalake=access.metalake, timeout_s=timeout_s)


def access_of(spark: SparkSession) -> ServerAccess:
    """Return the server and the credential of the session's catalogs, for Lance tables and system tables of the
    same metalake.

    Raises BadRequest for a session without a catalog of a Limnos server, and over Spark Connect, which does not return
    the credential.
    """
    access = next((each for _, each in server_catalogs(spark)), None)
    if access is None or not is_classic(spark):
        raise BadRequest(
            "Lance tables are read and written, and system tables are read, in a session of limnos.spark.session with"
            " at least one Iceberg catalog, and not over Spark Connect."
        )
    return access


def server_catalogs(spark: SparkSession) -> Iterator[tuple[str, ServerAccess]]:
    """Yield the session's Iceberg catalogs of a Limnos server, with the server and the credential."""
    prefix, suffix = "spark.sql.catalog.", ".warehouse"
    for key in session_settings(spark):
        name = key.removeprefix(prefix).removesuffix(suffix)
        if key.endswith(suffix) and (access := _access(spark, name)) is not None:
            yield name, access


@contextmanager
def client_errors() -> Iterator[None]:
    """Convert errors of the client in the body of a `with` to StepErrors."""
    try:
        yield
    except DeniedError as error:
        raise StepDenied(error.message) from error
    except (UnavailableError, ServerError) as error:
        if isinstance(error, NoSpaceError):
            raise StepFailed(error.message) from error
        raise StepAway(error.message) from error
    except ClientError as error:
        raise StepFailed(error.message) from error


def set_lance_access(spark: SparkSession, access: ServerAccess) -> None:
    """Set the server and the credential by which the steps of a session read Lance tables."""
    _LANCE_ACCESS[spark] = access


def lance_access_of(spark: SparkSession) -> ServerAccess:
    """Return the server and the credential that `set_lance_access` has set; else as `access_of`, and raises as it."""
    return _LANCE_ACCESS.get(spark) or access_of(spark)


def _access(spark: SparkSession, catalog: str) -> ServerAccess | None:
    """Return the server and the credential in the settings of a catalog; None if it is not one of a Limnos server."""
    prefix = f"spark.sql.catalog.{catalog}"
    uri = spark.conf.get(f"{prefix}.uri", None)
    warehouse = spark.conf.get(f"{prefix}.warehouse", None)
    if not uri or not warehouse or "/" not in warehouse:
        return None
    token, user = _credential(spark.conf.get(f"{prefix}.header.Authorization", None))
    return ServerAccess(
        uri=uri.rstrip("/").removesuffix("/iceberg"), metalake=warehouse.partition("/")[0], token=token, user=user
    )


def _credential(header: str | None) -> tuple[str | None, str | None]:
    """Return the token and the user of an Authorization header; at most one of them is set."""
    kind, _, value = (header or "").partition(" ")
    if kind == "Bearer":
        return value, None
    if kind == "Basic":
        try:
            return None, base64.b64decode(value, validate=True).decode().partition(":")[0]
        except (binascii.Error, UnicodeDecodeError):
            return None, None
    return None, None
