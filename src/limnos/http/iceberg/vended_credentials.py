# SPDX-License-Identifier: Apache-2.0
"""Vended credentials: whether a client requests them or remote signing, their encoding, and the route that renews them.

Has no business rules. A response with credentials is for one caller and expires soon, so neither this server nor a
proxy may cache it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from limnos.formats.iceberg.scan_modes import SCAN_MODE
from limnos.http.iceberg.paths import levels_of, name_of, referencing_views_of, split_path
from limnos.http.request import Request
from limnos.http.response import JSON, NO_STORE, Response
from limnos.model.records import CatalogRecord
from limnos.names import iceberg
from limnos.names.path import Levels
from limnos.services.catalog import tables
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.vending.credentials import VendedCredentials, is_vending, table_credentials
from limnos.services.vending.signing import is_catalog_signing
from limnos.sources.adls import HOST as ADLS_HOST
from limnos.sources.adls import AdlsSignature
from limnos.sources.credentials import PATH_STYLE, REGION, S3_ENDPOINT, find_property
from limnos.sources.gcs import HOST, PROJECT, GcsToken

DELEGATION: Final = b"x-iceberg-access-delegation"
_PASSED_ON: Final = (
    ("s3.endpoint", S3_ENDPOINT),
    ("s3.region", REGION),
    ("client.region", REGION),
    ("s3.path-style-access", PATH_STYLE),
)


def delegates_of(request: Request) -> bool:
    """Return whether the client's header requests vended credentials."""
    header = request.headers.get(DELEGATION)
    return header is not None and b"vended-credentials" in header.lower()


def is_vending_requested(request: Request, ctx: Context, *, catalog: CatalogRecord) -> bool:
    """Return whether the client requests vended credentials, and the catalog vends them."""
    return delegates_of(request) and is_vending(ctx.services.defaults.storages.merge_properties(catalog.properties))


def is_signing_requested(request: Request, ctx: Context, *, catalog: CatalogRecord) -> bool:
    """Return whether the client requests signing, and the catalog offers it."""
    header = request.headers.get(DELEGATION)
    return header is not None and b"remote-signing" in header.lower() and is_catalog_signing(ctx, catalog)


async def credentials_load(request: Request, ctx: Context) -> Response:
    """Return a table's renewed credentials; empty if the catalog vends none, or none for this caller."""
    scope, params = split_path(request, ctx, 2)
    namespace, name = levels_of(params[0]), name_of(params[1])
    through = referencing_views_of(request) if request.query_string else ()
    await ctx.read(scope, lambda request_view: tables.table_load(request_view, namespace, name, through))
    levels = (*namespace, name)
    credentials = await table_credentials(ctx, scope, levels=levels)
    entries = [] if credentials is None else [entry_of(credentials, scope, levels=levels)]
    return Response(200, msgspec.json.encode({"storage-credentials": entries}), (JSON, NO_STORE))


def entry_of(vended: VendedCredentials, scope: RequestScope, *, levels: Levels) -> dict[str, object]:
    """Encode credentials as one entry of `storage-credentials`."""
    return _entry(vended, config_of(vended, scope, levels=levels))


def _entry(vended: VendedCredentials, config: object) -> dict[str, object]:
    return {"prefix": f"{vended.location}/", "config": config}


def config_of(
    vended: VendedCredentials, scope: RequestScope, *, levels: Levels, renewed: bool = True
) -> dict[str, str]:
    """Encode credentials as client configuration, with the connection to the object store and the URL of the endpoint
    that renews them.
    """
    keys = vended.credentials
    renewed_at = f"{route_of(scope, levels)}/credentials" if renewed else None
    if isinstance(keys, GcsToken):
        return _gcs_config(keys, vended, renewed_at=renewed_at)
    if isinstance(keys, AdlsSignature):
        return _adls_config(keys, vended, renewed_at=renewed_at)
    return {
        **store_properties_of(vended.properties),
        "s3.access-key-id": keys.access_key_id,
        "s3.secret-access-key": keys.secret_access_key,
        "s3.session-token": keys.session_token,
        "s3.session-token-expires-at-ms": str(keys.expires_ms),
        **({} if renewed_at is None else {"client.refresh-credentials-endpoint": renewed_at}),
    }


def mode_of(scan_mode: str) -> dict[str, str]:
    """Encode the scan planning mode of a table; empty if the client may choose."""
    return {SCAN_MODE: scan_mode} if scan_mode else {}


def _gcs_config(keys: GcsToken, vended: VendedCredentials, *, renewed_at: str | None) -> dict[str, str]:
    gcs_properties = {
        "gcs.project-id": find_property(vended.properties, PROJECT),
        "gcs.service.host": find_property(vended.properties, HOST),
    }
    return {
        **{key: value for key, value in gcs_properties.items() if value is not None},
        "gcs.oauth2.token": keys.token,
        "gcs.oauth2.token-expires-at": str(keys.expires_ms),
        **({} if renewed_at is None else {"gcs.oauth2.refresh-credentials-endpoint": renewed_at}),
    }


def _adls_config(keys: AdlsSignature, vended: VendedCredentials, *, renewed_at: str | None) -> dict[str, str]:
    """Encode a SAS token under the host name in locations, where Iceberg's Java library looks it up.

    PyIceberg derives the account from it.
    """
    host = find_property(vended.properties, ADLS_HOST)
    return {
        **({} if host is None else {ADLS_HOST[0]: host}),
        f"adls.sas-token.{keys.host}": keys.token,
        f"adls.sas-token-expires-at-ms.{keys.host}": str(keys.expires_ms),
        **({} if renewed_at is None else {"adls.refresh-credentials-endpoint": renewed_at}),
    }


def store_properties_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Encode the connection to a catalog's object store, without credentials."""
    passed_properties = {name: find_property(properties, names) for name, names in _PASSED_ON}
    return {key: value for key, value in passed_properties.items() if value is not None}


def route_of(scope: RequestScope, levels: Levels) -> str:
    """Return the URL path of a table, relative to the base URL of Iceberg REST."""
    prefix = iceberg.encode_prefix(scope.metalake or "", scope.catalog or "")
    namespace, name = iceberg.encode_path(levels[:-1]), iceberg.encode_name(levels[-1])
    return f"v1/{prefix}/namespaces/{namespace}/tables/{name}"


def credentials_configuration(
    vended: VendedCredentials | None, scope: RequestScope, *, levels: Levels, scan_mode: str = ""
) -> bytes:
    """Encode the end of a table response: its configuration, with credentials if they are vended."""
    if vended is None:
        return b"".join((b',"config":', msgspec.json.encode(mode_of(scan_mode)), b"}"))
    keys = config_of(vended, scope, levels=levels)
    config = msgspec.json.encode({**mode_of(scan_mode), **keys})
    entries = msgspec.json.encode([_entry(vended, keys)])
    return b"".join((b',"config":', config, b',"storage-credentials":', entries, b"}"))
