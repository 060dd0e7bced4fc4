# SPDX-License-Identifier: Apache-2.0
"""Vended credentials for Lance's clients: storage options in responses about a table that they open themselves.

Has no business rules. A client requests new ones shortly before `expires_at_millis`. LanceDB's remote clients read
through the server and get none.
"""

from __future__ import annotations

from typing import Final

from limnos.http.request import Request
from limnos.http.response import NO_STORE, Response, json_response
from limnos.model.errors import LimnosError
from limnos.rooms.lance.http.identifiers import LanceObjectPath, is_remote
from limnos.rooms.lance.services.workers import connection_options_of
from limnos.services.lance.tables import LanceTable
from limnos.services.request.context import Context
from limnos.services.vending.credentials import VendedCredentials, is_vending, table_credentials
from limnos.sources.adls import AdlsSignature
from limnos.sources.gcs import GcsToken

OPTIONS: Final = "storage_options"


def delegates_of(request: Request, is_requested: bool | None = None) -> bool:  # noqa: FBT001 - a field of the body
    """Return whether a client may get credentials: unless it declines them or is a remote client of LanceDB."""
    return is_requested is not False and not is_remote(request)


async def options_of(
    request: Request,
    ctx: Context,
    *,
    place: LanceObjectPath,
    table: LanceTable,
    is_requested: bool | None = None,
    is_new: bool = False,
) -> dict[str, object]:
    """Return the part of a response with credentials for a table's files; empty if the catalog vends none.

    If the request created the table (`is_new`), errors of vending are ignored: the caller can describe the table later.
    """
    if not delegates_of(request, is_requested) or not is_vending(table.place.catalog.properties):
        return {}
    try:
        vended = await table_credentials(ctx, place.scope, levels=place.levels)
    except LimnosError:
        if not is_new:
            raise
        return {}
    return {} if vended is None else {OPTIONS: encode_credentials(vended)}


def encode_credentials(vended: VendedCredentials) -> dict[str, str]:
    """Encode credentials as Lance's storage options."""
    keys = vended.credentials
    if isinstance(keys, GcsToken):
        return {"google_storage_token": keys.token, "expires_at_millis": str(keys.expires_ms)}
    if isinstance(keys, AdlsSignature):
        account = keys.host.partition(".")[0]
        return {
            "azure_storage_sas_token": keys.token,
            "azure_storage_account_name": account,
            "expires_at_millis": str(keys.expires_ms),
        }
    return {
        **connection_options_of(vended.properties),
        "aws_access_key_id": keys.access_key_id,
        "aws_secret_access_key": keys.secret_access_key,
        "aws_session_token": keys.session_token,
        "expires_at_millis": str(keys.expires_ms),
    }


def credentials_response(answer: dict[str, object]) -> Response:
    """Return a response about a table. With credentials it must not be cached."""
    return json_response(answer, 200, (NO_STORE,) if OPTIONS in answer else ())
