# SPDX-License-Identifier: Apache-2.0
"""Remote signing: its configuration, and the route that signs.

Must not know keys. A signature is for one request of one caller and must not be cached.
"""

from __future__ import annotations

import msgspec

from limnos.http.iceberg.paths import levels_of, name_of, split_path
from limnos.http.iceberg.vended_credentials import mode_of, route_of, store_properties_of
from limnos.http.request import Request
from limnos.http.response import JSON, NO_STORE, Response
from limnos.model.errors import UnsupportedOperation
from limnos.names.path import Levels
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.vending.signing import RequestSigning, request_sign
from limnos.sources.s3_signing import StoreRequest

SIGNER = "S3V4RestSigner"
"""PyIceberg's name for the implementation that calls the signing route."""


class SignRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request that the client will send to an object store. Other fields are ignored."""

    region: str
    uri: str
    method: str
    headers: dict[str, list[str]]
    body: str | None = None
    provider: str | None = None


async def sign_request(request: Request, ctx: Context) -> Response:
    """Return a signature for a request to the object store, if it touches only files that the caller may
    access.
    """
    scope, params = split_path(request, ctx, 2)
    namespace, name = levels_of(params[0]), name_of(params[1])
    body = request.decode(await request.body(), SignRequest)
    if body.provider not in (None, "s3"):
        raise UnsupportedOperation(
            f"Requests to {body.provider[:50]} are not signed by this server: only s3 is supported"
        )
    headers = {key: tuple(values) for key, values in body.headers.items()}
    store_request = StoreRequest(
        method=body.method.upper(), uri=body.uri, region=body.region, headers=headers, body=body.body
    )
    signed_headers = await request_sign(ctx, scope, levels=(*namespace, name), request=store_request)
    return Response(200, msgspec.json.encode({"uri": store_request.uri, "headers": signed_headers}), (JSON, NO_STORE))


def signing_configuration(
    signing: RequestSigning, scope: RequestScope, *, levels: Levels, scan_mode: str = ""
) -> bytes:
    """Encode the end of a table response for request signing, with deprecated properties for older clients."""
    endpoint = f"{route_of(scope, levels)}/sign"
    config = {
        **mode_of(scan_mode),
        **store_properties_of(signing.properties),
        "s3.remote-signing-enabled": "true",
        "s3.signer": SIGNER,
        "s3.signer.endpoint": endpoint,
        "signer.endpoint": endpoint,
    }
    return b"".join((b',"config":', msgspec.json.encode(config), b',"remote-signing-config":{}}'))
