# SPDX-License-Identifier: Apache-2.0
"""Request signing: signs a client's request to the object store if it touches only files of a table that the caller may
use.

Must not know any wire format. Every request is authorized again; nothing is cached. A catalog with a role signs with
credentials for that table's location only. So even if this module misinterprets a request, the store refuses access to
other files. Decision record 0059.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from limnos.files import check_size, is_within, normalise, parse, run_in_own_thread
from limnos.model.errors import BadRequest, LimnosError, PermissionDenied, ServiceUnavailable
from limnos.model.kinds import Kind
from limnos.model.records import CatalogRecord
from limnos.names.path import Levels
from limnos.services.catalog.tables import table_load
from limnos.services.request.catalog_storage import catalog_storage_of
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.vending.credentials import (
    VENDOR,
    TableFileAccess,
    credential_request_of,
    is_vending,
    table_file_access,
)
from limnos.services.vending.location_owners import is_own_location
from limnos.sources import s3_signing
from limnos.sources.credentials import KEY_ID, REGION, SECRET, TOKEN, AwsCredentials, find_property
from limnos.sources.vending import SIGNS
from limnos.telemetry.metrics import Counter

SIGNED = Counter(
    "limnos_signed_requests_total", "Requests to object stores signed for clients, by outcome.", ("outcome",)
)


class RequestSigning(NamedTuple):
    """The signing configuration for clients of a table. `properties` are the catalog's properties, which connect to the
    object store.
    """

    properties: Mapping[str, str]


def is_signing(properties: Mapping[str, str]) -> bool:
    """Return whether a catalog's properties enable request signing."""
    return (find_property(properties, SIGNS) or "").lower() == "true"


def is_catalog_signing(ctx: Context, catalog: CatalogRecord) -> bool:
    """Return whether a stored catalog enables request signing, with the properties of its named storage."""
    return is_signing(ctx.services.defaults.storages.merge_properties(catalog.properties))


async def table_signing(ctx: Context, scope: RequestScope, *, levels: Levels) -> RequestSigning | None:
    """Return the signing configuration for a table's files and this caller; None if the table is missing, its catalog
    does not enable request signing, its location is not in S3, or the caller may not read its files.

    Raises PermissionDenied if the table's location conflicts with that of another object.
    """

    def look(request_view: RequestView) -> RequestSigning | None:
        node, chain = request_view.find(levels, Kind.TABLE)
        file_access = None if node is None else table_file_access(request_view, node, chain=chain, gives=is_signing)
        if file_access is None or not file_access.location.startswith("s3://") or not file_access.rights.reads:
            return None
        return RequestSigning(file_access.place.catalog.properties)

    return await ctx.read(scope, look)


async def request_sign(
    ctx: Context, scope: RequestScope, *, levels: Levels, request: s3_signing.StoreRequest
) -> dict[str, list[str]]:
    """Return the headers of a request with its signature.

    Raises:
        NotFound: The table is missing, and the caller has the right to learn that.
        PermissionDenied: The caller lacks the right to load the table or to make the request, or the request accesses
            other files.
        BadRequest: The catalog does not enable request signing, or the request is invalid.
        ServiceUnavailable, StorageFailed: As `table_credentials`.
    """

    def look(request_view: RequestView) -> TableFileAccess:
        table_load(request_view, levels[:-1], levels[-1])
        catalog_storage = catalog_storage_of(request_view)
        if not is_signing(catalog_storage.catalog.properties):
            raise BadRequest(
                f"Catalog {request_view.catalog.name} does not sign requests: its owner sets '{SIGNS[0]}' to true"
            )
        node, chain = request_view.find(levels, Kind.TABLE)
        file_access = None if node is None else table_file_access(request_view, node, chain=chain, gives=is_signing)
        if file_access is None or not is_within(file_access.location, catalog_storage.roots):
            raise PermissionDenied("The table's location is outside of its catalog's roots: ask its owner")
        _check(file_access, s3_signing.accesses_of(request, catalog_storage.catalog.properties, check=parse))
        catalog_storage.allowed.check_use(catalog_storage.catalog.properties)
        return file_access

    try:
        opened = await ctx.read(scope, look)
        if not await is_own_location(ctx, opened.location, owner=opened.owner):
            raise PermissionDenied(
                "The table's location is not its own alone, or had files before the table: requests for it are not"
                " signed"
            )
        keys = await _keys_for(ctx, opened)
        if await ctx.read(scope, look) != opened:  # the rights may have changed during these calls
            raise ServiceUnavailable("Access or locations changed during the request: try again", retry_after_s=1)
    except LimnosError:
        SIGNED["refused",] += 1
        raise
    SIGNED["signed",] += 1
    return s3_signing.sign_store_request(
        request, keys, region=find_property(opened.place.catalog.properties, REGION) or request.region
    )


def _check(opened: TableFileAccess, accesses: list[s3_signing.StoreAccess]) -> None:
    """Raise PermissionDenied for accesses to files outside of the table's location, or beyond the caller's rights."""
    below = f"{normalise(opened.location)}/"
    for each in accesses:
        if each.how == s3_signing.BUCKET:
            if not below.startswith(f"{each.location}/"):
                raise PermissionDenied(
                    f"{each.location[:300]} is not the table's bucket: requests are only signed for that bucket"
                )
            if not opened.rights.reads:
                raise PermissionDenied("Reading the region of a table's bucket needs SELECT_TABLE on the table")
            continue
        if not each.location.startswith(below):
            raise PermissionDenied(
                f"{each.location[:300]} is not below the table's location: requests are only signed for its own files"
            )
        if each.how == s3_signing.WRITE:
            check_size(each.location)
            if not opened.rights.writes:
                raise PermissionDenied("Writing a table's files needs SELECT_TABLE and MODIFY_TABLE on it")
        elif not opened.rights.reads:
            raise PermissionDenied("Reading a table's files needs SELECT_TABLE on it")


async def _keys_for(ctx: Context, opened: TableFileAccess) -> s3_signing.StoreKeys:
    properties = opened.place.catalog.properties
    if is_vending(properties):
        request = credential_request_of(opened.place, opened.location, rights=opened.rights)
        if request is not None:
            argument = await VENDOR.of(ctx.services).issue_credentials(request)
            if isinstance(argument, AwsCredentials):  # always true: only requests to S3 are signed
                return s3_signing.StoreKeys(argument.access_key_id, argument.secret_access_key, argument.session_token)
    key, secret = find_property(properties, KEY_ID), find_property(properties, SECRET)
    if key is not None and secret is not None:
        return s3_signing.StoreKeys(key, secret, find_property(properties, TOKEN))
    return await run_in_own_thread(s3_signing.environment_keys)
