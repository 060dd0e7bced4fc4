# SPDX-License-Identifier: Apache-2.0
"""Responses about one table: metadata, entity tag, configuration, and the credentials or signing that a client
requests.

Metadata stays JSON bytes. Must not know routes or bodies of requests.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from limnos.formats.iceberg.read_restrictions import BoundRestrictions, restrictions_json
from limnos.formats.iceberg.scan_modes import SCAN_MODE, SCAN_MODES
from limnos.http.iceberg.signing import signing_configuration
from limnos.http.iceberg.vended_credentials import (
    config_of,
    credentials_configuration,
    is_signing_requested,
    is_vending_requested,
)
from limnos.http.request import Request
from limnos.http.response import JSON, NO_STORE, Response
from limnos.model.entities import MetadataDocument
from limnos.model.errors import LimnosError
from limnos.model.records import CatalogRecord
from limnos.names.path import Levels
from limnos.services.catalog.scan_modes import table_scan_mode
from limnos.services.iceberg.policy_enforcement import binding_credentials
from limnos.services.iceberg.restricted_tables import TableVisibility
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.vending.credentials import table_credentials
from limnos.services.vending.signing import table_signing


class TableResponseEnd(NamedTuple):
    """The end of a table response: its encoded configuration, a part of the entity tag for the credentials, and the
    scan planning mode.
    """

    text: bytes
    mark: str = ""
    scan_mode: str = ""


PLAIN_ENDS: Final = {
    mode: TableResponseEnd(
        credentials_configuration(None, RequestScope(None), levels=(), scan_mode=mode), scan_mode=mode
    )
    for mode in ("", *SCAN_MODES)
}
"""The ends without credentials and signing, by scan planning mode."""


def etag_of(document: MetadataDocument, mode: str, *, end: TableResponseEnd) -> bytes:
    """Return the entity tag of a table response: node id, document version, snapshots mode, and the values of `end`.

    With credentials it changes when new ones would be issued, so that no client reuses expired ones after a 304.
    """
    parts = (str(document.node_id), str(document.version), mode, end.scan_mode, end.mark)
    return f'W/"{"-".join(filter(None, parts))}"'.encode()


async def response_end(
    request: Request,
    ctx: Context,
    *,
    scope: RequestScope,
    levels: Levels,
    catalog: CatalogRecord,
    plain: TableResponseEnd,
    is_new: bool = False,
) -> TableResponseEnd:
    """Return the end of a response, with credentials or signing if the client requests them.

    If `is_new`, the request created the object, and errors of credential vending are ignored: the client can request
    credentials later.
    """
    if not is_vending_requested(request, ctx, catalog=catalog):
        return await _signing_end(request, ctx, scope=scope, levels=levels, catalog=catalog, plain=plain)
    try:
        vended = await table_credentials(ctx, scope, levels=levels)
    except LimnosError:
        if not is_new:
            raise
        return plain
    if vended is None:
        return plain
    return plain._replace(
        text=credentials_configuration(vended, scope, levels=levels, scan_mode=plain.scan_mode), mark=vended.mark
    )


async def _signing_end(
    request: Request,
    ctx: Context,
    *,
    scope: RequestScope,
    levels: Levels,
    catalog: CatalogRecord,
    plain: TableResponseEnd,
) -> TableResponseEnd:
    if not is_signing_requested(request, ctx, catalog=catalog):
        return plain
    signing = await table_signing(ctx, scope, levels=levels)
    if signing is None:
        return plain
    return plain._replace(
        text=signing_configuration(signing, scope, levels=levels, scan_mode=plain.scan_mode), mark="signed"
    )


async def restricted_ending(
    request: Request,
    ctx: Context,
    *,
    visible_object: TableVisibility,
    bound: BoundRestrictions,
    levels: Levels,
    catalog: CatalogRecord,
) -> TableResponseEnd:
    """Return the end of a response to a restricted user: the scan planning mode `server`, the restrictions, and, if the
    client requests credentials, those for the files of the user's plans.
    """
    place = visible_object.place
    config, mark = {SCAN_MODE: "server"}, f"r{bound.digest}"
    end: dict[str, object] = {"config": config, "read-restrictions": restrictions_json(bound)}
    if place is not None and is_vending_requested(request, ctx, catalog=catalog):
        vended = await binding_credentials(ctx, visible_object.document, place=place, bound=bound)
        if vended is not None:
            keys = config_of(vended, RequestScope(None), levels=levels, renewed=False)
            config.update(keys)
            end["storage-credentials"] = [{"prefix": f"{vended.location}/", "config": keys}]
            mark += vended.mark
    return TableResponseEnd(b"," + msgspec.json.encode(end).removeprefix(b"{"), mark)


async def created_response(
    request: Request,
    ctx: Context,
    *,
    scope: RequestScope,
    levels: Levels,
    document_and_catalog: tuple[MetadataDocument, CatalogRecord],
) -> Response:
    """Build the response for a table that this request, or an earlier request with the same key, created."""
    document, catalog = document_and_catalog
    plain_ending = PLAIN_ENDS[await table_scan_mode(ctx, document, properties=catalog.properties)]
    end = await response_end(request, ctx, scope=scope, levels=levels, catalog=catalog, plain=plain_ending, is_new=True)
    return load_response(document, etag_of(document, "all", end=end), end=end)


def etag_matches(header: bytes | None, etag: bytes) -> bool:
    """Return whether an If-None-Match header names the entity tag, or any (`*`)."""
    return header is not None and (header == b"*" or etag in [each.strip() for each in header.split(b",")])


def load_response(document: MetadataDocument, etag: bytes, *, end: TableResponseEnd) -> Response:
    """Build Iceberg's LoadTableResult, with `Cache-Control: no-store` if its end is for one caller (`end.mark`)."""
    location = msgspec.json.encode(document.metadata_location)
    body = b"".join((b'{"metadata-location":', location, b',"metadata":', document.body, end.text))
    return Response(200, body, (JSON, (b"etag", etag), NO_STORE) if end.mark else (JSON, (b"etag", etag)))


def commit_response(document: MetadataDocument) -> Response:
    """Build Iceberg's CommitTableResponse: the new metadata and its location."""
    location = msgspec.json.encode(document.metadata_location)
    body = b"".join((b'{"metadata-location":', location, b',"metadata":', document.body, b"}"))
    return Response(200, body, (JSON, (b"etag", etag_of(document, "all", end=PLAIN_ENDS[""]))))
