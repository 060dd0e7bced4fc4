"""What an empty store gets: a metalake, a catalog with a local warehouse, a token for the admin.

May import every room below. Several nodes may do this at once: the first one wins, the others find it done.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from limnos.access.authentication import Credential, user_of
from limnos.model.errors import AlreadyExists, Unauthenticated
from limnos.services.catalogs import ICEBERG, catalog_create
from limnos.services.context import Context
from limnos.services.metalakes import metalake_create, metalakes_list
from limnos.services.scene import Scope
from limnos.services.tokens import token_create

if TYPE_CHECKING:
    from limnos.config.settings import Settings
    from limnos.services.context import Services

TOKEN_FILE = "admin.token"  # noqa: S105 - a file name


async def bootstrap(services: Services, settings: Settings) -> None:
    """Fill an empty store, and see that the admin's token file holds a valid token."""
    ctx = Context(services, Credential(settings.server.admin), "bootstrap")
    if not settings.server.bare and not await ctx.read(Scope(), metalakes_list):
        await _fill(ctx, settings)
    await _ensure_token(ctx, Path(settings.server.data) / TOKEN_FILE)


async def _fill(ctx: Context, settings: Settings) -> None:
    server = settings.server
    try:
        await metalake_create(ctx, name=server.metalake, comment="Made on first start", properties={})
        await catalog_create(
            ctx, metalake=server.metalake, name=server.catalog, catalog_type="relational", provider=ICEBERG,
            comment="Made on first start",
            properties={"warehouse": f"{ctx.services.defaults.warehouse}/{server.catalog}"},
        )  # fmt: skip
    except AlreadyExists:
        return  # another node was first


async def _ensure_token(ctx: Context, path: Path) -> None:
    """Write the admin's token, mode 600, unless a valid one is there."""
    if path.exists() and await _is_valid(ctx, path.read_text().strip()):
        return
    _, text = await token_create(ctx, user=None, name="admin.token", expires_in_s=None)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".admin.token.")  # made with mode 600
    with os.fdopen(descriptor, "w") as file:
        file.write(text + "\n")
    Path(temporary).replace(path)


async def _is_valid(ctx: Context, text: str) -> bool:
    try:
        credential = ctx.services.authenticator.credential(f"Bearer {text}".encode())
        user = ctx.credential.user
        return await ctx.read(Scope(), lambda scene: user_of(scene.view, credential) == user)
    except Unauthenticated:
        return False
