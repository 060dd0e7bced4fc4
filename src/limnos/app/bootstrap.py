# SPDX-License-Identifier: Apache-2.0
"""First start: fills an empty store with a metalake, an Iceberg catalog, a Lance catalog and the admin's token.

Several nodes may do this concurrently: the first node creates each object, the others use it.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import cast

from limnos.access.authentication import Credential
from limnos.app.request_defaults import metalakes_named
from limnos.config.local_server import TOKEN_FILE
from limnos.config.settings import Settings
from limnos.model.errors import AlreadyExists, AuthenticationFailed, NotFound
from limnos.model.kinds import GENERIC_PROVIDER, ICEBERG_PROVIDER
from limnos.model.permits import upkeep_permit
from limnos.model.records import MetalakeRecord
from limnos.services.catalog.catalogs import catalog_create
from limnos.services.catalog.metalakes import metalake_create
from limnos.services.catalog.nested_namespaces import separator_check, separator_check_key
from limnos.services.identity.tokens import token_create
from limnos.services.request.context import Context
from limnos.services.request.multi_catalog_reads import metalakes_list, refuse_former
from limnos.services.request.node_services import NodeServices
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.storage.location_reconciliation import locations_reconcile
from limnos.services.upkeep.secret_keys import keys_inventory
from limnos.store.objects.nesting import checked_read
from limnos.store.objects.setting_names import setting_names_read
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.storage")
COMMENT = "Created at the first start"


async def bootstrap(services: NodeServices, settings: Settings) -> None:
    """Create the default objects if they are missing (unless `server.bare`), and the admin's token file.

    Also checks stored names against the separator, updates the register of storage locations, and logs missing
    encryption keys. Raises CannotStart for a stored name that the separator's policy forbids.
    """
    ctx = Context(services, Credential(user=settings.server.admin), "bootstrap")
    await _check_separator(services)
    await locations_reconcile(services)
    if not settings.server.bare:
        await _fill(ctx, settings)
    await services.store.submit(upkeep_permit("limnos"), lambda tx: tx.setting_names.assign_missing())
    await _log_other_names(ctx, settings)
    await _ensure_token(ctx, Path(settings.server.data) / TOKEN_FILE)
    await _log_missing_keys(ctx)


async def _log_other_names(ctx: Context, settings: Settings) -> None:
    """Log a warning for each metalake of the settings that is not the metalake of that name now."""
    metalake_names = metalakes_named(settings)
    for name, (_, current) in (await ctx.look_up(setting_names_read)).items():
        if name in metalake_names and name != current:
            log.warning(
                "settings know a metalake by the name that it was created with: another one of that name is not meant",
                name=name,
                current_name=current,
            )


async def _log_missing_keys(ctx: Context) -> None:
    """Log a warning for each missing encryption key that the store's encrypted secrets need."""
    inventory = await keys_inventory(ctx)
    for key in inventory.lacking:
        log.warning(
            "secrets of the store are sealed under a key that this server does not have: restore it in the key file, or"
            " set the secrets again",
            key=key,
            catalogs=inventory.catalogs.get(key, 0),
            webhooks=inventory.webhooks.get(key, 0),
        )


async def _check_separator(services: NodeServices) -> None:
    """Check stored names against the separator, if the separator or its policy changed since the last check.

    Raises CannotStart if a stored name contains the separator although the policy forbids it.
    """
    separator, policy = services.defaults.separator, services.defaults.separator_policy
    if await services.gate.look_up(checked_read) != separator_check_key(separator, policy):
        settle = partial(separator_check, separator=separator, policy=policy)
        await services.store.submit(upkeep_permit("limnos"), settle)


async def _fill(ctx: Context, settings: Settings) -> None:
    """Create the default metalake and catalogs if they are missing, for example after a node was killed during its
    first start.
    """
    server = settings.server
    if not await ctx.read(RequestScope(), metalakes_list):
        with suppress(AlreadyExists):  # another node created it
            await metalake_create(ctx, name=server.metalake, comment=COMMENT, properties={})
    catalogs = {server.catalog: ICEBERG_PROVIDER}
    if settings.lance.catalog:
        catalogs.setdefault(settings.lance.catalog, GENERIC_PROVIDER)
    for count, (name, provider) in enumerate(catalogs.items()):
        if await _is_untouched(ctx, server.metalake, catalog_count=count):
            await _make_catalog(ctx, server.metalake, name=name, provider=provider)


async def _make_catalog(ctx: Context, metalake: str, *, name: str, provider: str) -> None:
    with suppress(AlreadyExists):
        await catalog_create(
            ctx,
            metalake=metalake,
            name=name,
            catalog_type="relational",
            provider=provider,
            comment=COMMENT,
            properties={"warehouse": f"{ctx.services.defaults.warehouse}/{name}"},
        )


async def _is_untouched(ctx: Context, metalake: str, *, catalog_count: int) -> bool:
    """Return whether the metalake was created by a first start, and its only changes are the creation of
    `catalog_count` catalogs.
    """

    def read(request_view: RequestView) -> bool:
        comment = cast("MetalakeRecord", request_view.metalake.record).comment
        ((_, revision),) = request_view.view.known_revisions((request_view.metalake.id,))
        return comment == COMMENT and revision == catalog_count

    try:
        return await ctx.read(RequestScope(metalake), read, refuse_disabled=False)
    except NotFound:
        return False


async def _ensure_token(ctx: Context, path: Path) -> None:
    """Create a token of the admin and write it to the file `path` with mode 600, unless the file has a valid token
    already.
    """
    if path.exists() and await _is_valid(ctx, path.read_text().strip()):
        return
    _, text = await token_create(ctx, user=None, name="admin.token", expires_in_s=None, by_server=True)
    # mkstemp creates the file with mode 600.
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".admin.token.")
    with os.fdopen(descriptor, "w") as file:
        file.write(text + "\n")
    Path(temporary).replace(path)


async def _is_valid(ctx: Context, text: str) -> bool:
    try:
        credential = ctx.services.authenticator.credential(f"Bearer {text}".encode())
        if credential is None:
            return False
        bearer = Context(ctx.services, credential, ctx.request_id)
        await refuse_former(bearer)
        return await bearer.read(RequestScope(), lambda request_view: request_view.user) == ctx.credential.user
    except AuthenticationFailed:
        return False
