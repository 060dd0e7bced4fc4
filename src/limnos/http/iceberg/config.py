# SPDX-License-Identifier: Apache-2.0
"""GET /v1/config: the configuration that a client reads first.

Must not know tables.
"""

from __future__ import annotations

from collections.abc import Mapping

from limnos.formats.iceberg.class_properties import is_allowed_in_catalog
from limnos.http.iceberg.federated_bodies import CREDENTIALS, PASSED_ON
from limnos.http.iceberg.vended_credentials import mode_of
from limnos.http.refusals import lacks_credential
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.model.errors import NotFound, PermissionDenied
from limnos.model.kinds import REST_PROVIDERS
from limnos.names import iceberg
from limnos.services.catalog.catalogs import catalog_use
from limnos.services.catalog.scan_modes import caller_scan_mode
from limnos.services.federation.forwarded_requests import endpoints_of_source as source_endpoints
from limnos.services.request.catalog_properties import mask_passwords
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import ICEBERG, require_format


async def config_load(
    request: Request, ctx: Context, *, endpoints: tuple[str, ...], passed_on: tuple[str, ...]
) -> Response:
    """Return the configuration of the catalog that `warehouse` names.

    A catalog that the caller may not use is treated as missing. `passed_on` are the endpoints that are served for
    federated catalogs.
    """
    defaults = ctx.services.defaults
    metalake, catalog = iceberg.decode_warehouse(request.query("warehouse") or defaults.catalog)
    scope = RequestScope(metalake or defaults.metalake, catalog)

    def read(request_view: RequestView) -> tuple[Mapping[str, str], str] | None:
        record = catalog_use(request_view)
        if record.provider in REST_PROVIDERS:
            return None
        require_format(request_view, ICEBERG)
        properties = request_view.defaults.storages.merge_properties(record.properties)
        return properties, caller_scan_mode(request_view, properties)

    try:
        answer = await ctx.read(scope, read)
    except (NotFound, PermissionDenied) as error:
        if lacks_credential(error) or (isinstance(error, PermissionDenied) and error.decision is None):
            raise
        raise NotFound(
            f"Warehouse {catalog} of metalake {scope.metalake} does not exist, or you lack USE_CATALOG on it:"
            " have an administrator check the name, or grant you the catalog ('limnos request access"
            f" {catalog}' asks for it)",
            kind="catalog",
        ) from error  # the audit records the refusal that the answer hides
    if answer is None:
        return await _federated_config(ctx, scope, served=passed_on)
    properties, scan_mode = answer
    prefix = iceberg.encode_prefix(scope.metalake or "", catalog)
    stores = {
        key: mask_passwords(properties[key])
        for key in PASSED_ON
        if key in properties and is_allowed_in_catalog(key, properties[key])
    }
    body: dict[str, object] = {
        "defaults": {**stores, **mode_of(scan_mode)},
        "overrides": {"prefix": prefix, "namespace-separator": iceberg.SEPARATOR_ADVERTISED},
        "endpoints": endpoints,
    }
    if defaults.idempotency_s:  # clients then send idempotency keys on their own
        body["idempotency-key-lifetime"] = lifetime_text(defaults.idempotency_s)
    return json_response(body)


def lifetime_text(seconds: int) -> str:
    """Return a duration in ISO 8601: hours, minutes and seconds, without zero parts."""
    parts = ((seconds // 3600, "H"), (seconds // 60 % 60, "M"), (seconds % 60, "S"))
    return "PT" + "".join(f"{count}{unit}" for count, unit in parts if count)


async def _federated_config(ctx: Context, scope: RequestScope, *, served: tuple[str, ...]) -> Response:
    """Return the configuration of a federated Iceberg catalog: only the endpoints that both this server and the source
    serve.
    """
    offered = await source_endpoints(ctx, scope)
    texts = [each for each in served if _is_offered(each.replace("/v1/{prefix}", "", 1), offered)]
    prefix = iceberg.encode_prefix(scope.metalake or "", scope.catalog or "")
    overrides = {"prefix": prefix, "namespace-separator": iceberg.SEPARATOR_ADVERTISED}
    return json_response({"defaults": {}, "overrides": overrides, "endpoints": texts})


def _is_offered(endpoint: str, offered: frozenset[str]) -> bool:
    return endpoint in offered or endpoint == CREDENTIALS or endpoint.replace("HEAD ", "GET ", 1) in offered
