# SPDX-License-Identifier: Apache-2.0
"""Storage of catalogs: a check of the object store, and the keys that encrypt secrets.

No response contains a key, only ids of keys.
"""

from __future__ import annotations

from limnos.http.admin.bodies import names_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.upkeep import secret_keys
from limnos.services.upkeep.secret_keys import KeyInventory
from limnos.services.vending import storage_checks


async def storage_check(request: Request, ctx: Context) -> Response:
    """Test a catalog's storage: write, list, read and delete in its warehouse, and vend credentials.

    Returns the result of each step.
    """
    metalake, catalog = names_of(request)
    check = await storage_checks.storage_check(ctx, RequestScope(metalake, catalog))
    steps = [each._asdict() for each in check.steps]
    return json_response({"location": check.location, "steps": steps, "passed": check.passed})


async def keys_list(_request: Request, ctx: Context) -> Response:
    """Return the ids of the encryption keys, oldest first, with the number of catalogs and webhooks that use each."""
    return json_response(_encode_keys(await secret_keys.keys_list(ctx)))


async def keys_rotate(_request: Request, ctx: Context) -> Response:
    """Create a new key, if this server creates them, and encrypt all secrets of catalogs and webhooks under the
    newest one.
    """
    inventory, rotated_count = await secret_keys.keys_rotate(ctx)
    return json_response({**_encode_keys(inventory), "sealed": rotated_count})


def _encode_keys(inventory: KeyInventory) -> dict[str, object]:
    def key_counts(name: str) -> dict[str, object]:
        return {"id": name, "catalogs": inventory.catalogs.get(name, 0), "webhooks": inventory.webhooks.get(name, 0)}

    keys = [{**key_counts(name), "seals": name == inventory.current} for name in inventory.names]
    missing_key_counts = [key_counts(name) for name in inventory.lacking]
    return {"keys": keys, "lacking": missing_key_counts, "plain": inventory.plain, "made_here": inventory.makes}


ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="POST",
        path="/api/limnos/v1/metalakes/{m}/catalogs/{c}/storage/check",
        handler=storage_check,
        operation="check-storage",
    ),
    Route(method="GET", path="/api/limnos/v1/storage/keys", handler=keys_list, operation="list-storage-keys"),
    Route(
        method="POST", path="/api/limnos/v1/storage/keys/rotate", handler=keys_rotate, operation="rotate-storage-keys"
    ),
)
